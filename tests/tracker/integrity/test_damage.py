"""Changes behind the back of the program are detected wherever they are, and nothing else is."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from full_stores import copy_to, list_faults, make_full_store, read_content

from tracker.copying.store_faults import find_store_faults
from tracker.database import create_unchecked_engine
from tracker.integrity.scopes import EXCLUDED
from tracker.recording.checks import large_tables
from tracker.schema import metadata

pytestmark = pytest.mark.tampers

N_FLIPS, N_EDITS = 5, 12


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "full.db"
    make_full_store(path)
    return path


def content_columns() -> list[tuple[sa.Table, sa.Column[object]]]:
    return [
        (table, column)
        for table in metadata.sorted_tables
        if table.name == "score" or table.name not in EXCLUDED
        for column in table.columns
    ]


def change_value(value: object, column: sa.Column[object], draw: random.Random) -> object:
    """Another value of the type of a column."""
    kind = column.type
    if isinstance(kind, sa.LargeBinary):
        content = bytearray(value if isinstance(value, bytes) else b"x")
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return bytes(content)
    if isinstance(kind, sa.JSON):
        return '{"changed": 1}'
    if isinstance(kind, sa.Boolean):
        return not value
    if isinstance(kind, sa.DateTime):
        return "2001-02-03 04:05:06.000007"
    if isinstance(kind, sa.Date):
        return "2001-02-03"
    if isinstance(kind, sa.Float):
        return (value if isinstance(value, float) else 0.0) + draw.choice([0.125, 1.0])
    if isinstance(kind, sa.Integer):
        return (value if isinstance(value, int) else 0) + draw.choice([1, 7])
    return f"{value or ''}x"


def edit(connection: sa.Connection, table: sa.Table, column: sa.Column[object], draw: random.Random) -> None:
    """Change one value with the driver alone, or delete its row."""
    keys = [key.name for key in table.primary_key]
    rows = connection.execute(sa.text(f'SELECT * FROM "{table.name}"')).mappings().all()
    row = draw.choice(rows)
    where = " AND ".join(f'"{key}" = :k_{key}' for key in keys)
    parameters = {f"k_{key}": row[key] for key in keys}
    if draw.random() < 0.2:
        connection.execute(sa.text(f'DELETE FROM "{table.name}" WHERE {where}'), parameters)
        return
    on_postgresql = connection.dialect.name == "postgresql"
    cast = f"CAST(:value AS {column.type.compile(connection.dialect)})" if on_postgresql else ":value"
    parameters["value"] = change_value(row[column.name], column, draw)
    connection.execute(sa.text(f'UPDATE "{table.name}" SET "{column.name}" = {cast} WHERE {where}'), parameters)


def try_edit(url: str, table: sa.Table, column: sa.Column[object], draw: random.Random) -> bool:
    """Edit a store; False if it refuses."""
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            edit(connection, table, column, draw)
        return True
    except (sa.exc.IntegrityError, sa.exc.DataError):
        return False
    finally:
        engine.dispose()


def count_missed_rolled_back_edits(url: str, n_edits: int, seed: int) -> list[str]:
    """Edit a PostgreSQL store in transactions that see their edit and are rolled back; returns what was missed."""
    columns, draw, missed, done = content_columns(), random.Random(seed), [], 0
    engine = create_unchecked_engine(url)
    while done < n_edits:
        table, column = columns[done % len(columns)] if n_edits >= len(columns) else draw.choice(columns)
        with engine.connect() as connection, connection.begin() as edited:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            try:
                edit(connection, table, column, draw)
            except (sa.exc.IntegrityError, sa.exc.DataError):
                continue
            done += 1
            if not list(find_store_faults(connection)):
                missed.append(f"{table.name}.{column.name}")
            edited.rollback()
    engine.dispose()
    return missed


def flip_bit(path: Path, draw: random.Random) -> None:
    """Flip a bit of a byte that is not 0: most of a small file is unused space."""
    content = bytearray(path.read_bytes())
    used = [place for place, byte in enumerate(content) if byte]
    content[draw.choice(used)] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(content))


def count_missed_flips(full: Path, folder: Path, n_flips: int, seed: int) -> tuple[int, list[int]]:
    """Flip single bits until ``n_flips`` have changed the content; returns all flips, and the seeds of missed ones."""
    before, path, n, missed = read_content(f"sqlite:///{full}"), folder / "flipped.db", 0, []
    changed = 0
    while changed < n_flips:
        shutil.copy(full, path)
        flip_bit(path, random.Random(seed + n))
        n += 1
        if read_content(f"sqlite:///{path}") != before:
            changed += 1
            if not list_faults(f"sqlite:///{path}"):
                missed.append(seed + n - 1)
    return n, missed


def count_missed_edits(full: Path, folder: Path, n_edits: int, seed: int) -> list[str]:
    columns, draw, missed, done = content_columns(), random.Random(seed), [], 0
    while done < n_edits:
        table, column = columns[done % len(columns)] if n_edits >= len(columns) else draw.choice(columns)
        path = folder / "edited.db"
        shutil.copy(full, path)
        if try_edit(f"sqlite:///{path}", table, column, draw):
            done += 1
            if not list_faults(f"sqlite:///{path}"):
                missed.append(f"{table.name}.{column.name}")
    return missed


class TestSmall:
    def test_a_sound_store_has_no_faults(self, full: Path) -> None:
        assert list_faults(f"sqlite:///{full}") == []

    def test_every_content_changing_bit_flip_is_detected(self, full: Path, tmp_path: Path) -> None:
        _, missed = count_missed_flips(full, tmp_path, N_FLIPS, seed=0)
        assert missed == []

    def test_every_edit_is_detected(self, full: Path, tmp_path: Path) -> None:
        assert count_missed_edits(full, tmp_path, N_EDITS, seed=0) == []

    @pytest.mark.parametrize(
        ("statement", "subject"),
        [
            ("UPDATE embedding SET vector = zeroblob(length(vector))", "embedding of prompt"),
            ("DELETE FROM finding_artifact", "finding_artifact of finding"),
            ("UPDATE prompt SET answer = 'Z' WHERE answer IS NOT NULL", "prompt 1 "),
            ("UPDATE answer SET text = 'Z'", "answer of run"),
            ("UPDATE model SET name = name || '!'", "model 1 "),
        ],
    )
    def test_the_edits_of_an_audit_are_named(self, full: Path, tmp_path: Path, statement: str, subject: str) -> None:
        path = tmp_path / "edited.db"
        shutil.copy(full, path)
        raw = sqlite3.connect(path)
        raw.execute(statement)
        raw.commit()
        raw.close()
        assert any(fault.startswith(subject) for fault in list_faults(f"sqlite:///{path}"))


def test_postgresql_detects_edits(full: Path, postgres_url: str) -> None:
    copy_to(f"sqlite:///{full}", postgres_url)
    assert list_faults(postgres_url) == []
    assert count_missed_rolled_back_edits(postgres_url, N_EDITS, seed=5) == []
    assert list_faults(postgres_url) == []


@pytest.mark.soak
def test_two_hundred_edits_of_postgresql(full: Path, postgres_url: str) -> None:
    copy_to(f"sqlite:///{full}", postgres_url)
    assert count_missed_rolled_back_edits(postgres_url, 200, seed=5) == []
    assert list_faults(postgres_url) == []


@pytest.mark.soak
@pytest.mark.parametrize("large", [5_000, 0], ids=["small tables", "large tables"])
def test_a_thousand_flips_and_two_hundred_edits(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """Large tables are read by columns, and scores from the pages of the file."""
    monkeypatch.setattr(large_tables, "LARGE", large)
    monkeypatch.setattr(large_tables, "MIN_PAGED", large)
    n, missed = count_missed_flips(full, tmp_path, 1_000, seed=1_000)
    edits = count_missed_edits(full, tmp_path, 200, seed=1)
    print(f"{n} flips, 1,000 changed the content, missed: {missed}; 200 edits, missed: {edits}")
    assert missed == []
    assert edits == []
