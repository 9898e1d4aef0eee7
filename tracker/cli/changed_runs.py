"""Report what changes of runs did to findings, and update MLflow."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tracker.cli.output import warn
from tracker.name_lists import join_names

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_NAMES = 8


def describe_findings(keys: Collection[int]) -> str:
    """Return ``finding 3`` or ``findings 3, 5 and 8``."""
    return f"finding{'s' * (len(keys) > 1)} {join_names(keys, MAX_NAMES)}"


def update_mlflow(engine: Engine, run_ids: Collection[int], finding_ids: Collection[int], tracking_uri: str) -> None:
    """Update the MLflow runs of changed runs and findings; a failure is a warning, since the store is changed already.

    Args:
        engine: the store.
        run_ids: runs that were changed or deleted.
        finding_ids: findings that became stale, or are no longer stale.
        tracking_uri: of MLflow.
    """
    from tracker.errors import PublishingError
    from tracker.recording.mlflow.publishing import publish_changes

    try:
        publish_changes(engine, run_ids, finding_ids, tracking_uri)
    except PublishingError as error:
        warn(str(error))
