"""Run an analysis: load its inputs, compute, record the finding, publish it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import DatabaseError, PublishingError, SealedRowsError, SuffrageError
from tracker.plugins.parameters import CPU
from tracker.queries.selection import AnalysisInput, Selection
from tracker.recording.artifacts import Artifact, build_artifacts
from tracker.recording.declaration import Declaration, load_declaration
from tracker.recording.inputs.loading import add_warnings, load_inputs
from tracker.recording.inputs.selection_choices import check_device_choice
from tracker.recording.inputs.workers import Progress, Workers, separate_cluster
from tracker.recording.mlflow.tracking_store import mlflow_store
from tracker.recording.multiplicity.looks import add_looks
from tracker.recording.record import MetricRow, Provenance, make_metric_rows, record_failure, record_finding

if TYPE_CHECKING:
    from tracker.recording.finding import Report


@dataclass(frozen=True, kw_only=True)
class RecordedFinding:
    """A recorded finding.

    Attributes:
        finding_id: its key.
        analysis: name of the analysis.
        report: what the analysis returned.
        metrics: as stored.
        mlflow_run_id: its MLflow run; None if it was not published.
        publishing_problem: why publishing failed; None if it succeeded, or was not requested.
    """

    finding_id: int
    analysis: str
    report: Report
    metrics: Sequence[MetricRow]
    mlflow_run_id: str | None = None
    publishing_problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class ComputedFinding:
    """A finding that is ready to be recorded.

    Attributes:
        provenance: the inputs and parameters that it was computed from.
        report: what the analysis returned.
        metrics: rows of its metrics.
        artifacts: its arrays, tables and figures as files.
        seconds: duration of each step.
    """

    provenance: Provenance
    report: Report
    metrics: Sequence[MetricRow]
    artifacts: Sequence[Artifact]
    seconds: Mapping[str, float]


def run_analysis(
    engine: sa.Engine,
    analysis: str | Declaration,
    selection: Selection | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    workers: Workers = 1,
    device: str = CPU,
    publish_to: str | None = None,
    progress: Progress | None = None,
    limit_hours: float | None = None,
) -> RecordedFinding:
    """Run an analysis of a selection, record the finding, publish it.

    The same inputs and parameters give the same metrics and artifacts, byte for byte, for any number of workers and
    on any device. An analysis that fails after its inputs are loaded is recorded with its error.

    Args:
        engine: the store.
        analysis: its name, or its declaration.
        selection: the selection; None for an analysis of findings of several benchmarks.
        parameters: those that differ from the defaults.
        workers: number of parallel workers; -1 means one per core; an address is that of a Dask scheduler, which may
            also be the selection's ``cluster``.
        device: device to compute on, such as ``cuda``, for an analysis that has the choice.
        publish_to: MLflow's tracking URI; None records only. If MLflow cannot be reached, the finding is still
            recorded, and the result holds the problem.
        progress: receives the number of finished blocks and of all blocks of each loop on a cluster.
        limit_hours: the analysis ends early if one of its loops is expected to take longer; not on a cluster. None for
            no limit.

    Raises:
        SuffrageError: the analysis, data or a parameter does not exist, or the data do not suit the analysis.
        TimeLimitError: the analysis is expected to take longer than ``limit_hours``.
    """
    declaration = analysis if isinstance(analysis, Declaration) else load_declaration(analysis)
    if publish_to is not None:
        mlflow_store(publish_to, engine)  # a setting that can never work is rejected before anything is computed
    computed = compute_finding(
        engine, declaration, selection, parameters, workers=workers, device=device, progress=progress,
        limit_hours=limit_hours,
    )  # fmt: skip
    return record_computed(engine, computed, publish_to=publish_to)


def compute_finding(
    engine: sa.Engine,
    analysis: str | Declaration,
    selection: Selection | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    workers: Workers = 1,
    device: str = CPU,
    progress: Progress | None = None,
    limit_hours: float | None = None,
) -> ComputedFinding:
    """Run an analysis of a selection and draw its figures; `record_computed` records the result.

    An analysis that fails once its inputs are loaded is recorded with its error.

    Args:
        engine, analysis, selection, parameters, workers, device, progress, limit_hours: as for `run_analysis`.

    Raises:
        SuffrageError: as for `run_analysis`.
    """
    selection, workers = separate_cluster(selection, workers)
    declaration = analysis if isinstance(analysis, Declaration) else load_declaration(analysis)
    check_device_choice(declaration, workers, device)
    timer = StepTimer()
    inputs = load_inputs(engine, declaration, selection, parameters)
    timer.lap("load")
    with _recorded_failures(engine, inputs.provenance, timer):
        report = inputs.compute(workers, progress, device, limit_hours)
        timer.lap("compute")
        artifacts = build_artifacts(report)
        timer.lap("draw")
        return _prepare(inputs.provenance, report, artifacts, timer)


def compute_report(
    engine: sa.Engine,
    analysis: str | Declaration,
    selection: Selection | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    workers: int = 1,
    leaders: Sequence[str] | None = None,
    loaded: Mapping[str, AnalysisInput] | None = None,
) -> Report:
    """Run an analysis of a selection without recording; `run_analysis` would record the same report.

    Args:
        engine, analysis, selection, parameters, workers: as for `run_analysis`.
        leaders: what `find_leaders` returns for the selection, if the caller knows it.
        loaded: inputs of this selection that the caller has loaded, by name.

    Raises:
        SuffrageError: as for `run_analysis`.
    """
    inputs = load_inputs(engine, analysis, selection, parameters, leaders, loaded)
    report = inputs.compute(workers)
    with transaction(engine, write=False) as session:
        return add_looks(session, inputs.provenance, report, make_metric_rows(report.finding))


def record_report(
    engine: sa.Engine, provenance: Provenance, report: Report, *, publish_to: str | None = None
) -> RecordedFinding:
    """Record a report that was computed elsewhere, and publish it.

    Args:
        engine: the store.
        provenance: its analysis, code, parameters and data.
        report: the report.
        publish_to: as for `run_analysis`.

    Raises:
        SuffrageError: the tracking URI is invalid, or the store cannot be written.
    """
    if publish_to is not None:
        mlflow_store(publish_to, engine)
    timer, report = StepTimer(), add_warnings((), report)
    artifacts = build_artifacts(report)
    timer.lap("draw")
    recorded = _record(engine, _prepare(provenance, report, artifacts, timer))
    return recorded if publish_to is None else _publish(engine, recorded, publish_to)


def record_computed(engine: sa.Engine, computed: ComputedFinding, *, publish_to: str | None = None) -> RecordedFinding:
    """Record what `compute_finding` returned, and publish it.

    Raises:
        SuffrageError: a run has changed since, or the store cannot be written.
    """
    with _recorded_failures(engine, computed.provenance, StepTimer(computed.seconds)):
        recorded = _record(engine, computed)
    return recorded if publish_to is None else _publish(engine, recorded, publish_to)


def _prepare(
    provenance: Provenance, report: Report, artifacts: Sequence[Artifact], timer: StepTimer
) -> ComputedFinding:
    metrics = make_metric_rows(report.finding)
    return ComputedFinding(
        provenance=provenance, report=report, metrics=metrics, artifacts=artifacts, seconds=timer.laps
    )


def _record(engine: sa.Engine, computed: ComputedFinding) -> RecordedFinding:
    report, metrics = computed.report, computed.metrics
    with transaction(engine) as session:
        key = record_finding(session, computed.provenance, report, metrics, computed.artifacts, computed.seconds)
        report = add_looks(session, computed.provenance, report, metrics, key)
    return RecordedFinding(finding_id=key, analysis=computed.provenance.analysis, report=report, metrics=metrics)


@contextmanager
def _recorded_failures(engine: sa.Engine, provenance: Provenance, timer: StepTimer) -> Iterator[None]:
    """Record the analysis with its error if the block raises one."""
    try:
        yield
    except SealedRowsError:
        raise  # the analysis is begun again
    except DatabaseError:
        raise  # the store cannot be written, so the failure cannot be recorded either
    except Exception as error:
        _record_failure(engine, provenance, error, timer)
        raise


def _record_failure(engine: sa.Engine, provenance: Provenance, error: Exception, timer: StepTimer) -> None:
    """Record that an analysis failed; where the store cannot be written, its own error is what the user sees."""
    message = str(error) if isinstance(error, SuffrageError) else f"{type(error).__name__}: {error}"
    with suppress(DatabaseError), transaction(engine) as session:
        record_failure(session, provenance, message, timer.laps)


def _publish(engine: sa.Engine, recorded: RecordedFinding, tracking_uri: str) -> RecordedFinding:
    from tracker.recording.mlflow.publishing import publish_finding

    try:
        return replace(recorded, mlflow_run_id=publish_finding(engine, recorded.finding_id, tracking_uri))
    except PublishingError as error:
        return replace(recorded, publishing_problem=str(error))


class StepTimer:
    """Measures the seconds spent on each step."""

    def __init__(self, laps: Mapping[str, float] | None = None) -> None:
        self.laps: dict[str, float] = dict(laps or {})
        self._since = time.perf_counter()

    def lap(self, step: str) -> None:
        """End a step, begin the next."""
        until = time.perf_counter()
        self.laps[step], self._since = round(until - self._since, 4), until
