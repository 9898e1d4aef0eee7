"""Transactions on one connection keep the checksums, or do not, whatever ran on it before."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.connections.schema_versions import upgrade
from tracker.database import connect, transaction
from tracker.integrity.stored_checksums import add_to_checksums, read_checksums
from tracker.integrity.verification import find_content_faults
from tracker.schema import Benchmark


def faults(engine: sa.Engine) -> str:
    with engine.connect() as connection:
        return "; ".join(map(str, find_content_faults(connection)))


def add(engine: sa.Engine, name: str) -> None:
    with transaction(engine) as session:
        session.add(Benchmark(name=name))


def test_a_rollback_a_reader_and_an_upgrade_change_nothing(store: sa.Engine) -> None:
    add(store, "a")
    with suppress(ZeroDivisionError), transaction(store) as session:
        session.add(Benchmark(name="lost"))
        session.flush()
        raise ZeroDivisionError
    with transaction(store, write=False) as session:
        assert session.scalars(sa.select(Benchmark.name)).all() == ["a"]
    add(store, "b")
    upgrade(store)
    add(store, "c")
    assert faults(store) == ""


@pytest.mark.tampers
def test_an_unrecorded_change_on_the_same_connection_is_detected(store: sa.Engine) -> None:
    add(store, "a")
    with store.begin() as connection:
        connection.execute(sa.text("UPDATE benchmark SET name = 'changed'"))
    add(store, "b")
    assert "benchmark 1" in faults(store)


def test_triggers_of_sqlite_are_created_once_per_connection(sqlite_url: str) -> None:
    store = connect(sqlite_url)
    add(store, "a")
    statements: list[str] = []
    with store.connect() as connection:
        connection.connection.dbapi_connection.set_trace_callback(statements.append)  # type: ignore[union-attr]
    add(store, "b")
    with transaction(store, write=False) as session:
        session.execute(sa.text("SELECT 1"))
    add(store, "c")
    assert any(statement.startswith("INSERT INTO benchmark") for statement in statements)
    assert not any("TRIGGER" in statement for statement in statements)


@pytest.mark.tampers
def test_checksums_are_sums_whether_scopes_are_new_or_not(store: sa.Engine) -> None:
    random = np.random.default_rng(0)
    expected: dict[int, np.ndarray] = {}
    n_removed = 0
    for first, last, n in [(0, 900, 300), (0, 2000, 600), (2000, 2900, 900), (0, 3000, 5), (0, 3000, 3000)]:
        keys = np.sort(random.choice(np.arange(first, last), n, replace=False))
        words = random.integers(0, 2**64, (n, 2), dtype=np.uint64, endpoint=False)
        removed = np.isin(keys, list(expected)) & (random.random(n) < 0.3)
        for place in np.flatnonzero(removed):
            words[place] = np.uint64(0) - expected[int(keys[place])]
        with store.begin() as connection:
            add_to_checksums(connection, "prompt", (keys, words))
            stored = dict(zip(*(part.tolist() for part in read_checksums(connection, "prompt")), strict=True))
        for key, change in zip(keys.tolist(), words, strict=True):
            expected[key] = expected.get(key, np.zeros(2, dtype=np.uint64)) + change
        expected = {key: total for key, total in expected.items() if total.any()}
        assert stored == {key: total.tolist() for key, total in expected.items()}
        n_removed += removed.sum()
    assert n_removed > 100
