"""The MLflow runs of one store: find, create, tag and delete them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from tracker.connections.schema_versions import known_versions
from tracker.private_files.temporary import temporary_folder
from tracker.recording.mlflow import chart_view
from tracker.recording.mlflow.client import open_client
from tracker.recording.mlflow.page_links import add_links, format_links, page_address
from tracker.recording.mlflow.run_spec import (
    MAX_PARAMETER_LENGTH,
    MAX_TAG_LENGTH,
    STALE_TAG,
    Kind,
    MlflowRunSpec,
    ascii_name,
    truncate,
)
from tracker.recording.mlflow.tracking_store import MlflowStore
from tracker.version import __version__

PER_BATCH = 100
"""Maximum number of parameters per MLflow request."""

MAX_SEPARATE_QUERIES = 30
"""Up to this number, MLflow runs are searched one by one; beyond it, by one search for the whole store."""

CONTENT_TAG = "suffrage.content"
DESCRIPTION_TAG = "mlflow.note.content"
PRIMARY_METRIC = "mlflow.experiment.primaryMetric.name"
HIGHER_IS_BETTER = "mlflow.experiment.primaryMetric.greaterIsBetter"


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """An MLflow run of this store.

    Attributes:
        mlflow_run_id: its key.
        experiment_id: key of its experiment.
        version: version of its content.
        is_finished: whether it is complete.
        is_active: whether no user has deleted it.
        is_stale: whether it is tagged as stale.
    """

    mlflow_run_id: str
    experiment_id: str
    version: str
    is_finished: bool
    is_active: bool
    is_stale: bool


Published = dict[tuple[Kind, int], list[PublishedRun]]


class Publisher(Protocol):
    """What publishing needs of MLflow."""

    def find_runs(self, keys: Collection[tuple[Kind, int]]) -> Published:
        """Return the MLflow runs of each item: finished ones first, those deleted by users last."""

    def create(self, spec: MlflowRunSpec) -> str:
        """Create the MLflow run of a spec, and return its key."""

    def mark(self, mlflow_run: PublishedRun, spec: MlflowRunSpec) -> str:
        """Tag an MLflow run whose finding became stale, or is no longer stale; return its key."""

    def withdraw(self, run_ids: Collection[int]) -> None:
        """Delete the MLflow runs of excluded runs."""

    def delete(self, runs: Sequence[PublishedRun]) -> None:
        """Delete MLflow runs that are outdated or incomplete."""


@contextmanager
def open_publisher(store: MlflowStore, database_id: str) -> Iterator[MlflowPublisher]:
    """Open MLflow in this process.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    with open_client(store) as client:
        yield MlflowPublisher(client, store, database_id)


class MlflowPublisher:
    """The MLflow runs of one store in an MLflow store."""

    def __init__(self, client: Any, store: MlflowStore, database_id: str) -> None:
        self.client, self.store, self.database_id = client, store, database_id
        self.experiments: dict[str, str] = {}

    def find_runs(self, keys: Collection[tuple[Kind, int]]) -> Published:
        """Return the MLflow runs of each item: finished ones first, those deleted by users last."""
        from mlflow.entities import ViewType

        experiments = self.client.search_experiments(filter_string="name LIKE 'suffrage/%'", view_type=ViewType.ALL)
        of_store = f"tags.`suffrage.database_id` = '{self.database_id}'"
        filters = [of_store]
        if len(keys) <= MAX_SEPARATE_QUERIES:
            filters = [f"{of_store} AND tags.`suffrage.{kind}_id` = '{key}'" for kind, key in keys]
        mlflow_runs: Published = {}
        for wish in filters if experiments else ():
            token = None
            while True:
                page = self.client.search_runs(
                    [experiment.experiment_id for experiment in experiments], wish, ViewType.ALL, page_token=token
                )
                for run in page:
                    for kind in ("finding", "run"):
                        if key := run.data.tags.get(f"suffrage.{kind}_id"):
                            mlflow_runs.setdefault((kind, int(key)), []).append(_describe_run(run))
                token = page.token
                if not token:
                    break
        for runs in mlflow_runs.values():
            runs.sort(key=lambda run: (not run.is_finished, not run.is_active, run.mlflow_run_id))
        return mlflow_runs

    def find_finished_run(self, spec: MlflowRunSpec) -> str | None:
        """Return the finished MLflow run with exactly this content in its experiment; None without one."""
        experiment = self.client.get_experiment_by_name(spec.experiment)
        if experiment is None:
            return None
        query = f"tags.`suffrage.database_id` = '{self.database_id}' AND tags.`{CONTENT_TAG}` = '{spec.version}'"
        mlflow_runs = self.client.search_runs([experiment.experiment_id], query, order_by=["attributes.start_time"])
        return next((str(run.info.run_id) for run in mlflow_runs if _describe_run(run).is_finished), None)

    def create(self, spec: MlflowRunSpec) -> str:
        """Create the MLflow run of a spec; its status is set last and marks it as complete."""
        from mlflow.entities import Metric, Param

        ended, experiment_id = _milliseconds(spec.ended), self._experiment(spec)
        tags = dict(spec.tags) | {
            f"suffrage.{spec.kind}_id": str(spec.ref_id),
            "suffrage.database_id": self.database_id,
            CONTENT_TAG: spec.version,
            "suffrage.publisher": f"suffrage {__version__}",
            "suffrage.schema": known_versions()[-1],
            DESCRIPTION_TAG: self._describe(spec, experiment_id),
            "mlflow.source.name": "suffrage",
        }
        run_id: str = self.client.create_run(
            experiment_id,
            start_time=_milliseconds(spec.started),
            run_name=ascii_name(spec.run_name),
            tags={name: truncate(value, MAX_TAG_LENGTH) for name, value in tags.items()},
        ).info.run_id
        parameters = [Param(name, truncate(value, MAX_PARAMETER_LENGTH)) for name, value in spec.parameters.items()]
        metrics = [Metric(name, value, ended, 0) for name, value in spec.metrics.items()]
        self.client.log_batch(run_id, metrics=metrics, params=parameters[:PER_BATCH])
        for start in range(PER_BATCH, len(parameters), PER_BATCH):
            self.client.log_batch(run_id, params=parameters[start : start + PER_BATCH])
        if spec.files:
            if self.store.artifacts is not None:
                self.store.artifacts.mkdir(mode=0o700, exist_ok=True)
            with temporary_folder() as folder:
                for name, content in spec.files.items():
                    path = folder / name
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content)
                self.client.log_artifacts(run_id, str(folder))
        self.client.set_terminated(run_id, "FINISHED", ended)
        return run_id

    def mark(self, mlflow_run: PublishedRun, spec: MlflowRunSpec) -> str:
        """Tag an MLflow run whose finding became stale, or is no longer stale; return its key."""
        run_id = mlflow_run.mlflow_run_id
        if mlflow_run.is_stale and STALE_TAG not in spec.tags:
            self.client.delete_tag(run_id, STALE_TAG)
        for name, value in (
            *((name, value) for name, value in spec.tags.items() if name == STALE_TAG),
            (DESCRIPTION_TAG, self._describe(spec, mlflow_run.experiment_id)),
            (CONTENT_TAG, spec.version),
        ):
            self.client.set_tag(run_id, name, truncate(value, MAX_TAG_LENGTH))
        return run_id

    def withdraw(self, run_ids: Collection[int]) -> None:
        """Delete the MLflow runs of excluded runs; restored runs are published again."""
        keys: set[tuple[Kind, int]] = {("run", key) for key in run_ids}
        for shown_thing, runs in self.find_runs(keys).items():
            if shown_thing in keys:
                for run in runs:
                    if run.is_active:
                        self.client.set_tag(run.mlflow_run_id, CONTENT_TAG, "withdrawn")
                self.delete(runs)

    def delete(self, runs: Sequence[PublishedRun]) -> None:
        """Delete MLflow runs that are outdated or incomplete."""
        for run in runs:
            if run.is_active:
                self.client.delete_run(run.mlflow_run_id)

    def _describe(self, spec: MlflowRunSpec, experiment_id: str) -> str:
        """Return the description of an MLflow run, with links."""
        chart = chart_view.chart_path(experiment_id) if spec.primary_metric else ""
        name = f"{spec.kind.capitalize()} {spec.ref_id} in `suffrage serve`"
        return add_links(spec.description, [(name, page_address(spec.page)), ("All models by mean", chart)])

    def _experiment(self, spec: MlflowRunSpec) -> str:
        if spec.experiment not in self.experiments:
            self.experiments[spec.experiment] = self._find_or_make(spec)
        return self.experiments[spec.experiment]

    def _find_or_make(self, spec: MlflowRunSpec) -> str:
        """Return the key of the experiment; its view follows the number of models."""
        experiment = self.client.get_experiment_by_name(spec.experiment) or self._make_experiment(spec)
        key = str(experiment.experiment_id)
        if experiment.lifecycle_stage != "active":
            self.client.restore_experiment(key)
        metric = experiment.tags.get(PRIMARY_METRIC) or spec.primary_metric
        if metric and spec.primary_metric:
            is_higher = experiment.tags.get(HIGHER_IS_BETTER, str(spec.higher_is_better)) == "True"
            view = chart_view.build_view(metric, spec.n_models, higher_is_better=is_higher)
            if experiment.tags.get(chart_view.TAG) != view:
                self.client.set_experiment_tag(key, chart_view.TAG, view)
        return key

    def _make_experiment(self, spec: MlflowRunSpec) -> Any:
        from mlflow.exceptions import MlflowException

        tags = {DESCRIPTION_TAG: spec.about_experiment, "mlflow.experimentKind": "custom_model_development"}
        if spec.primary_metric:
            tags |= {PRIMARY_METRIC: spec.primary_metric, HIGHER_IS_BETTER: str(spec.higher_is_better)}
        where = self.store.artifacts and self.store.artifacts.as_uri()
        try:
            key = str(self.client.create_experiment(spec.experiment, artifact_location=where, tags=tags))
        except MlflowException:  # another store's publisher may have been faster
            experiment = self.client.get_experiment_by_name(spec.experiment)
            if experiment is None:
                raise
            return experiment
        chart = chart_view.chart_path(key) if spec.primary_metric else ""
        links = [("All models by mean", chart), ("Benchmark in `suffrage serve`", page_address(spec.experiment_page))]
        # First, because MLflow shows one line until the reader asks for more.
        description = " ".join(filter(None, [format_links(links), spec.about_experiment]))
        self.client.set_experiment_tag(key, DESCRIPTION_TAG, description)
        return self.client.get_experiment(key)


def _describe_run(run: Any) -> PublishedRun:
    """Return the facts of a run of MLflow's client."""
    return PublishedRun(
        mlflow_run_id=str(run.info.run_id),
        experiment_id=str(run.info.experiment_id),
        version=str(run.data.tags.get(CONTENT_TAG, "")),
        is_finished=run.info.status == "FINISHED",
        is_active=run.info.lifecycle_stage == "active",
        is_stale=STALE_TAG in run.data.tags,
    )


def _milliseconds(moment: datetime) -> int:
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
