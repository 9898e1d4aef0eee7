"""From the store to MLflow; the only module that knows MLflow.

What is published is made from the store alone, each thing once. MLflow runs carry tags that say which
store and which analysis or run they show: before one is made, MLflow is asked for it, so that nothing is
published twice even if a program ends between publishing and noting it in the table `publication`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.database import known_versions, transaction
from tracker.errors import NotFoundError, PublishingError
from tracker.queries import tables
from tracker.recording.exhibit import (
    LONGEST_PARAMETER,
    LONGEST_TAG,
    STALE_MARK,
    STALE_TAG,
    Exhibit,
    Kind,
    ascii_name,
    cut,
)
from tracker.recording.exhibit_of_analysis import analysis_versions, exhibit_of_analysis
from tracker.recording.exhibit_of_run import exhibit_of_run, run_versions
from tracker.recording.mlflow_store import MlflowStore, mlflow_store, without_passwords
from tracker.recording.publications import forget_runs, note, published_findings, wanted_versions, withdrawn_runs
from tracker.recording.quiet import quiet_environment, quiet_loggers
from tracker.recording.turns import one_publisher, one_user

PER_BATCH = 100
"""Parameters that MLflow takes in one call."""

ASKED_ONE_BY_ONE = 30
"""Up to so many things MLflow is asked for each; beyond, for all of this store at once."""

LONGEST_REASON = 300
CONTENT_TAG = "suffrage.content"

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


def publish_analysis(engine: sa.Engine, analysis_id: int, tracking_uri: str) -> str:
    """Publish a finding; the key of its MLflow run.

    Raises:
        NotFoundError: there is no such finding.
        PublishingError: MLflow could not be reached or used.
    """
    with transaction(engine, write=False) as session:
        wanted: Wanted = {("analysis", key): said for key, said in analysis_versions(session, [analysis_id]).items()}
        if not wanted:
            raise NotFoundError("analysis", analysis_id, analysis_versions(session))
    return _publish(engine, wanted, tracking_uri).mlflow_runs["analysis", analysis_id]


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
    engine: sa.Engine, run_ids: Collection[int], analysis_ids: Collection[int], tracking_uri: str
) -> Published:
    """Have MLflow show what became of runs that were set aside or taken back, and of what rests on them.

    Where nothing of it was ever published there, MLflow is not even opened.

    Args:
        engine: the store.
        run_ids: those that changed; complete ones are published, others taken down.
        analysis_ids: findings that are stale now, or no longer; those that are shown are marked.
        tracking_uri: of MLflow.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    store = mlflow_store(tracking_uri, engine)
    with transaction(engine, write=False) as session:
        shown = published_findings(session, store.shown) & set(analysis_ids)
        wanted: Wanted = {("run", key): said for key, said in run_versions(session, run_ids).items()}
        wanted |= {("analysis", key): said for key, said in analysis_versions(session, shown).items()}
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
    with one_publisher(engine), _client(store) as client:
        gallery = _Gallery(client, store, database_id)
        return gallery.holding(exhibit) or gallery.hang(exhibit)


def prepare_store(tracking_uri: str) -> MlflowStore:
    """Make MLflow's store if there is none yet.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    store = mlflow_store(tracking_uri)
    with _client(store):
        return store


def reached(tracking_uri: str) -> str:
    """MLflow's version, once it has been seen to answer.

    Raises:
        PublishingError: MLflow could not be reached or used.
    """
    with _client(mlflow_store(tracking_uri)):
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
    with one_publisher(engine), _client(store) as client:
        gallery = _Gallery(client, store, database_id)
        if gone:
            gallery.withdraw(gone)
            with transaction(engine) as session:
                forget_runs(session, store.shown, gone)
        shown = gallery.shown(wanted) if wanted else {}
        try:
            for number, ((kind, key), said) in enumerate(wanted.items(), start=1):
                there = shown.get((kind, key), [])
                current = [run for run in there if _is_finished(run) and _shows(run) == said]
                alike = [run for run in there if _is_finished(run) and _apart(_shows(run)) == _apart(said)]
                if current or (alike and not _is_active(alike[0])):  # what people have deleted stays as it is
                    done[kind, key] = (current or alike)[0].info.run_id
                else:
                    with transaction(engine, write=False) as session:
                        exhibit = (exhibit_of_analysis if kind == "analysis" else exhibit_of_run)(session, key)
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


class _Gallery:
    """The part of an MLflow store that shows one store of ours."""

    def __init__(self, client: Any, store: MlflowStore, database_id: str) -> None:
        self.client, self.store, self.database_id = client, store, database_id
        self.experiments: dict[str, str] = {}

    def shown(self, wanted: Collection[tuple[Kind, int]]) -> dict[tuple[Kind, int], list[Any]]:
        """The MLflow runs of each thing: finished ones first, those that people have deleted last."""
        from mlflow.entities import ViewType

        experiments = self.client.search_experiments(filter_string="name LIKE 'suffrage/%'", view_type=ViewType.ALL)
        ours = f"tags.`suffrage.database_id` = '{self.database_id}'"
        filters = [ours]
        if len(wanted) <= ASKED_ONE_BY_ONE:
            filters = [f"{ours} AND tags.`suffrage.{kind}_id` = '{key}'" for kind, key in wanted]
        found: dict[tuple[Kind, int], list[Any]] = {}
        for wish in filters if experiments else ():
            token = None
            while True:
                page = self.client.search_runs(
                    [one.experiment_id for one in experiments], wish, ViewType.ALL, page_token=token
                )
                for run in page:
                    for kind in ("analysis", "run"):
                        if key := run.data.tags.get(f"suffrage.{kind}_id"):
                            found.setdefault((kind, int(key)), []).append(run)
                token = page.token
                if not token:
                    break
        for runs in found.values():
            runs.sort(key=lambda run: (not _is_finished(run), run.info.lifecycle_stage != "active", run.info.run_id))
        return found

    def holding(self, exhibit: Exhibit) -> str | None:
        """The finished MLflow run with exactly this content in its experiment; None where there is none."""
        experiment = self.client.get_experiment_by_name(exhibit.experiment)
        if experiment is None:
            return None
        ours = f"tags.`suffrage.database_id` = '{self.database_id}' AND tags.`{CONTENT_TAG}` = '{exhibit.version}'"
        found = self.client.search_runs([experiment.experiment_id], ours, order_by=["attributes.start_time"])
        return next((str(run.info.run_id) for run in found if _is_finished(run)), None)

    def hang(self, exhibit: Exhibit) -> str:
        """Make the MLflow run of an exhibit; the tag that says it is whole is its status, set last."""
        from mlflow.entities import Metric, Param

        ended = _milliseconds(exhibit.ended)
        tags = dict(exhibit.tags) | {
            f"suffrage.{exhibit.kind}_id": str(exhibit.ref_id),
            "suffrage.database_id": self.database_id,
            CONTENT_TAG: exhibit.version,
            "suffrage.publisher": f"suffrage {version('suffrage')}",
            "suffrage.schema": known_versions()[-1],
            "mlflow.note.content": exhibit.note,
            "mlflow.source.name": "suffrage",
        }
        run_id: str = self.client.create_run(
            self._experiment(exhibit),
            start_time=_milliseconds(exhibit.started),
            run_name=ascii_name(exhibit.run_name),
            tags={name: cut(value, LONGEST_TAG) for name, value in tags.items()},
        ).info.run_id
        parameters = [Param(name, cut(value, LONGEST_PARAMETER)) for name, value in exhibit.parameters.items()]
        metrics = [Metric(name, value, ended, 0) for name, value in exhibit.metrics.items()]
        self.client.log_batch(run_id, metrics=metrics, params=parameters[:PER_BATCH])
        for start in range(PER_BATCH, len(parameters), PER_BATCH):
            self.client.log_batch(run_id, params=parameters[start : start + PER_BATCH])
        if exhibit.files:
            with tempfile.TemporaryDirectory(prefix="suffrage-") as folder:
                for name, content in exhibit.files.items():
                    path = Path(folder, name)
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content)
                self.client.log_artifacts(run_id, folder)
        self.client.set_terminated(run_id, "FINISHED", ended)
        return run_id

    def mark(self, mlflow_run: Any, exhibit: Exhibit) -> str:
        """Note on an MLflow run that its finding is stale, or that it holds again; its key."""
        run_id: str = mlflow_run.info.run_id
        if STALE_TAG in mlflow_run.data.tags and STALE_TAG not in exhibit.tags:
            self.client.delete_tag(run_id, STALE_TAG)
        for name, value in (
            *((name, value) for name, value in exhibit.tags.items() if name == STALE_TAG),
            ("mlflow.note.content", exhibit.note),
            (CONTENT_TAG, exhibit.version),
        ):
            self.client.set_tag(run_id, name, cut(value, LONGEST_TAG))
        return run_id

    def withdraw(self, run_ids: Collection[int]) -> None:
        """Take down what shows runs that are not to be used; should they be again, they are shown anew."""
        keys: set[tuple[Kind, int]] = {("run", key) for key in run_ids}
        for what, runs in self.shown(keys).items():
            if what in keys:
                for run in runs:
                    if _is_active(run):
                        self.client.set_tag(run.info.run_id, CONTENT_TAG, "withdrawn")
                self.take_down(iter(runs))

    def take_down(self, runs: Iterator[Any]) -> None:
        """Delete MLflow runs that show what is no longer so, or were never finished."""
        for run in runs:
            if _is_active(run):
                self.client.delete_run(run.info.run_id)

    def _experiment(self, exhibit: Exhibit) -> str:
        if exhibit.experiment not in self.experiments:
            self.experiments[exhibit.experiment] = self._find_or_make(exhibit)
        return self.experiments[exhibit.experiment]

    def _find_or_make(self, exhibit: Exhibit) -> str:
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(exhibit.experiment)
        if found is None:
            tags = {
                "mlflow.note.content": exhibit.about_experiment,
                "mlflow.experimentKind": "custom_model_development",
            }
            if exhibit.primary_metric:
                tags["mlflow.experiment.primaryMetric.name"] = exhibit.primary_metric
                tags["mlflow.experiment.primaryMetric.greaterIsBetter"] = str(exhibit.higher_is_better)
            where = self.store.artifacts and self.store.artifacts.as_uri()
            try:
                return str(self.client.create_experiment(exhibit.experiment, artifact_location=where, tags=tags))
            except MlflowException:  # another store's publisher may have been faster
                found = self.client.get_experiment_by_name(exhibit.experiment)
                if found is None:
                    raise
        if found.lifecycle_stage != "active":
            self.client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)


def _is_finished(run: Any) -> bool:
    return bool(run.info.status == "FINISHED")


def _is_active(run: Any) -> bool:
    return bool(run.info.lifecycle_stage == "active")


def _shows(run: Any) -> str:
    return str(run.data.tags.get(CONTENT_TAG, ""))


def _apart(version: str) -> str:
    """What is shown, apart from whether it is stale."""
    return version.partition(STALE_MARK)[0]


def _milliseconds(moment: datetime) -> int:
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@contextmanager
def _client(store: MlflowStore) -> Iterator[Any]:
    """MLflow's client, quiet; whatever goes wrong in it is one sentence."""
    with quiet_environment():
        import requests
        from mlflow.exceptions import MlflowException

        with quiet_loggers():
            client = _opened(store)
            try:
                yield client
            except (MlflowException, requests.RequestException, OSError) as error:
                raise _refusal(store, error) from error


def _opened(store: MlflowStore) -> Any:
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
