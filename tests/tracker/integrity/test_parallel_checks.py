"""The checks of large tables in threads find exactly what the checks of single rows find."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from full_stores import make_full_store
from test_damage import content_columns, flip_bit, try_edit

from tracker.copying.store_faults import find_store_faults
from tracker.database import create_unchecked_engine
from tracker.integrity.verification import snapshot
from tracker.recording.checks import parallel_checks

pytestmark = pytest.mark.tampers

CHECKED = {"score", "answer", "prompt", "prompt_alias", "prompt_value", "filter_decision", "run", "finding"}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "full.db"
    make_full_store(path)
    return path


@pytest.fixture(autouse=True)
def _every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_checks, "LARGE", 0)


def list_both(path: Path) -> tuple[list[str], list[str]]:
    """The faults by the checks of single rows, and by those in threads."""
    engine = create_unchecked_engine(f"sqlite:///{path}")
    try:
        with snapshot(engine) as connection:
            serial = [str(fault) for fault in find_store_faults(connection)]
            with parallel_checks.check_in_parallel(engine) as parallel:
                return serial, [str(fault) for fault in find_store_faults(connection, parallel)]
    except sa.exc.DBAPIError as error:
        return [str(error)], [str(error)]
    finally:
        engine.dispose()


def test_the_tables_of_a_sound_store_are_checked(full: Path) -> None:
    engine = create_unchecked_engine(f"sqlite:///{full}")
    with parallel_checks.check_in_parallel(engine) as parallel:
        assert parallel is not None
        assert {*parallel.content, "score"} >= CHECKED
        assert {name: faults() for name, faults in parallel.content.items()} == {name: [] for name in parallel.content}
        assert parallel.scores() == []
        assert {"score", "answer", "prompt_value"} <= set(parallel.referring())
        assert parallel.damage() == []
    engine.dispose()


def test_edits_have_the_same_faults(full: Path, tmp_path: Path) -> None:
    draw, path = random.Random(3), tmp_path / "edited.db"
    n_edits = 0
    columns = [pair for pair in content_columns() if pair[0].name in CHECKED]
    for table, column in draw.sample(columns, 14):
        shutil.copy(full, path)
        if try_edit(f"sqlite:///{path}", table, column, draw):
            serial, parallel = list_both(path)
            assert parallel == serial, f"{table.name}.{column.name}"
            assert serial, f"{table.name}.{column.name}"
            n_edits += 1
    assert n_edits > 7


def test_flips_have_the_same_faults(full: Path, tmp_path: Path) -> None:
    path = tmp_path / "flipped.db"
    for seed in range(8):
        shutil.copy(full, path)
        flip_bit(path, random.Random(seed))
        serial, parallel = list_both(path)
        assert parallel == serial, seed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answer SET text = CAST(text AS BLOB)",
        "UPDATE answer SET status = x''",
        "UPDATE answer SET extraction = 7 WHERE prompt_id = 1",
        "UPDATE score SET prompt_id = prompt_id + 0.5",
        "UPDATE score SET prompt_id = prompt_id + 1000000",
        "UPDATE score SET trial = trial + 1",
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
    serial, parallel = list_both(path)
    assert parallel == serial
    assert serial
