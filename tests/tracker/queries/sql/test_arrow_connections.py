"""Connections that read rows as Arrow."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import adbc_driver_manager
import pytest
import sqlalchemy as sa
from forked_process import fork
from sqlalchemy.orm import Session

from tracker.database import connect, transaction
from tracker.errors import DatabaseError
from tracker.queries.sql.arrow import read_arrow, snapshot


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


def list_readers(store: sa.Engine) -> set[int]:
    """Server processes of connections that read rows as Arrow."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' "
        "AND pid <> pg_backend_pid()"
    )
    with store.connect() as connection:
        return set(connection.scalars(sa.text(query)))


def list_last_readers(store: sa.Engine, n: int) -> set[int]:
    """`list_readers` as soon as there are so few: a server ends a process some time after its connection is closed."""
    end = time.monotonic() + 30
    while len(readers := list_readers(store)) > n and time.monotonic() < end:
        time.sleep(0.05)
    return readers


def read_one(source: sa.Engine | Session) -> list[int]:
    return read_arrow(source, "SELECT 1 AS one").column("one").to_pylist()


def test_the_types_of_a_server_are_read_once(postgres_url: str, opened: list[str]) -> None:
    store, unpooled = connect(postgres_url), sa.create_engine(postgres_url, poolclass=sa.NullPool)
    for _ in range(3):
        with transaction(store, write=False) as session:
            assert read_one(session) == [1]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: read_one(store), range(20))) == [[1]] * 20
    assert opened == ["open"]
    store.dispose()
    gc.collect()
    assert opened == ["open", "close"]
    assert list_last_readers(unpooled, 0) == set()
    assert read_one(store) == [1]
    assert opened == ["open", "close", "open"]
    store.dispose()


def test_one_connection_to_a_server_is_kept_for_the_next_read(postgres_url: str) -> None:
    store = connect(postgres_url)
    read_one(store)
    with snapshot(store) as first, snapshot(store) as second:
        assert first.table("SELECT 1 AS one").num_rows == second.table("SELECT 1 AS one").num_rows == 1
    (kept,) = list_last_readers(store, 1)
    for setting, value in (("transaction_isolation", "read committed"), ("transaction_read_only", "on")):
        assert read_arrow(store, f"SELECT current_setting('{setting}')").column(0).to_pylist() == [value]
    assert list_readers(store) == {kept}
    store.dispose()


def test_a_connection_is_not_kept_after_an_error(postgres_url: str) -> None:
    store = connect(postgres_url)
    read_one(store)
    with pytest.raises(DatabaseError, match="nothing"):
        read_arrow(store, "SELECT * FROM nothing")
    assert list_last_readers(store, 0) == set()
    assert read_one(store) == [1]
    store.dispose()


def test_a_kept_connection_that_the_server_has_ended_is_opened_again(postgres_url: str) -> None:
    store = connect(postgres_url)
    read_one(store)
    (kept,) = list_readers(store)
    with store.connect() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": kept})
    assert list_last_readers(store, 0) == set()
    assert read_one(store) == [1]
    assert list_readers(store) != {kept}
    store.dispose()


def test_a_forked_process_opens_a_connection_of_its_own(postgres_url: str, tmp_path: Path) -> None:
    store = connect(postgres_url)
    read_one(store)
    (kept,) = list_readers(store)
    sql = "SELECT pg_backend_pid() AS pid"
    process = fork(lambda: print(read_arrow(store, sql).column(0)[0].as_py()), tmp_path / "output.txt")
    assert process.wait().split() != [str(kept)]
    assert process.returncode == 0
    assert read_arrow(store, sql).column(0).to_pylist() == [kept]
    store.dispose()
