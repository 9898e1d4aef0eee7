"""MLflow's client without log output; every failure is reported in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.errors import PublishingError
from tracker.private_files.permissions import create_private_file
from tracker.recording.mlflow.file_commits import fast_commits
from tracker.recording.mlflow.mlflow_logging import quiet_environment, quiet_loggers
from tracker.recording.mlflow.publish_lock import lock_mlflow_file
from tracker.recording.mlflow.tracking_store import MlflowStore, hide_passwords

MAX_REASON_LENGTH = 300


def load_mlflow(store: MlflowStore) -> None:
    """Import what the client of a store needs, without opening the store."""
    with quiet_environment(), suppress(ImportError):
        import mlflow

        if not store.is_server:
            import mlflow.store.tracking.sqlalchemy_store  # noqa: F401


@contextmanager
def open_client(store: MlflowStore) -> Iterator[Any]:
    """MLflow's client without log output; every failure is reported in one sentence."""
    with quiet_environment():
        import requests
        from mlflow.exceptions import MlflowException

        with quiet_loggers(), fast_commits(store):
            client = _connect(store)
            try:
                yield client
            except (MlflowException, requests.RequestException, OSError) as error:
                raise _publishing_error(store, error) from error


def _connect(store: MlflowStore) -> Any:
    import requests
    from alembic.util import CommandError
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    if store.file is not None:
        create_private_file(store.file)
    try:
        if not store.is_server:  # MLflow would retry for minutes
            with sa.create_engine(store.uri, poolclass=sa.NullPool).connect() as connection:
                sa.inspect(connection).get_table_names()
        with lock_mlflow_file(store):  # its first use creates 60 tables, which two processes cannot do at once
            client = MlflowClient(tracking_uri=store.uri)
            client.search_experiments(max_results=1)
            return client
    except (
        MlflowException,
        requests.RequestException,
        exc.SQLAlchemyError,
        CommandError,
        ImportError,
        OSError,
    ) as error:
        raise _publishing_error(store, error) from error


def _publishing_error(store: MlflowStore, error: BaseException) -> PublishingError:
    return PublishingError(
        f"MLflow at {store.display_uri} rejected the request ({_first_sentence(error, store)}). The results are safe "
        "in the store. Publish them later with `suffrage publish`."
    )


def _first_sentence(error: BaseException, store: MlflowStore) -> str:
    """Return the root cause: MLflow and its libraries wrap errors in one another."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    message = (isinstance(error, OSError) and error.strerror) or str(error).strip() or type(error).__name__
    message = message.splitlines()[0].replace(store.uri, store.display_uri)
    for address in [word for word in message.split() if "://" in word]:
        message = message.replace(address, hide_passwords(address))
    return (message if len(message) <= MAX_REASON_LENGTH else f"{message[:MAX_REASON_LENGTH]} ...").rstrip(".")
