"""Values of the cache are computed once, and never outlive a change of the store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.errors import DatabaseError
from tracker.queries.sql import tables
from tracker.web.memory import measure_size
from tracker.web.store_cache import MAX_BYTES, StoreCache


@pytest.fixture
def cache(filled: sa.Engine) -> Iterator[StoreCache]:
    reader = connect(filled.url.render_as_string(hide_password=False))
    cache = StoreCache(reader)
    yield cache
    cache.close()
    reader.dispose()


def rename(engine: sa.Engine, name: str) -> None:
    with transaction(engine) as session:
        session.execute(sa.update(tables.benchmark).values(name=name))


def read(cache: StoreCache) -> str:
    with transaction(cache.engine, write=False) as session:
        return str(session.scalar(sa.select(tables.benchmark.c.name)))


def test_a_value_is_kept_until_another_connection_writes(cache: StoreCache, filled: sa.Engine) -> None:
    computed = []

    def compute() -> str:
        computed.append(read(cache))
        return computed[-1]

    for name in ("first", "second", "third"):
        rename(filled, name)
        assert [cache.get("name", compute) for _ in range(2)] == [name, name]
    assert computed == ["first", "second", "third"]


CHANGES = (
    "UPDATE score SET value = value + 1 WHERE run_id = 1",
    "DELETE FROM score WHERE run_id = 1 AND prompt_id = (SELECT max(prompt_id) FROM score WHERE run_id = 1)",
    "INSERT INTO model (name) VALUES ('new')",
    "UPDATE model SET name = 'newer' WHERE name = 'new'",
    "UPDATE model SET name = 'newer' WHERE name = 'newer'",
)


@pytest.mark.tampers
def test_every_written_row_is_a_change(cache: StoreCache, filled: sa.Engine) -> None:
    versions = [cache.refresh()]
    for statement in CHANGES:
        with filled.begin() as connection:
            assert connection.exec_driver_sql(statement).rowcount > 0
        versions.append(cache.refresh())
        assert cache.refresh() == versions[-1]
    with filled.begin() as connection:  # as many rows as before
        for statement in ("DELETE FROM model WHERE name = 'newer'", CHANGES[2]):
            assert connection.exec_driver_sql(statement).rowcount == 1
    versions.append(cache.refresh())
    assert len({*versions}) == len(versions)


def test_statistics_and_transactions_of_another_database_are_no_change(filled: sa.Engine) -> None:
    if filled.dialect.name == "sqlite":
        pytest.skip("SQLite has one store in a file")
    cache = StoreCache(filled)
    before = cache.refresh()
    with filled.begin() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.exec_driver_sql("CREATE TABLE experiments (id INTEGER)")
        assert connection.exec_driver_sql("SELECT pg_current_xact_id()").scalar()
    assert cache.refresh() == before
    cache.close()


def test_pages_cannot_write(cache: StoreCache) -> None:
    for table in (tables.benchmark, tables.run):
        with pytest.raises(DatabaseError), transaction(cache.engine) as session:
            session.execute(sa.delete(table))
    with cache.open_snapshot() as snapshot, pytest.raises(sa.exc.DBAPIError):
        snapshot.session.execute(sa.update(tables.benchmark).values(name="changed"))
    with cache.engine.connect() as connection, pytest.raises(sa.exc.DBAPIError):
        connection.execute(sa.text("CREATE TABLE more (id INTEGER)"))
    assert read(cache) == "arithmetic"


def test_a_value_computed_during_a_change_is_not_kept(cache: StoreCache, filled: sa.Engine) -> None:
    def compute() -> str:
        name = read(cache)
        rename(filled, "changed meanwhile")
        return name

    cache.get("name", compute)
    assert cache.get("name", lambda: read(cache)) == "changed meanwhile"


def test_threads_that_need_one_value_wait_for_one_computation(filled_file: sa.Engine) -> None:
    cache = StoreCache(filled_file)
    begun, release, computed = threading.Event(), threading.Event(), []

    def compute() -> int:
        begun.set()
        release.wait(10)
        computed.append(1)
        return 7

    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(cache.get("value", compute))) for _ in range(5)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    release.set()
    for thread in threads:
        thread.join()
    cache.close()
    assert (results, len(computed)) == ([7] * 5, 1)


def test_the_value_unused_for_longest_is_dropped(filled_file: sa.Engine) -> None:
    cache = StoreCache(filled_file)
    third = np.zeros(MAX_BYTES // 3 - 1000, dtype=np.int8)
    for key in range(3):
        cache.get(key, third.copy)
    cache.get(0, third.copy)
    cache.get("new", third.copy)
    assert [cache.peek(key) is not None for key in (0, 1, 2, "new")] == [True, False, True, True]
    cache.get("large", lambda: np.zeros(MAX_BYTES + 1, dtype=np.int8))
    assert [cache.peek(key) is not None for key in (0, "new", "large")] == [False, False, True]
    cache.close()


def test_the_size_of_a_value_counts_each_array_once() -> None:
    @dataclass
    class Pair:
        first: np.ndarray
        second: dict[str, object]

    scores = np.zeros(10_000)
    assert 160_000 <= measure_size(Pair(scores, {"same": scores, "copy": scores.copy()})) < 161_000
    assert measure_size(["x" * 1000, ("y" * 1000, {"z" * 1000: {"v" * 1000}})]) > 4000
    rows = [{"text": f"{number:04d}" * 50} for number in range(10_000)]
    assert measure_size(rows) == pytest.approx(100 * measure_size(rows[:100]), rel=0.05)
