"""The store: connect to it, and open transactions."""

from __future__ import annotations

import atexit
import logging
import os
import shlex
import sqlite3
import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.orm import Session

from tracker.connections.driver_errors import DUPLICATE_TABLE, NOT_ALLOWED, explain_driver_error, explained_errors
from tracker.connections.schema_versions import (
    VERSION_TABLE,
    check_not_foreign,
    check_not_newer,
    current_version,
    known_versions,
    upgrade,
)
from tracker.connections.sqlite_connections import BUSY_SECONDS, TrackedConnection, begin_writing
from tracker.connections.store_url import FILE_SUFFIXES, MISTAKEN_VARIABLES, URL_VARIABLES, database_url, format_url
from tracker.errors import DatabaseError
from tracker.integrity.recorder import OPTION, prepare_recording, record_changes
from tracker.integrity.sealed_rows import watch_statements
from tracker.suggestions import find_similar, format_guess

KEYS_PER_QUERY = 1000
"""Keys in one statement; databases limit the number of its parameters."""

IGNORE_CHECKS, CHECK_FILE = "PRAGMA ignore_check_constraints = ON", "PRAGMA integrity_check"
"""How SQLite checks a file, but not rows that break a CHECK, which their checksums show."""

POOL_NAME = "suffrage"
"""Ends the name of the logger of connections to PostgreSQL."""

Key = TypeVar("Key")


def connect(url: str | None = None, *, create: bool = True) -> sa.Engine:
    """Return an engine on the store, whose schema is at head.

    Args:
        url: as for `database_url`.
        create: whether to create a store that does not exist; its tables, and for SQLite its file.

    Raises:
        DatabaseError: it cannot be reached, its version is not this program's, or there is none.
    """
    engine = create_unchecked_engine(url)
    ensure_current(engine, create=create)
    return engine


def create_unchecked_engine(url: str | None = None) -> sa.Engine:
    """Return an engine on the store, whatever its version; its connections are closed at exit."""
    engine = _create_engine(url)
    _engines.add(engine)
    return engine


def create_reading_engine(engine: sa.Engine) -> sa.Engine:
    """Return another engine on the same store, whose connections cannot write."""
    reader = create_unchecked_engine(engine.url.render_as_string(hide_password=False))
    event.listen(reader, "connect", _forbid_writing)
    return reader


_engines: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


@atexit.register
def _close_connections() -> None:
    """Close the pooled connections: the last one to close removes the -wal file of a SQLite store."""
    for engine in list(_engines):
        engine.dispose()


def _create_engine(url: str | None) -> sa.Engine:
    address = sa.make_url(database_url(url))
    if address.get_backend_name() != "sqlite":
        engine = sa.create_engine(address, pool_logging_name=POOL_NAME)
        # A connection that is lost raises an error, which is explained; the pool would log a traceback besides.
        logging.getLogger(f"sqlalchemy.pool.impl.QueuePool.{POOL_NAME}").setLevel(logging.CRITICAL + 1)
        record_changes(engine)
        watch_statements(engine)
        return engine
    path = Path(str(address.database))
    if path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return create_file_reader(path)
    factory = partial(TrackedConnection, path=path.resolve())
    engine = sa.create_engine(address, connect_args={"timeout": BUSY_SECONDS, "factory": factory})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    record_changes(engine)
    watch_statements(engine)
    return engine


def create_file_reader(path: Path) -> sa.Engine:
    """Return an engine that reads a SQLite file, and changes neither its rows nor its journal mode."""
    # The last connection of a file in WAL mode removes the log beside it, which a connection for reading cannot.
    mode = "rw" if _has_log_mode(path) and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    uri = make_read_only_uri(path.resolve()).replace("mode=ro", f"mode={mode}")
    kept: dict[str, Any] = {"uri": True, "isolation_level": None, "check_same_thread": False}
    kept |= {"path": path.resolve(), "timeout": BUSY_SECONDS}
    address = sa.URL.create("sqlite", database=str(path))
    engine = sa.create_engine(address, creator=lambda: TrackedConnection(uri, **kept))
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA trusted_schema=OFF"))
    event.listen(engine, "connect", _forbid_writing)
    event.listen(engine, "begin", _begin_sqlite)
    watch_statements(engine)
    return engine


def _has_log_mode(path: Path) -> bool:
    """Return whether the header of a SQLite file names WAL mode."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\2\2"


def make_read_only_uri(path: Path) -> str:
    """Return the URI that opens a SQLite file for reading, even if neither it nor its folder is writable."""
    # Readers of a file in WAL mode create files beside it, unless it is opened as immutable.
    still = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
    return f"{path.as_uri()}?mode=ro{'&immutable=1' if still else ''}"


@contextmanager
def transaction(engine: sa.Engine, *, write: bool = True, exclusive: bool = False) -> Iterator[Session]:
    """Open a session that commits at the end, or rolls back completely.

    Args:
        engine: the store.
        write: whether to write; a SQLite writer waits for its turn at the start.
        exclusive: on PostgreSQL, wait until no other exclusive transaction runs (SQLite writers always do).

    Raises:
        DatabaseError: the disk is full, the server is unreachable, another program locked the store for too long, or
            the role lacks a privilege.
    """
    bound = engine.execution_options(begin="IMMEDIATE" if write else "DEFERRED", **{OPTION: write})
    try:
        with explained_errors(engine), Session(bound, expire_on_commit=False) as session, session.begin():
            if exclusive and engine.dialect.name == "postgresql":
                lock_for_writing(session.connection())
            yield session
    except exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in (*NOT_ALLOWED, DUPLICATE_TABLE):
            raise
        raise DatabaseError(explain_driver_error(error, engine)) from error


def lock_for_writing(connection: sa.Connection) -> None:
    """Wait on PostgreSQL until no other exclusive transaction runs, and keep later ones waiting.

    A lock on a table needs the right to write it, so no reader can hold it; anyone can hold an advisory lock.
    """
    connection.exec_driver_sql("LOCK TABLE database IN SHARE ROW EXCLUSIVE MODE")


def split_keys(keys: Collection[Key]) -> Iterator[list[Key]]:
    """Yield keys in lists that fit in one statement, in the same order."""
    ordered = list(keys)
    for first in range(0, len(ordered), KEYS_PER_QUERY):
        yield ordered[first : first + KEYS_PER_QUERY]


def ensure_current(engine: sa.Engine, *, create: bool = True) -> None:
    """Check the version of a store; create its tables if it is empty.

    Args:
        engine: the store.
        create: whether an empty store is filled; else it is an error.

    Raises:
        DatabaseError: with the command that fixes it.
    """
    version, head = current_version(engine), known_versions()[-1]
    check_not_newer(version)
    if version is None:
        check_not_foreign(engine)
    if version is None and not create:
        raise DatabaseError(_explain_no_store(engine))
    if version is None:
        upgrade(engine)
    elif version != head:
        display = format_url(engine.url)
        is_whole = display == engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(False)
        address = shlex.quote(display) if is_whole else "the address of this store"
        raise DatabaseError(
            f"The store is at version {version}, this program needs {head}. "
            f"Run: suffrage db upgrade --database {address}"
        )


def _explain_no_store(engine: sa.Engine) -> str:
    """Why there is no store, with the nearest file that may be meant."""
    advice = "Create one with `suffrage ingest RESULTS --benchmark NAME`, or choose another with --database."
    if engine.dialect.name != "sqlite":
        return f"No store at {format_url(engine.url)}: the database has no tables of Suffrage. {advice}"
    path = Path(str(engine.url.database))
    if path.is_dir():
        return f"{path} is a folder. Name a file in it: --database {path / 'suffrage.db'}"
    for name in MISTAKEN_VARIABLES:
        if os.environ.get(name):
            return f"No store at {path}. The variable {name} has no effect: set {URL_VARIABLES[0]} instead."
    files = [str(file) for suffix in FILE_SUFFIXES for file in path.parent.glob(f"*{suffix}") if file != path]
    guess = format_guess(find_similar(str(path), files, n=1))
    return " ".join(filter(None, (f"No store at {path}.", guess, advice)))


def find_file_damage(session: Session) -> list[str]:
    """Return the damage of a SQLite file, but not rows that break a CHECK, which their checksums show."""
    if session.get_bind().dialect.name != "sqlite":
        return []
    session.execute(sa.text(IGNORE_CHECKS))  # half of the time
    try:
        return [str(line) for line in session.scalars(sa.text(CHECK_FILE)) if line != "ok"]
    finally:
        session.execute(sa.text("PRAGMA ignore_check_constraints = OFF"))


def find_stray_rows(session: Session, sound: Collection[str] = ()) -> list[str]:
    """Return broken references; empty without any.

    Args:
        session: the store.
        sound: tables of a SQLite file that need no check.
    """
    if session.get_bind().dialect.name == "sqlite":
        names = session.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'table'")).all()
        stray = [
            row
            for name in names
            if name not in sound
            for row in session.execute(sa.text("SELECT * FROM pragma_foreign_key_check(:name)"), {"name": name})
        ]
        return [f"{row[0]} refers to a missing {row[2]}" for row in stray]
    # Triggers enforce the first two on this engine; queries read a row in the partition of its run's benchmark only.
    counts = session.execute(sa.text(_STRAY_SCORES)).one()
    sentences = ("scores refer to a missing prompt", "scores refer to a missing metric", f"scores {MISPLACED}")
    counted = [*zip(counts, sentences, strict=True), (session.scalar(sa.text(_STRAY_ANSWERS)), f"answers {MISPLACED}")]
    return [f"{count} {sentence}" for count, sentence in counted if count]


MISPLACED = "are in the partition of another benchmark"
"""The fault of rows that queries of their benchmark do not find."""
_STRAY_SCORES = (
    "SELECT count(*) FILTER (WHERE prompt.id IS NULL), count(*) FILTER (WHERE metric.id IS NULL), "
    "count(*) FILTER (WHERE run.benchmark_id <> score.benchmark_id) FROM score "
    "LEFT JOIN prompt ON prompt.id = prompt_id LEFT JOIN metric ON metric.id = metric_id "
    "LEFT JOIN run ON run.id = run_id"
)
_STRAY_ANSWERS = "SELECT count(*) FROM answer JOIN run ON run.id = run_id WHERE run.benchmark_id <> answer.benchmark_id"


# --- SQLite ---


def _prepare_sqlite(raw: sqlite3.Connection, _: object) -> None:
    raw.isolation_level = None  # the driver begins no transaction; _begin_sqlite does
    deadline = time.monotonic() + BUSY_SECONDS
    while True:  # switching to WAL does not wait for other connections by itself
        try:
            if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and _is_store_or_empty(raw):
                raw.execute("PRAGMA journal_mode=WAL")
            break
        except UnicodeDecodeError as error:
            raise sqlite3.DatabaseError("the database file is malformed: a name in it is no text") from error
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    raw.execute("PRAGMA foreign_keys=ON")
    raw.execute("PRAGMA synchronous=FULL")


def _forbid_writing(raw: Any, _: object) -> None:
    """Make a connection reject everything that writes."""
    is_sqlite = isinstance(raw, sqlite3.Connection)
    cursor = raw.cursor()
    cursor.execute("PRAGMA query_only = ON" if is_sqlite else "SET default_transaction_read_only = on")
    cursor.close()
    raw.commit()


def _is_store_or_empty(raw: sqlite3.Connection) -> bool:
    """Whether a file may be changed: one with tables of another program may not."""
    names = {name for (name,) in raw.execute("SELECT name FROM sqlite_master")}
    return not names or VERSION_TABLE in names


def _begin_sqlite(connection: sa.Connection) -> None:
    prepare_recording(connection)
    if connection.get_execution_options().get("begin") != "IMMEDIATE":
        connection.exec_driver_sql("BEGIN")
        return
    try:
        begin_writing(connection.connection.dbapi_connection)  # type: ignore[arg-type]
    except sqlite3.Error as error:
        raise exc.OperationalError("BEGIN IMMEDIATE", None, error) from error
