"""Empty stores to measure on: a SQLite file, and a separate database in PostgreSQL."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
