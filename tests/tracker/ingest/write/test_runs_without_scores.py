"""Runs that have scores of whole tasks only: checked together, and a stray score in one of them is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums

N_RUNS = 40


@pytest.fixture
def filled(store: sa.Engine, tmp_path: Path) -> sa.Engine:
    """A store with a run that has scores, and many that have none."""
    (tmp_path / "scores.csv").write_text("prompt_id,scored\nq1,1\nq2,0\n")
    rows = [f"m{number},t,0.5" for number in range(N_RUNS)]
    (tmp_path / "tasks.csv").write_text("\n".join(["model,task,score", *rows]) + "\n")
    for name in ("scores.csv", "tasks.csv"):
        ingest_file(store, tmp_path / name, ReadOptions(benchmark="b", metric="accuracy"))
    return store


@contextmanager
def counted_statements(engine: sa.Engine) -> Iterator[list[str]]:
    statements: list[str] = []

    def count(*arguments: object) -> None:
        statements.append(str(arguments[2]))

    sa.event.listen(engine, "before_cursor_execute", count)
    yield statements
    sa.event.remove(engine, "before_cursor_execute", count)


def test_they_are_checked_by_one_query(filled: sa.Engine) -> None:
    with counted_statements(filled) as statements, transaction(filled, write=False) as session:
        assert verify_checksums(session) == []
        assert session.scalar(sa.text("SELECT count(*) FROM run WHERE n_scores = 0")) == N_RUNS
    assert len(statements) < N_RUNS


@pytest.mark.tampers
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO score (run_id, metric_id, prompt_id, trial, value) "
        "SELECT (SELECT max(id) FROM run), metric_id, prompt_id, trial, value FROM score",
        "UPDATE score SET run_id = (SELECT max(id) FROM run)",
        "UPDATE run SET checksum = '00000000000000000000000000000001' WHERE id = (SELECT max(id) FROM run)",
    ],
)
def test_a_change_to_one_of_them_is_noticed(filled: sa.Engine, statement: str) -> None:
    with filled.begin() as connection:
        connection.exec_driver_sql(statement)
    with transaction(filled, write=False) as session:
        assert session.scalar(sa.text("SELECT max(id) FROM run")) in verify_checksums(session)
