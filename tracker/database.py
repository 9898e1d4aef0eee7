"""The store: connect to it, open transactions, keep its schema up to date."""

from __future__ import annotations

import atexit
import os
import shlex
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.orm import Session

from tracker.errors import DatabaseError
from tracker.integrity.recorder import OPTION, prepare_recording, record_changes, stop_recording
from tracker.sqlite_connections import TrackedConnection
from tracker.store_url import FILE_SUFFIXES, MISTAKEN_VARIABLES, URL_VARIABLES, database_url
from tracker.suggestions import find_similar, format_guess

VERSION_TABLE = "suffrage_version"
BUSY_SECONDS = 60
UPGRADE_LOCK = 0x5AFF_7A6E
KEYS_PER_QUERY = 1000
"""Keys in one statement; databases limit the number of its parameters."""
NOT_ALLOWED = ("42501", "25006")
"""PostgreSQL's error codes for a missing privilege, and for writing in a read-only transaction."""
IO_ERROR = "58030"
"""PostgreSQL's error code for files that its server cannot read or write."""

Key = TypeVar("Key")
T = TypeVar("T")


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
        engine = sa.create_engine(address)
        record_changes(engine)
        return engine
    path = Path(str(address.database))
    if path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return create_file_reader(path)
    factory = partial(TrackedConnection, path=path.resolve())
    engine = sa.create_engine(address, connect_args={"timeout": BUSY_SECONDS, "factory": factory})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    record_changes(engine)
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


def format_url(url: sa.URL) -> str:
    """Return a store's URL for printing: without driver and passwords."""
    secret = {name: "hidden" for name in url.query if "password" in name.lower()}
    return url.set(drivername=url.get_backend_name()).update_query_dict(secret).render_as_string(hide_password=True)


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
        with Session(bound, expire_on_commit=False) as session, session.begin():
            if exclusive and engine.dialect.name == "postgresql":
                lock_for_writing(session.connection())
            yield session
    except driver(engine.dialect.name).OperationalError as error:  # of a cursor that bypasses SQLAlchemy
        raise DatabaseError(explain(exc.OperationalError(None, None, error), engine)) from error
    except exc.DBAPIError as error:
        if not isinstance(error, exc.OperationalError) and getattr(error.orig, "sqlstate", None) not in NOT_ALLOWED:
            raise
        raise DatabaseError(explain(error, engine)) from error


def driver(engine: str) -> Any:
    """Return the module of an engine's driver, with the errors that its cursors raise."""
    if engine == "sqlite":
        return sqlite3
    import psycopg

    return psycopg


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


def explain(error: exc.DBAPIError, engine: sa.Engine) -> str:
    """Return the meaning of a driver's operational error, and the fix."""
    message = str(error.orig).splitlines()[0] if error.orig else str(error)
    where = format_url(engine.url)
    sqlstate = getattr(error.orig, "sqlstate", None)
    if "full" in message or "No space" in message:
        return (
            f"{where}: the disk is full ({message}). Nothing of this step was stored. Free some space and run it again."
        )
    if sqlstate == IO_ERROR:
        return (
            f"{where}: the server cannot read or write its files ({message}). Nothing of this step was stored. "
            "Check the disk and the log of the server, then the store: suffrage db check"
        )
    if "disk I/O" in message:
        return (
            f"{where}: the disk is full or faulty ({message}). Nothing of this step was stored. Free some space, "
            "or check the disk, and run it again."
        )
    if "locked" in message:
        return f"{where}: another program has been writing for over {BUSY_SECONDS} s. Try again when it has finished."
    if sqlstate in NOT_ALLOWED:
        return (
            f"{where}: this role lacks the privilege ({message}). Connect with another role: docs/how-to/postgresql.md."
        )
    if "readonly" in message or "read-only" in message:
        return f"{where}: the store cannot be written ({message}). Check the permissions of the file and its folder."
    if "unable to open" in message:
        path = Path(str(engine.url.database))
        if path.is_dir():
            return f"{path} is a folder. Name a file in it: --database {path / 'suffrage.db'}"
        if not path.parent.is_dir():
            return (
                f"There is no folder {path.parent} for the store. Create it: mkdir -p {shlex.quote(str(path.parent))}"
            )
        return f"{where}: the file cannot be opened. Check the permissions of the file and its folder."
    if "malformed" in message:
        return (
            f"{where}: the file is damaged ({message}). Restore a backup, or ingest your files into another --database."
        )
    if engine.dialect.name == "sqlite":
        return f"{where}: {message}. Check the store with `suffrage db check`, or use another --database."
    if "does not exist" in message and "database" in message:
        return f"{where}: the server has no such database. Create it: createdb {shlex.quote(str(engine.url.database))}"
    if "authentication failed" in message or "no password supplied" in message:
        return f"{where}: the server rejects the user or the password. Correct them in the URL, or set PGPASSWORD."
    return f"{where}: {message}. Check that the server runs and that the URL is right."


# --- versions ---


def migrations_folder() -> Path:
    """Return the folder of the migrations: in the installed package, else in the repository."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "migrations"


def known_versions() -> list[str]:
    """Return the versions this program knows, oldest first."""
    return sorted(path.name[:4] for path in (migrations_folder() / "versions").glob("[0-9]*.py"))


def current_version(engine: sa.Engine) -> str | None:
    """Return the version of the store's schema; None if it is empty."""
    if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).exists():
        return None  # checking must not create a file
    try:
        with engine.connect() as connection:
            if not sa.inspect(connection).has_table(VERSION_TABLE):
                return None
            version: str | None = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))
            return version
    except exc.DatabaseError as error:
        if "not a database" in str(error):
            path = shlex.quote(str(engine.url.database))
            raise DatabaseError(
                f"{engine.url.database} is not a SQLite file. Choose a store with --database FILE.db.\n"
                f"If it holds results, ingest it: suffrage ingest {path} --benchmark NAME"
            ) from error
        raise DatabaseError(explain(error, engine)) from error


def ensure_current(engine: sa.Engine, *, create: bool = True) -> None:
    """Check the version of a store; create its tables if it is empty.

    Args:
        engine: the store.
        create: whether an empty store is filled; else it is an error.

    Raises:
        DatabaseError: with the command that fixes it.
    """
    version, head = current_version(engine), known_versions()[-1]
    _check_not_newer(version)
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


def check_not_foreign(engine: sa.Engine) -> None:
    """Reject a SQLite file with tables of another program; a PostgreSQL database may hold several programs' tables.

    Raises:
        DatabaseError: it has such tables.
    """
    path = Path(str(engine.url.database))
    if (
        engine.dialect.name == "sqlite"
        and path.is_file()
        and set(sa.inspect(engine).get_table_names()) - {VERSION_TABLE}
    ):
        raise DatabaseError(f"{path} holds tables of another program. Choose another file: --database FILE.db")


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


def upgrade(engine: sa.Engine, revision: str = "head") -> None:
    """Upgrade the schema to a version, in one transaction; concurrent callers wait for each other."""
    with migrating(engine) as connection:
        if revision == "head" and _create_store(connection):
            return
        from alembic import command

        command.upgrade(_alembic_config(connection), revision)


def _create_store(connection: sa.Connection) -> bool:
    """Create the tables of a new SQLite store; return False if that is left to the migrations."""
    from tracker.integrity.stored_checksums import replace_checksums
    from tracker.schema.new_sqlite_store import create_tables

    if not create_tables(connection, migrations_folder(), known_versions()[-1]):
        return False
    replace_checksums(connection)
    return True


def downgrade(engine: sa.Engine, revision: str) -> None:
    """Downgrade the schema to an earlier version, or to ``base``, which removes everything."""
    from alembic import command

    with migrating(engine) as connection:
        command.downgrade(_alembic_config(connection), revision)


class _RollBackError(Exception):
    """Rolls back a downgrade that is only previewed."""


def preview_downgrade(engine: sa.Engine, revision: str, measure: Callable[[sa.Connection], T]) -> tuple[T, T]:
    """Return what ``measure`` returns before and after a downgrade, which is rolled back."""
    from alembic import command

    results: list[T] = []
    with suppress(_RollBackError), migrating(engine) as connection:
        results.append(measure(connection))
        command.downgrade(_alembic_config(connection), revision)
        results.append(measure(connection))
        raise _RollBackError
    return results[0], results[1]


def schema_differences(engine: sa.Engine) -> list[str]:
    """Return the differences between the store's tables and the expected ones; empty without any."""
    from alembic import command
    from alembic.util.exc import AutogenerateDiffsDetected

    with engine.begin() as connection:
        config = _alembic_config(connection)
        config.attributes["comparing"] = True
        try:
            command.check(config)
        except AutogenerateDiffsDetected as differing:
            return [str(difference) for difference in differing.diffs]
    return []


def find_stray_rows(session: Session) -> list[str]:
    """Return broken references, and damage of the file; empty without any."""
    if session.get_bind().dialect.name == "sqlite":
        damage = session.scalars(sa.text("PRAGMA integrity_check")).all()
        stray = session.execute(sa.text("PRAGMA foreign_key_check")).all()
        return [str(d) for d in damage if d != "ok"] + [f"{row[0]} refers to a missing {row[2]}" for row in stray]
    return [
        f"{count} scores refer to a missing {parent}"
        for parent in ("prompt", "metric")
        if (
            count := session.scalar(
                sa.text(  # the two references that triggers enforce on this engine
                    f"SELECT count(*) FROM score LEFT JOIN {parent} ON {parent}.id = score.{parent}_id "
                    f"WHERE {parent}.id IS NULL"
                )
            )
        )
    ]


def _alembic_config(connection: sa.Connection) -> Any:
    from io import StringIO

    from alembic.config import Config

    config = Config(stdout=StringIO())
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def migrating(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction in which the schema may change; concurrent ones wait for each other.

    Raises:
        DatabaseError: the store cannot be written, or rows would lose their parent.
    """
    sqlite = engine.dialect.name == "sqlite"
    version = current_version(engine)
    _check_not_newer(version)
    if version is None:
        check_not_foreign(engine)
    try:
        with engine.execution_options(begin="IMMEDIATE").connect() as connection:
            if sqlite:  # otherwise a copied table takes its children along
                _raw(connection).execute("PRAGMA foreign_keys=OFF")
                stop_recording(connection)
            try:
                with connection.begin():
                    if not sqlite:
                        _lock_for_upgrade(connection, is_new=version is None)
                    yield connection
                    if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()):
                        raise DatabaseError(f"The migration left {len(broken)} rows without a parent; it was undone.")
            finally:
                if sqlite:
                    _raw(connection).execute("PRAGMA foreign_keys=ON")
    except (exc.OperationalError, exc.ProgrammingError, exc.InternalError) as error:
        if version is None and "already exists" in str(error.orig):
            where = format_url(engine.url)
            raise DatabaseError(
                f"{where} holds tables of another program. Choose another file: --database FILE.db"
            ) from error
        raise DatabaseError(explain(error, engine)) from error


def _lock_for_upgrade(connection: sa.Connection, *, is_new: bool) -> None:
    """Wait until no other upgrade runs; in an empty database there is no table yet whose lock readers lack."""
    if is_new:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
    else:
        connection.exec_driver_sql(f"LOCK TABLE {VERSION_TABLE} IN SHARE ROW EXCLUSIVE MODE")


def _check_not_newer(version: str | None) -> None:
    if version is not None and version not in known_versions():
        raise DatabaseError(
            f"The store is at version {version}, newer than this program's {known_versions()[-1]}. "
            "Upgrade the program in the folder of its sources: git pull && pip install ."
        )


# --- SQLite ---


def _raw(connection: sa.Connection) -> Any:
    """Return the driver's connection, on which no transaction begins by itself."""
    return connection.connection.dbapi_connection


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
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}")
