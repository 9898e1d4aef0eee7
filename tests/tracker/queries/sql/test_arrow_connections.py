"""Connections that read rows as Arrow."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import adbc_driver_manager
import pytest
import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.queries.sql.arrow import read_arrow


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """``open`` and ``close`` of each database of ADBC, in order."""
    events: list[str] = []

    class Database(adbc_driver_manager.AdbcDatabase):  # type: ignore[misc]
        def __init__(self, **address: Any) -> None:
            super().__init__(**address)
            events.append("open")

        def close(self) -> None:
            events.append("close")
            super().close()

    monkeypatch.setattr(adbc_driver_manager, "AdbcDatabase", Database)
    return events


def count_connections(store: sa.Engine) -> int:
    """Connections to the store's database, this one not among them.

    A server ends a process some time after its connection is closed: up to 30 seconds are left to it.
    """
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    end = time.monotonic() + 30
    while True:
        with store.connect() as connection:
            count = int(connection.scalar(sa.text(query)) or 0)
        if not count or time.monotonic() > end:
            return count
        time.sleep(0.05)


def test_the_types_of_a_server_are_read_once(postgres_url: str, opened: list[str]) -> None:
    store = connect(postgres_url)
    for _ in range(3):
        with transaction(store, write=False) as session:
            assert read_arrow(session, "SELECT 1 AS one").column("one").to_pylist() == [1]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: read_arrow(store, "SELECT 1 AS one").num_rows, range(20))) == [1] * 20
    assert opened == ["open"]
    assert count_connections(store) == 0
    store.dispose()
    gc.collect()
    assert opened == ["open", "close"]
    assert read_arrow(store, "SELECT 1 AS one").num_rows == 1
    assert opened == ["open", "close", "open"]
