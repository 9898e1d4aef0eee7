"""Several queries that see the store at one moment."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores

from tracker.errors import DatabaseError
from tracker.queries.sql.arrow import Reading, read_arrow, snapshot

COUNT = "SELECT count(*) AS n FROM score"


def test_what_is_committed_later_is_not_seen(store: sa.Engine) -> None:
    add_scores(store, np.ones((3, 2)))
    with snapshot(store) as reading:
        add_scores(store, np.ones((3, 2)), label="again")
        seen = [reading.table(COUNT)["n"].to_pylist() for _ in range(2)]
        with reading.reader("SELECT prompt_id FROM score WHERE trial = ?", (0,)) as rows:
            assert rows.read_all().num_rows == 6
    assert seen == [[6], [6]]
    assert read_arrow(store, COUNT)["n"].to_pylist() == [12]


def test_a_query_that_the_engine_rejects_is_reported(store: sa.Engine) -> None:
    with pytest.raises(DatabaseError, match="nowhere"), snapshot(store) as reading:
        reading.table("SELECT 1 FROM nowhere")


@pytest.mark.parametrize("kind", ["AdbcDatabase", "AdbcConnection"])
def test_an_error_before_there_is_a_connection_is_the_error_that_is_raised(
    sqlite_store: sa.Engine, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    import adbc_driver_manager

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(adbc_driver_manager, kind, fail)
    with pytest.raises(MemoryError):
        read_arrow(sqlite_store, COUNT)


def test_a_second_connection_sees_the_same_state(sqlite_store: sa.Engine) -> None:
    add_scores(sqlite_store, np.ones((3, 2)))
    with snapshot(sqlite_store, is_paired=True) as reading:
        assert reading.second
        add_scores(sqlite_store, np.ones((3, 2)), label="again")
        assert [each.table(COUNT)["n"].to_pylist() for each in (reading, reading.second)] == [[6], [6]]


@pytest.mark.parametrize("n_before", [1, 2])
def test_a_commit_before_the_second_connection_sees_it_is_noticed(
    sqlite_store: sa.Engine, monkeypatch: pytest.MonkeyPatch, n_before: int
) -> None:
    n_opened, execute = [0], Reading.execute

    def commit_between(reading: Reading, sql: str) -> None:
        n_opened[0] += 1
        if n_opened[0] == n_before:
            add_scores(sqlite_store, np.ones((3, 2)), label="again")
        execute(reading, sql)

    add_scores(sqlite_store, np.ones((3, 2)))
    monkeypatch.setattr(Reading, "execute", commit_between)
    with snapshot(sqlite_store, is_paired=True) as reading:
        assert reading.second is None
        assert reading.table(COUNT)["n"].to_pylist() == [12 if n_before == 1 else 6]


def test_only_sqlite_needs_a_second_connection(store: sa.Engine) -> None:
    with snapshot(store, is_paired=True) as reading:
        assert bool(reading.second) == (store.dialect.name == "sqlite")
