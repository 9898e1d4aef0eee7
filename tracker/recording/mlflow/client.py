"""MLflow's client, opened quietly; whatever goes wrong in it is one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.errors import PublishingError
from tracker.recording.mlflow.mlflow_logging import quiet_environment, quiet_loggers
from tracker.recording.mlflow.publish_lock import one_user
from tracker.recording.mlflow.tracking_store import MlflowStore, without_passwords

LONGEST_REASON = 300


@contextmanager
def opened(store: MlflowStore) -> Iterator[Any]:
    """MLflow's client, quiet; whatever goes wrong in it is one sentence."""
    with quiet_environment():
        import requests
        from mlflow.exceptions import MlflowException

        with quiet_loggers():
            client = _reached(store)
            try:
                yield client
            except (MlflowException, requests.RequestException, OSError) as error:
                raise _refusal(store, error) from error


def _reached(store: MlflowStore) -> Any:
    import requests
    from alembic.util import CommandError
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    try:
        if not store.is_server:  # MLflow would try again for minutes
            with sa.create_engine(store.uri, poolclass=sa.NullPool).connect() as connection:
                sa.inspect(connection).get_table_names()
        with one_user(store):  # its first use makes 60 tables, which two processes cannot do at once
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
        raise _refusal(store, error) from error


def _refusal(store: MlflowStore, error: BaseException) -> PublishingError:
    return PublishingError(
        f"MLflow at {store.shown} did not take it ({_first_sentence(error, store)}). "
        "Everything is safe in the store; `suffrage publish` makes it up."
    )


def _first_sentence(error: BaseException, store: MlflowStore) -> str:
    """What is at the bottom of it: MLflow and its libraries wrap errors in one another."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    said = (isinstance(error, OSError) and error.strerror) or str(error).strip() or type(error).__name__
    said = said.splitlines()[0].replace(store.uri, store.shown)
    for address in [word for word in said.split() if "://" in word]:
        said = said.replace(address, without_passwords(address))
    return (said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]} ...").rstrip(".")
