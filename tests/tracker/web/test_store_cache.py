"""Values of the cache are computed once, and never outlive a change of the store."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.queries.sql import tables
from tracker.web.store_cache import MAX_VALUES, StoreCache


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
    assert computed[0] == "first"
    if filled.dialect.name == "sqlite":  # PostgreSQL's version also changes with other databases of the server
        assert computed == ["first", "second", "third"]


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
    for key in range(MAX_VALUES):
        cache.get(key, lambda key=key: key)  # type: ignore[misc]
    cache.get(0, lambda: -1)
    cache.get("new", lambda: "new")
    assert (cache.peek(0), cache.peek(1), cache.peek("new")) == (0, None, "new")
    cache.close()
