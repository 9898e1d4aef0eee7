"""Publish findings and runs of the store to MLflow.

Everything is published from the store alone, each item once. MLflow runs carry tags with their store and item. Before a
run is created, MLflow is searched for it. Nothing is therefore published twice, even if a program ends between
publishing and recording it in the table `publication`.

Only two modules of this package import MLflow: the client and the publisher. `publishing_process` runs them in
a separate process, which knows nothing of the store: what it is to publish is sent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import NotFoundError
from tracker.queries.sql import tables
from tracker.recording.mlflow.chart_view import TAG, chart_path
from tracker.recording.mlflow.client import open_client
from tracker.recording.mlflow.finding_spec import build_finding_spec, finding_versions
from tracker.recording.mlflow.model_run_spec import RUNS_EXPERIMENT, build_model_run_spec, run_versions
from tracker.recording.mlflow.publications import (
    current_versions,
    forget_runs,
    published_findings,
    save_publications,
    withdrawn_runs,
)
from tracker.recording.mlflow.publish_lock import lock_publishing
from tracker.recording.mlflow.publisher import Publisher, open_publisher
from tracker.recording.mlflow.run_spec import STALE_MARK, Kind, MlflowRunSpec
from tracker.recording.mlflow.tracking_store import MlflowStore, mlflow_store
from tracker.recording.sealing.loading import with_sealed_rows

Progress = Callable[[int, int], None]
Versions = dict[tuple[Kind, int], str]
OpenPublisher = Callable[[MlflowStore, str], AbstractContextManager[Publisher]]
"""Opens an MLflow store for the items of a Suffrage store, by its `database.id`."""


@dataclass(frozen=True, kw_only=True)
class PublishResult:
    """The result of publishing.

    Attributes:
        mlflow_runs: the MLflow run of every requested item, by kind and key.
        n_new: number of new ones.
        n_marked: number of published findings that were tagged as stale, or as no longer stale.
        n_deleted: number of hidden, superseded or deleted runs whose MLflow runs were deleted.
    """

    mlflow_runs: Mapping[tuple[Kind, int], str]
    n_new: int
    n_marked: int = 0
    n_deleted: int = 0


def publish_finding(engine: sa.Engine, finding_id: int, tracking_uri: str) -> str:
    """Publish a finding; return the key of its MLflow run.

    Raises:
        NotFoundError: the finding does not exist.
        PublishingError: MLflow cannot be reached or used.
    """
    with transaction(engine, write=False) as session:
        versions: Versions = {
            ("finding", key): version for key, version in finding_versions(session, [finding_id]).items()
        }
        if not versions:
            raise NotFoundError("analysis", finding_id, finding_versions(session))
    return _publish(engine, versions, tracking_uri).mlflow_runs["finding", finding_id]


def publish_runs(
    engine: sa.Engine,
    run_ids: Collection[int],
    tracking_uri: str,
    progress: Progress | None = None,
    *,
    opener: OpenPublisher = open_publisher,
) -> PublishResult:
    """Publish complete runs, each as an MLflow run in the experiment of its benchmark.

    Args:
        engine: the store.
        run_ids: keys of the runs; those that are not complete are left out.
        tracking_uri: of MLflow.
        progress: called with the number of finished runs, and of all runs.
        opener: opens MLflow's store, by default in this process.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    with transaction(engine, write=False) as session:
        versions: Versions = {("run", key): version for key, version in run_versions(session, run_ids).items()}
    return _publish(engine, versions, tracking_uri, progress, opener=opener)


def publish_missing(engine: sa.Engine, tracking_uri: str, progress: Progress | None = None) -> PublishResult:
    """Publish every finding and every complete run that MLflow does not show in its current version.

    MLflow runs of hidden, superseded or deleted runs are deleted, and stale findings are tagged.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    with transaction(engine, write=False) as session:
        versions: Versions = current_versions(session)
    return _publish(engine, versions, tracking_uri, progress, withdraw=True)


def publish_changes(
    engine: sa.Engine, run_ids: Collection[int], finding_ids: Collection[int], tracking_uri: str
) -> PublishResult:
    """Update MLflow after runs were excluded or restored, together with the findings based on them.

    If none of them was ever published there, MLflow is not opened.

    Args:
        engine: the store.
        run_ids: changed runs; complete ones are published, the MLflow runs of others are deleted.
        finding_ids: findings that became stale, or are no longer stale; published ones are tagged.
        tracking_uri: of MLflow.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        published = published_findings(session, store.display_uri) & set(finding_ids)
        versions: Versions = {("run", key): version for key, version in run_versions(session, run_ids).items()}
        versions |= {("finding", key): version for key, version in finding_versions(session, published).items()}
    return _publish(engine, versions, tracking_uri, withdraw=True)


def publish_report(engine: sa.Engine, spec: MlflowRunSpec, tracking_uri: str) -> str:
    """Log a report to MLflow; return the key of its MLflow run.

    A report that MLflow already has, with the same content, is not logged again.

    Args:
        engine: the store of the report.
        spec: the report, whose version is the digest of its content.
        tracking_uri: of MLflow.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        database_id = session.scalars(sa.select(tables.database.c.id)).one()
    with lock_publishing(engine), open_publisher(store, database_id) as publisher:
        return publisher.find_finished_run(spec) or publisher.create(spec)


def list_charts(tracking_uri: str) -> dict[str, str]:
    """Return the chart of each benchmark's models within MLflow's interface, the last updated benchmark first.

    Creates MLflow's store if there is none yet.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    with open_client(mlflow_store(tracking_uri)) as client:
        experiments = client.search_experiments(
            filter_string=f"name LIKE '{RUNS_EXPERIMENT}%'", order_by=["last_update_time DESC"]
        )
        return {
            experiment.name.removeprefix(RUNS_EXPERIMENT): chart_path(experiment.experiment_id)
            for experiment in experiments
            if TAG in experiment.tags
        }


def mlflow_version(tracking_uri: str) -> str:
    """Return MLflow's version after a successful request.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    with open_client(mlflow_store(tracking_uri)):
        return f"MLflow {version('mlflow')}"


def _publish(
    engine: sa.Engine,
    versions: Versions,
    tracking_uri: str,
    progress: Progress | None = None,
    *,
    withdraw: bool = False,
    opener: OpenPublisher = open_publisher,
) -> PublishResult:
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        gone = withdrawn_runs(session, store.display_uri) if withdraw else []
        database_id = session.scalars(sa.select(tables.database.c.id)).one()
    if not versions and not gone:
        return PublishResult(mlflow_runs={}, n_new=0)
    done: dict[tuple[Kind, int], str] = {}
    new = marked = 0
    with lock_publishing(engine), opener(store, database_id) as publisher:
        if gone:
            publisher.withdraw(gone)
            with transaction(engine) as session:
                forget_runs(session, store.display_uri, gone)
        published = publisher.find_runs(versions) if versions else {}
        try:
            for number, ((kind, key), version) in enumerate(versions.items(), start=1):
                mlflow_runs = published.get((kind, key), [])
                finished = [run for run in mlflow_runs if run.is_finished]
                current = [run for run in finished if run.version == version]
                same_content = [run for run in finished if _content_version(run.version) == _content_version(version)]
                if current or (same_content and not same_content[0].is_active):  # runs deleted by users stay deleted
                    done[kind, key] = (current or same_content)[0].mlflow_run_id
                else:
                    spec = with_sealed_rows(partial(_build_spec, engine, kind, key))
                    done[kind, key] = publisher.mark(same_content[0], spec) if same_content else publisher.create(spec)
                    marked += bool(same_content)
                    new += not same_content
                if outdated := [run for run in mlflow_runs if run.mlflow_run_id != done[kind, key]]:
                    publisher.delete(outdated)
                if progress:
                    progress(number, len(versions))
        finally:
            with transaction(engine) as session:
                save_publications(session, store.display_uri, done, versions)
    return PublishResult(mlflow_runs=done, n_new=new, n_marked=marked, n_deleted=len(gone))


def _build_spec(engine: sa.Engine, kind: Kind, key: int) -> MlflowRunSpec:
    with transaction(engine, write=False) as session:
        return (build_finding_spec if kind == "finding" else build_model_run_spec)(session, key)


def _content_version(version: str) -> str:
    """Return the version of the content, without its staleness."""
    return version.partition(STALE_MARK)[0]
