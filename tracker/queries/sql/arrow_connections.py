"""Connections of ADBC to stores, for reading."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.connections.sqlite_connections import BUSY_SECONDS, keep_open
from tracker.database import make_read_only_uri

if TYPE_CHECKING:
    import pyarrow as pa


def execute(connection: Any, sql: str) -> None:
    """Run a statement and discard its rows."""
    import adbc_driver_manager as adbc

    with adbc.AdbcStatement(connection) as statement:
        statement.set_sql_query(sql)
        stream_rows(statement).read_all()


def stream_rows(statement: Any) -> pa.RecordBatchReader:
    """Run a statement; return its rows as batches."""
    import pyarrow as pa

    handle, _ = statement.execute_query()
    return pa.RecordBatchReader._import_from_c(handle.address)


@contextmanager
def open_sqlite(engine: sa.Engine) -> Iterator[Any]:
    """Yield a connection that may only read; it is closed when no other connection needs its lock."""
    import adbc_driver_manager as adbc

    with ExitStack() as opened:
        connection = None
        try:
            database = opened.enter_context(adbc.AdbcDatabase(**_address(engine)))
            connection = opened.enter_context(adbc.AdbcConnection(database))
            execute(connection, f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
            yield connection
        finally:
            if connection is not None:
                with suppress(adbc.Error):  # a snapshot ends here; it would keep the log from being emptied
                    connection.set_autocommit(True)
            keep_open(_path(engine), opened.pop_all().close)


class _Server:
    """A PostgreSQL server as ADBC knows it, with a connection that no read uses at the moment.

    A database of ADBC reads the types of the server, and a new connection the catalogue: both take longer than most
    queries.

    Args:
        engine: an engine on the store.
    """

    def __init__(self, engine: sa.Engine) -> None:
        import adbc_driver_manager as adbc

        self.database, self._process = adbc.AdbcDatabase(**_address(engine)), os.getpid()
        self._idle: list[Any] = []
        self._inherited: list[Any] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def take(self) -> Any:
        """Return the connection that no read uses; None without one."""
        with self._lock:
            if self._process != os.getpid():
                self._inherited += self._idle  # closing it would end that of the process that this one is forked from
                self._idle, self._process = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: Any) -> None:
        """Keep a connection for the next read, or close it if one is kept."""
        with self._lock:
            if not self._idle and not self._is_closed:
                self._idle.append(connection)
                return
        _close(connection)

    def close(self) -> None:
        """Close the connection and the database."""
        self._is_closed = True
        if (connection := self.take()) is not None:
            _close(connection)
        _close(self.database)


_known_servers: weakref.WeakKeyDictionary[sa.Pool, _Server] = weakref.WeakKeyDictionary()
_server_lock = threading.Lock()


def _find_server(engine: sa.Engine) -> _Server:
    """Return the server of an engine; it is closed together with the engine's pool."""
    server = _known_servers.get(engine.pool)
    if server is None:
        new = _Server(engine)
        with _server_lock:
            server = _known_servers.setdefault(engine.pool, new)
        if server is new:
            weakref.finalize(engine.pool, server.close)
        else:
            new.close()
    return server


@contextmanager
def borrow_postgresql(engine: sa.Engine) -> Iterator[Any]:
    """Yield a connection that may only read. It is kept for the next read, unless this one ends with an error."""
    import adbc_driver_manager as adbc

    server, guard = _find_server(engine), "SET default_transaction_read_only = on"
    connection = server.take()
    try:
        if connection is not None:
            try:
                execute(connection, guard)
            except adbc.Error:  # the server has ended it
                _close(connection)
                connection = None
        if connection is None:
            connection = adbc.AdbcConnection(server.database)
            execute(connection, guard)
        yield connection
        connection.set_autocommit(True)  # a snapshot ends here
    except BaseException:
        if connection is not None:
            _close(connection)
        raise
    server.give_back(connection)


def _close(opened: Any) -> None:
    import adbc_driver_manager as adbc

    with suppress(adbc.Error, RuntimeError):  # a thread may still read from it
        opened.close()


def _path(engine: sa.Engine) -> Path:
    return Path(engine.url.database or "").resolve()


def _address(engine: sa.Engine) -> dict[str, str]:
    if engine.dialect.name == "sqlite":
        import adbc_driver_sqlite

        return {"driver": adbc_driver_sqlite._driver_path(), "uri": make_read_only_uri(_path(engine))}
    import adbc_driver_postgresql
    from psycopg.conninfo import make_conninfo

    _, options = engine.dialect.create_connect_args(engine.url)
    return {
        "driver": adbc_driver_postgresql._driver_path(),
        "uri": make_conninfo(**{name: value for name, value in options.items() if name != "context"}),
    }
