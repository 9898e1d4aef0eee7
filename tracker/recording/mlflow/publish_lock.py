"""A lock for publishing: processes take turns, so that nothing is published twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from filelock import FileLock, Timeout
from sqlalchemy import exc

from tracker.database import transaction
from tracker.errors import PublishingError
from tracker.private_files.permissions import permissions_beside
from tracker.recording.mlflow.tracking_store import MlflowStore

PATIENCE_SECONDS = 300
LOCK_TIMEOUT = "55P03"
"""PostgreSQL's error code for a lock that was waited for too long."""


@contextmanager
def lock_publishing(engine: sa.Engine) -> Iterator[None]:
    """Hold the publishing lock of this store; the lock is released when its process ends.

    Raises:
        PublishingError: another process held the lock for too long.
        DatabaseError: the server is unreachable, or the role lacks a privilege.
    """
    busy = PublishingError(
        f"Another process has been publishing for over {PATIENCE_SECONDS} s. The results are safe in the store. Run "
        "`suffrage publish` when it has finished."
    )
    if engine.dialect.name == "sqlite":
        path = Path(engine.url.database or "").absolute()
        mode = permissions_beside(path)
        try:
            with FileLock(f"{path}.publishing.lock", timeout=PATIENCE_SECONDS, mode=mode):
                yield
        except Timeout as error:
            raise busy from error
        return
    with transaction(engine, write=False) as session:
        connection = session.connection()
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE_SECONDS}s'")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        try:  # a lock that needs the right to write, and that ingesting does not wait for
            connection.exec_driver_sql("SELECT id FROM database FOR UPDATE")
        except exc.OperationalError as error:
            if getattr(error.orig, "sqlstate", None) == LOCK_TIMEOUT:
                raise busy from error
            raise
        yield


@contextmanager
def lock_mlflow_file(store: MlflowStore) -> Iterator[None]:
    """Hold the lock for opening an MLflow file; a server needs none.

    Raises:
        OSError: another process held the lock for too long.
    """
    if store.file is None:
        yield
        return
    with FileLock(f"{store.file}.lock", timeout=PATIENCE_SECONDS, mode=permissions_beside(store.file)):
        yield
