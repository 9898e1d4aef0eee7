"""The checks of large tables by columns find exactly what the checks of single rows find."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from full_stores import copy_to, make_full_store
from test_damage import content_columns, flip_bit, try_edit

from tracker.cli import suffrage
from tracker.copying.store_faults import find_store_faults
from tracker.database import create_unchecked_engine
from tracker.integrity.verification import snapshot
from tracker.recording.checks import file_check, large_tables
from tracker.recording.checks.file_check import check_file

pytestmark = pytest.mark.tampers

CHECKED = {"score", "answer", "prompt", "prompt_alias", "prompt_value", "filter_decision", "run", "finding"}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "full.db"
    make_full_store(path)
    return path


@pytest.fixture(autouse=True, params=[0, 1_000_000_000], ids=["pages", "queries"])
def _every_table_is_large(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(large_tables, "LARGE", 0)
    monkeypatch.setattr(large_tables, "MIN_PAGED", request.param)


def list_both(path: Path) -> tuple[list[str], list[str]]:
    """The faults by the checks of single rows, and by those of columns."""
    engine = create_unchecked_engine(f"sqlite:///{path}")
    try:
        engine.connect().close()
    except sa.exc.DBAPIError as error:  # definitions of tables that cannot be read
        return [str(error)], [str(error)]
    try:
        large = large_tables.check_large_tables(engine)
        with snapshot(engine) as connection:
            by_rows = [str(fault) for fault in find_store_faults(connection)]
            return by_rows, [str(fault) for fault in find_store_faults(connection, large)]
    finally:
        engine.dispose()


def test_the_tables_of_a_sound_store_are_checked(full: Path) -> None:
    engine = create_unchecked_engine(f"sqlite:///{full}")
    large = large_tables.check_large_tables(engine)
    assert large is not None
    assert {*large.content, "score"} >= CHECKED
    assert large.content == {name: [] for name in large.content}
    assert large.scores == []
    assert {"score", "answer", "prompt_value"} <= set(large.referring)
    engine.dispose()


def test_edits_have_the_same_faults(full: Path, tmp_path: Path) -> None:
    draw, path = random.Random(3), tmp_path / "edited.db"
    n_edits = 0
    columns = [pair for pair in content_columns() if pair[0].name in CHECKED]
    for table, column in draw.sample(columns, 14):
        shutil.copy(full, path)
        if try_edit(f"sqlite:///{path}", table, column, draw):
            by_rows, by_columns = list_both(path)
            assert by_columns == by_rows, f"{table.name}.{column.name}"
            assert by_rows, f"{table.name}.{column.name}"
            n_edits += 1
    assert n_edits > 7


def test_flips_have_the_same_faults(full: Path, tmp_path: Path) -> None:
    path = tmp_path / "flipped.db"
    for seed in range(8):
        shutil.copy(full, path)
        flip_bit(path, random.Random(seed))
        by_rows, by_columns = list_both(path)
        assert by_columns == by_rows, seed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answer SET text = CAST(text AS BLOB)",
        "UPDATE answer SET status = x''",
        "UPDATE answer SET extraction = 7 WHERE prompt_id = 1",
        "UPDATE score SET prompt_id = prompt_id + 0.5",
        "UPDATE score SET prompt_id = prompt_id + 1000000",
        "UPDATE score SET trial = trial + 1",
        "UPDATE score SET trial = trial + 0.5",
        "UPDATE score SET trial = x''",
        "UPDATE score SET trial = CAST(CAST(trial AS TEXT) AS BLOB)",
        "UPDATE score SET value = CAST(CAST(value AS TEXT) AS BLOB)",
        "UPDATE score SET prompt_id = CAST(CAST(prompt_id AS TEXT) AS BLOB)",
        "UPDATE score SET prompt_id = prompt_id - 1, trial = trial + 2147483648 WHERE prompt_id = 2",
        "UPDATE score SET prompt_id = prompt_id + 1, trial = trial - 2147483648 WHERE prompt_id = 2",
        "UPDATE score SET run_id = 77 WHERE run_id = (SELECT min(run_id) FROM score)",
        "UPDATE score SET run_id = 'x' WHERE run_id = (SELECT min(run_id) FROM score)",
        "UPDATE score SET metric_id = x'01' WHERE metric_id = (SELECT min(metric_id) FROM score)",
        "UPDATE score SET metric_id = metric_id + 50 WHERE run_id = (SELECT max(run_id) FROM score)",
        "UPDATE score SET value = 'much' WHERE prompt_id = (SELECT max(prompt_id) FROM score)",
        "UPDATE run SET n_scores = 0",
        "UPDATE answer SET run_id = 77",
        "UPDATE prompt SET choices = '[1,  2]'",
        "UPDATE prompt SET text = CAST(x'ff41' AS TEXT)",
        "UPDATE run SET checksum = CAST(checksum AS BLOB)",
        "DELETE FROM score",
        "DELETE FROM checksum WHERE table_name = 'answer'",
        "UPDATE checksum SET key = key + 1 WHERE table_name = 'answer'",
    ],
)
def test_values_of_any_type_have_the_same_faults(full: Path, tmp_path: Path, statement: str) -> None:
    path = tmp_path / "edited.db"
    shutil.copy(full, path)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA ignore_check_constraints = ON")
    raw.execute(statement)
    raw.commit()
    raw.close()
    by_rows, by_columns = list_both(path)
    assert by_columns == by_rows
    assert by_rows


def test_the_file_is_checked_in_another_process(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "damaged.db"
    shutil.copy(full, path)
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_master SET sql = sql || ' WHERE 0' WHERE name = 'ix_prompt_alias_prompt_id'")
    raw.commit()
    raw.close()
    by_rows, by_columns = list_both(path)
    assert by_columns == by_rows
    assert by_rows
    with check_file(path) as wait:
        damage = wait()
    assert damage
    assert set(damage) <= set(by_rows)
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit(3)")
    monkeypatch.setattr(file_check, "_PROGRAM", program)
    with check_file(path) as wait:
        assert wait() is None
    monkeypatch.setattr("sys.executable", str(tmp_path / "no such program"))
    with check_file(path) as wait:
        assert wait() is None
    assert list_both(path) == (by_rows, by_rows)


def test_damaged_pages_end_with_faults(full: Path, tmp_path: Path) -> None:
    path, draw, content = tmp_path / "noise.db", random.Random(8), full.read_bytes()
    with closing(sqlite3.connect(full)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'score'").fetchone()
    for _ in range(6):
        damaged = bytearray(content)
        start = (root - 1) * 4096 + draw.randrange(8, 40)
        damaged[start : start + 30] = draw.randbytes(30)
        path.write_bytes(damaged)
        for command in ("doctor", "db check"):
            result = CliRunner().invoke(suffrage, [*command.split(), "--database", f"sqlite:///{path}"])
            assert result.exit_code in (1, 2), result.output
            assert isinstance(result.exception, SystemExit), result.exception


def test_changes_beside_a_linked_file_are_seen(full: Path, tmp_path: Path) -> None:
    path, link = tmp_path / "full.db", tmp_path / "link" / "other.db"
    link.parent.mkdir()
    shutil.copy(full, path)
    link.symlink_to(path)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("UPDATE score SET value = value + 0.125 WHERE run_id = (SELECT max(run_id) FROM score)")
        writer.commit()
        by_rows, by_columns = list_both(link)
    assert by_columns == by_rows
    assert by_rows


def test_only_one_table_is_not_checked(tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    connection = sqlite3.connect(path)
    for name in ("score", "z"):
        connection.execute(f"CREATE TABLE {name} (a INTEGER NOT NULL, b TEXT NOT NULL, PRIMARY KEY (a)) WITHOUT ROWID")
        connection.executemany(f"INSERT INTO {name} VALUES (?, 'abcdefghi')", [(n,) for n in range(60_000)])
    connection.commit()
    connection.close()
    sound = path.read_bytes()

    def lines(skipped: str) -> list[str] | None:
        with check_file(path, skipped) as wait:
            return wait()

    assert lines("") == lines("score") == []
    for swapped in (b"score", b"z"):
        content = bytearray(sound)
        leaves = [at for at in range(0, len(content), 4096) if content[at] == 10]
        leaf = leaves[280] if swapped == b"score" else leaves[-3]
        content[leaf + 8 : leaf + 12] = content[leaf + 10 : leaf + 12] + content[leaf + 8 : leaf + 10]
        path.write_bytes(content)
        assert any("order" in line for line in lines("") or ())
        assert (lines("score") == []) == (swapped == b"score")
    content = bytearray(sound)
    content[103:105] = b"\xff\xff"  # cells of the first page, which has the definitions
    path.write_bytes(content)
    assert lines("score") != []


def test_pages_without_use_have_the_same_faults(full: Path, tmp_path: Path) -> None:
    path = tmp_path / "lost.db"
    shutil.copy(full, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE junk (content BLOB)")
        connection.executemany("INSERT INTO junk VALUES (zeroblob(9000))", [()] * 9)
        connection.commit()
        connection.execute("DROP TABLE junk")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    assert list_both(path) == ([], [])
    content[32:40] = bytes(8)  # the list of free pages
    path.write_bytes(content)
    by_rows, by_columns = list_both(path)
    assert by_columns == by_rows


@pytest.mark.parametrize(
    "statement", ["'table', 'twin', 'twin', rootpage, replace(sql, 'TABLE score', 'TABLE twin')", ""]
)
def test_two_tables_with_the_same_pages_have_the_same_faults(full: Path, tmp_path: Path, statement: str) -> None:
    path = tmp_path / "twin.db"
    shutil.copy(full, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        if statement:
            connection.execute(f"INSERT INTO sqlite_master SELECT {statement} FROM sqlite_master WHERE name = 'score'")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    engine = create_unchecked_engine(f"sqlite:///{path}")
    assert large_tables._are_pages_sound(engine) == (not statement)
    engine.dispose()


def test_damage_beside_the_scores_is_found(full: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    for statement in ("UPDATE answer SET text = 'other'", "UPDATE prompt SET text = NULL"):
        shutil.copy(full, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'prompt'")
            connection.commit()
        with closing(sqlite3.connect(path)) as connection:  # with the new definition
            connection.execute(statement)
            connection.commit()
        by_rows, by_columns = list_both(path)
        assert by_columns == by_rows
        assert by_rows


def test_the_check_of_the_file_ends_with_its_context(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **b: started.append(popen(*a, **b)) or started[0])
    program = tmp_path / "program.py"
    program.write_text("import time; time.sleep(1000)")
    monkeypatch.setattr(file_check, "_PROGRAM", program)
    with pytest.raises(KeyboardInterrupt), check_file(full):
        raise KeyboardInterrupt
    assert started[0].poll() is not None


def test_scores_out_of_order_have_the_same_faults(tmp_path: Path) -> None:
    """A damaged key in the middle of a run misleads a query for the scores of the run."""
    path = tmp_path / "long.db"
    scores = "".join(f"p{i},{int(i % 3 > 0)},{i % 2}\n" for i in range(120))
    (tmp_path / "scores.csv").write_text(f"prompt_id,x,y\n{scores}")
    arguments = ["ingest", str(tmp_path / "scores.csv"), "--benchmark", "b", "--database", f"sqlite:///{path}"]
    assert CliRunner().invoke(suffrage, arguments).exit_code == 0
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    content = bytearray(path.read_bytes())
    row = bytes([6, 9, 9, 1, 8, 9])  # sizes and types of: header, run 1, metric 1, prompt in one byte, trial 0, score 1
    places = [at for at in range(len(content)) if content.startswith(row, at)]
    assert len(places) > 50
    content[places[len(places) // 2] + 2] = 8  # metric 0
    path.write_bytes(content)
    by_rows, by_columns = list_both(path)
    assert "the scores of run 1 do not match their checksum" in by_columns
    assert set(by_columns) >= set(by_rows)


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "UPDATE score SET value = value + 0.125 WHERE prompt_id = (SELECT max(prompt_id) FROM score)",
        "UPDATE score SET trial = trial + 1 WHERE run_id = (SELECT max(run_id) FROM score)",
        "DELETE FROM score WHERE run_id = (SELECT min(run_id) FROM score)",
        "UPDATE run SET n_scores = n_scores + 1 WHERE id = (SELECT max(id) FROM run)",
    ],
)
def test_scores_of_postgresql_have_the_same_faults(full: Path, postgres_url: str, statement: str) -> None:
    copy_to(f"sqlite:///{full}", postgres_url)
    engine = create_unchecked_engine(postgres_url)
    if statement:
        with engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            connection.exec_driver_sql(statement)
    large = large_tables.check_large_tables(engine)
    assert large is not None
    assert large.scores is not None
    with snapshot(engine) as connection:
        by_rows = [str(fault) for fault in find_store_faults(connection)]
        by_columns = [str(fault) for fault in find_store_faults(connection, large)]
    engine.dispose()
    assert by_columns == by_rows
    assert bool(by_rows) == bool(statement)
