"""From the store to MLflow: what is published, when, and what became of it.

What is published is made from the store alone, each thing once. MLflow runs carry tags that say which
store and which analysis or run they show: before one is made, MLflow is asked for it, so that nothing is
published twice even if a program ends between publishing and noting it in the table `publication`.
MLflow itself is imported by the two modules of this package alone: the client and the gallery.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import version

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import NotFoundError
from tracker.queries import tables
from tracker.recording.mlflow.client import opened
from tracker.recording.mlflow.finding_spec import analysis_versions, exhibit_of_analysis
from tracker.recording.mlflow.model_run_spec import exhibit_of_run, run_versions
from tracker.recording.mlflow.publications import forget_runs, note, published_findings, wanted_versions, withdrawn_runs
from tracker.recording.mlflow.publish_lock import one_publisher
from tracker.recording.mlflow.publisher import Gallery, is_active, is_finished, version_shown
from tracker.recording.mlflow.run_spec import STALE_MARK, Exhibit, Kind
from tracker.recording.mlflow.tracking_store import MlflowStore, mlflow_store

Progress = Callable[[int, int], None]
Wanted = dict[tuple[Kind, int], str]


@dataclass(frozen=True, kw_only=True)
class Published:
    """What publishing has done.

    Attributes:
        mlflow_runs: the MLflow run of everything that was asked for, by kind and key.
        n_new: how many of them were made just now.
        n_marked: of findings that were shown already, on how many it was noted that they are stale, or no longer so.
        n_taken_down: runs that were hidden, superseded or deleted, and are not shown any more.
    """

    mlflow_runs: Mapping[tuple[Kind, int], str]
    n_new: int
    n_marked: int = 0
    n_taken_down: int = 0


def publish_analysis(engine: sa.Engine, finding_id: int, tracking_uri: str) -> str:
    """Publish a finding; the key of its MLflow run.

    Raises:
        NotFoundError: there is no such finding.
        PublishingError: MLflow could not be reached or used.
    """
    with transaction(engine, write=False) as session:
        wanted: Wanted = {("finding", key): said for key, said in analysis_versions(session, [finding_id]).items()}
        if not wanted:
            raise NotFoundError("analysis", finding_id, analysis_versions(session))
    return _publish(engine, wanted, tracking_uri).mlflow_runs["finding", finding_id]


def publish_runs(
    engine: sa.Engine, run_ids: Collection[int], tracking_uri: str, progress: Progress | None = None
) -> Published:
    """Publish complete runs, each as an MLflow run in the experiment of its benchmark.

    Args:
        engine: the store.
        run_ids: which; those that are not complete are left out.
        tracking_uri: of MLflow.
        progress: told how many are done, of how many.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    with transaction(engine, write=False) as session:
        wanted: Wanted = {("run", key): said for key, said in run_versions(session, run_ids).items()}
    return _publish(engine, wanted, tracking_uri, progress)


def publish_missing(engine: sa.Engine, tracking_uri: str, progress: Progress | None = None) -> Published:
    """Publish every finding and every complete run that MLflow does not show as it is now.

    Runs that were hidden, superseded or deleted are taken down, and stale findings say so.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    with transaction(engine, write=False) as session:
        wanted: Wanted = wanted_versions(session)
    return _publish(engine, wanted, tracking_uri, progress, withdraw=True)


def publish_changes(
    engine: sa.Engine, run_ids: Collection[int], finding_ids: Collection[int], tracking_uri: str
) -> Published:
    """Have MLflow show what became of runs that were set aside or taken back, and of what rests on them.

    Where nothing of it was ever published there, MLflow is not even opened.

    Args:
        engine: the store.
        run_ids: those that changed; complete ones are published, others taken down.
        finding_ids: findings that are stale now, or no longer; those that are shown are marked.
        tracking_uri: of MLflow.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        shown = published_findings(session, store.shown) & set(finding_ids)
        wanted: Wanted = {("run", key): said for key, said in run_versions(session, run_ids).items()}
        wanted |= {("finding", key): said for key, said in analysis_versions(session, shown).items()}
    return _publish(engine, wanted, tracking_uri, withdraw=True)


def publish_report(engine: sa.Engine, exhibit: Exhibit, tracking_uri: str) -> str:
    """Keep a file made for people in MLflow; the key of the MLflow run that holds it.

    One that MLflow holds already, with the same content, is not published again.

    Args:
        engine: the store that it was made from.
        exhibit: the report, whose version is the digest of its content.
        tracking_uri: of MLflow.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        database_id = session.scalars(sa.select(tables.database.c.id)).one()
    with one_publisher(engine), opened(store) as client:
        gallery = Gallery(client, store, database_id)
        return gallery.holding(exhibit) or gallery.hang(exhibit)


def prepare_store(tracking_uri: str) -> MlflowStore:
    """Make MLflow's store if there is none yet.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    store = mlflow_store(tracking_uri)
    with opened(store):
        return store


def reached(tracking_uri: str) -> str:
    """MLflow's version, once it has been seen to answer.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    with opened(mlflow_store(tracking_uri)):
        return f"MLflow {version('mlflow')}"


def _publish(
    engine: sa.Engine, wanted: Wanted, tracking_uri: str, progress: Progress | None = None, *, withdraw: bool = False
) -> Published:
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        gone = withdrawn_runs(session, store.shown) if withdraw else []
        database_id = session.scalars(sa.select(tables.database.c.id)).one()
    if not wanted and not gone:
        return Published(mlflow_runs={}, n_new=0)
    done: dict[tuple[Kind, int], str] = {}
    new = marked = 0
    with one_publisher(engine), opened(store) as client:
        gallery = Gallery(client, store, database_id)
        if gone:
            gallery.withdraw(gone)
            with transaction(engine) as session:
                forget_runs(session, store.shown, gone)
        shown = gallery.shown(wanted) if wanted else {}
        try:
            for number, ((kind, key), said) in enumerate(wanted.items(), start=1):
                there = shown.get((kind, key), [])
                current = [run for run in there if is_finished(run) and version_shown(run) == said]
                alike = [run for run in there if is_finished(run) and _apart(version_shown(run)) == _apart(said)]
                if current or (alike and not is_active(alike[0])):  # what people have deleted stays as it is
                    done[kind, key] = (current or alike)[0].info.run_id
                else:
                    with transaction(engine, write=False) as session:
                        exhibit = (exhibit_of_analysis if kind == "finding" else exhibit_of_run)(session, key)
                    done[kind, key] = gallery.mark(alike[0], exhibit) if alike else gallery.hang(exhibit)
                    marked += bool(alike)
                    new += not alike
                gallery.take_down(run for run in there if run.info.run_id != done[kind, key])
                if progress:
                    progress(number, len(wanted))
        finally:
            with transaction(engine) as session:
                note(session, store.shown, done, wanted)
    return Published(mlflow_runs=done, n_new=new, n_marked=marked, n_taken_down=len(gone))


def _apart(version: str) -> str:
    """What is shown, apart from whether it is stale."""
    return version.partition(STALE_MARK)[0]
