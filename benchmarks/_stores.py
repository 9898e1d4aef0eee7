"""Empty stores to measure on: a SQLite file, and a separate database in PostgreSQL."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests import wheel_server
from tracker.database import connect

ENGINES = ("sqlite", "postgresql")


@contextmanager
def empty_store(engine: str) -> Iterator[sa.Engine]:
    """A store that is gone afterwards.

    Args:
        engine: ``sqlite``, or ``postgresql``: the server of SUFFRAGE_TEST_POSTGRES_URL, else one from a wheel.
    """
    with _sqlite_url() if engine == "sqlite" else _postgresql_url() as url:
        opened = connect(url)
        try:
            yield opened
        finally:
            opened.dispose()


@contextmanager
def connect_adbc(engine: sa.Engine, *, writes: bool = False) -> Iterator[Any]:
    """A connection of ADBC's DBAPI to a store, with the settings of the store's connections; it commits at the end.

    The engine's connections to SQLite are closed before: two libraries must not hold locks on a file in one process.
    """
    if engine.dialect.name == "sqlite":
        import adbc_driver_sqlite.dbapi

        engine.dispose()
        with adbc_driver_sqlite.dbapi.connect(str(engine.url.database), autocommit=True) as connection:
            with connection.cursor() as cursor:
                for setting in ("foreign_keys = ON", "synchronous = FULL") if writes else ():
                    cursor.execute(f"PRAGMA {setting}")
                    cursor.fetchall()
            connection.adbc_connection.set_autocommit(False)
            yield connection
            connection.adbc_connection.commit()  # connection.commit() would do nothing
        return
    import adbc_driver_postgresql.dbapi

    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with adbc_driver_postgresql.dbapi.connect(url) as connection:
        yield connection
        connection.commit()


@contextmanager
def _sqlite_url() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/store.db"


@contextmanager
def _postgresql_url() -> Iterator[str]:
    with _postgresql_server() as server:
        name = f"suffrage_benchmark_{uuid.uuid4().hex[:8]}"
        driver = server.set(drivername="postgresql+psycopg")
        administrator = sa.create_engine(driver, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with administrator.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        try:
            yield server.set(database=name).render_as_string(hide_password=False)
        finally:
            with administrator.connect() as connection:
                connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _postgresql_server() -> Iterator[sa.URL]:
    url = os.environ.get("SUFFRAGE_TEST_POSTGRES_URL")
    if url:
        yield sa.make_url(url)
        return
    folder = Path(tempfile.gettempdir()) / f"suffrage-postgres-{uuid.uuid4().hex[:12]}"
    try:
        yield wheel_server.start(folder)
    finally:
        wheel_server.stop(folder)
