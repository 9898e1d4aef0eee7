"""Run MLflow without telemetry, logs, warnings and prints, and with time limits on requests."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",  # a request that timed out may have been executed: a retry would repeat it
    "MLFLOW_ARTIFACT_UPLOAD_DOWNLOAD_TIMEOUT": "60",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # a server starts in half the time without its job runner
}
LOGGERS = ("mlflow", "alembic", "urllib3")


@contextmanager
def quiet_environment() -> Iterator[None]:
    """Apply default settings where the user has none, and hide warnings; restore everything afterwards."""
    added = [name for name in SETTINGS if name not in os.environ]
    os.environ.update({name: SETTINGS[name] for name in added})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def quiet_loggers() -> Iterator[None]:
    """Silence MLflow's loggers. MLflow must already be imported, because the import sets their levels."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
