"""Versions of a store's schema: which it has, and its migrations to others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.connections.driver_errors import driver, explain_driver_error, explained_errors
from tracker.connections.partition_conversion import BEGUN, DONE, convert_in_steps
from tracker.connections.store_url import format_url
from tracker.errors import DatabaseError
from tracker.integrity.recorder import stop_recording
from tracker.integrity.sealed_rows import IGNORED as SEALED_IGNORED

VERSION_TABLE = "suffrage_version"
UPGRADE_LOCK = 0x5AFF_7A6E

T = TypeVar("T")


def migrations_folder() -> Path:
    """Return the folder of the migrations: in the installed package, else in the repository."""
    package = Path(__file__).parent.parent
    packaged = package / "migrations"
    return packaged if packaged.is_dir() else package.parent / "migrations"


def known_versions() -> list[str]:
    """Return the versions this program knows, oldest first."""
    return sorted(path.name[:4] for path in (migrations_folder() / "versions").glob("[0-9]*.py"))


def current_version(engine: sa.Engine) -> str | None:
    """Return the version of the store's schema; None if it is empty.

    Raises:
        DatabaseError: the store cannot be read, or its version is lost.
    """
    if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).exists():
        return None  # checking must not create a file
    try:
        with engine.connect() as connection:
            if not sa.inspect(connection).has_table(VERSION_TABLE):
                return None
            versions = connection.scalars(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).all()
            if not versions and not sa.inspect(connection).has_table("benchmark"):
                return None
    except exc.DatabaseError as error:
        if "not a database" in str(error):
            path = shlex.quote(str(engine.url.database))
            raise DatabaseError(
                f"{engine.url.database} is not a SQLite file. Choose a store with --database FILE.db.\n"
                f"If it holds results, ingest it: suffrage ingest {path} --benchmark NAME"
            ) from error
        raise DatabaseError(explain_driver_error(error, engine)) from error
    if len(versions) != 1 or not re.fullmatch("[0-9]{4}[a-z]*", str(versions[0])):
        raise DatabaseError(
            f"{format_url(engine.url)} has lost its version: the table {VERSION_TABLE} holds "
            f"{', '.join(map(repr, versions)) or 'nothing'}. Restore a backup into a new store: "
            "suffrage db restore FILE --database NEW.db"
        )
    version: str = versions[0]
    return version


def check_not_foreign(engine: sa.Engine) -> None:
    """Reject a SQLite file with tables of another program; a PostgreSQL database may hold several programs' tables.

    Raises:
        DatabaseError: it has such tables, or cannot be read.
    """
    path = Path(str(engine.url.database))
    if engine.dialect.name != "sqlite" or not path.is_file():
        return
    with explained_errors(engine):
        names = set(sa.inspect(engine).get_table_names())
    if names - {VERSION_TABLE}:
        raise DatabaseError(f"{path} holds tables of another program. Choose another file: --database FILE.db")


def check_not_newer(version: str | None) -> None:
    """Reject the version of a later program.

    Raises:
        DatabaseError: this program does not know it.
    """
    if version is not None and version not in known_versions():
        raise DatabaseError(
            f"The store is at version {version}, newer than this program's {known_versions()[-1]}. "
            "Upgrade the program in the folder of its sources: git pull && pip install ."
        )


def upgrade(engine: sa.Engine, revision: str = "head", *, progress: Callable[[int, int], None] | None = None) -> None:
    """Upgrade the schema to a version; concurrent callers wait for each other.

    It is one transaction, but for the rows of a PostgreSQL store without partitions: they are moved in steps, and an
    interrupted upgrade is continued by the next call.

    Args:
        engine: the store.
        revision: the version.
        progress: receives the number of runs whose scores or answers are in partitions, and the total.
    """
    if engine.dialect.name == "postgresql" and (revision == "head" or revision >= DONE):
        version = current_version(engine)
        if version is not None and version < BEGUN:
            _migrate(engine, BEGUN)
        if version is not None and version < DONE:
            with explained_errors(engine), suppress(_ConvertedError):
                convert_in_steps(partial(_conversion_step, engine), progress)
    _migrate(engine, revision)


class _ConvertedError(Exception):
    """Ends a conversion that another process has finished."""


@contextmanager
def _conversion_step(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction of a conversion; those of other processes wait."""
    try:
        with engine.execution_options(**{SEALED_IGNORED: True}).begin() as connection:
            _lock_for_upgrade(connection, is_new=False)
            if connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")) != BEGUN:
                raise _ConvertedError
            yield connection
    except (exc.ProgrammingError, exc.InternalError) as error:  # explained_errors explains the others
        raise DatabaseError(explain_driver_error(error, engine)) from error


def _migrate(engine: sa.Engine, revision: str) -> None:
    was_new = revision == "head" and current_version(engine) is None
    with migrating(engine) as connection:
        if was_new and _create_store(connection):
            return
        from alembic import command

        command.upgrade(_alembic_config(connection), revision)


def _create_store(connection: sa.Connection) -> bool:
    """Create the tables of a new store, unless another process has; return False if that is left to the migrations."""
    from tracker.connections.new_store import create_tables
    from tracker.integrity.stored_checksums import replace_checksums

    head = known_versions()[-1]
    if sa.inspect(connection).has_table(VERSION_TABLE):
        return bool(connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")) == head)
    if not create_tables(connection, migrations_folder(), head):
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
    check_not_newer(version)
    if version is None:
        check_not_foreign(engine)
    try:
        with engine.execution_options(begin="IMMEDIATE", **{SEALED_IGNORED: True}).connect() as connection:
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
        if version is not None and _contradicts_version(error):
            raise DatabaseError(
                f"{format_url(engine.url)} is recorded at version {version}, but its tables are those of another "
                f"version ({error.orig}). It was left unchanged. Restore a backup into a new store: "
                "suffrage db restore FILE --database NEW.db"
            ) from error
        raise DatabaseError(explain_driver_error(error, engine)) from error
    except driver(engine.dialect.name).OperationalError as error:  # of a cursor that bypasses SQLAlchemy
        raise DatabaseError(explain_driver_error(error, engine)) from error


def _contradicts_version(error: exc.DBAPIError) -> bool:
    """Return whether a migration found a table or column that should not be there yet, or missed one."""
    codes = ("42P01", "42P07", "42701", "42703", "42704", "42710")
    if (sqlstate := getattr(error.orig, "sqlstate", None)) is not None:
        return sqlstate in codes
    return bool(re.search("duplicate column name|already exists|no such (table|column|index|view)", str(error.orig)))


def _lock_for_upgrade(connection: sa.Connection, *, is_new: bool) -> None:
    """Wait until no other upgrade runs; in an empty database there is no table yet whose lock readers lack."""
    if is_new:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
    else:
        connection.exec_driver_sql(f"LOCK TABLE {VERSION_TABLE} IN SHARE ROW EXCLUSIVE MODE")


def _raw(connection: sa.Connection) -> Any:
    """Return the driver's connection, on which no transaction begins by itself."""
    return connection.connection.dbapi_connection
