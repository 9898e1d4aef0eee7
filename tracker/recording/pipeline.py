"""Run an analysis: load its inputs, compute, record the finding, publish it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import DatabaseError, PluginError, PublishingError, SelectionError, SuffrageError
from tracker.queries.catalogue.unverified_runs import list_unverified_warnings
from tracker.queries.embeddings import Embeddings, StoredEmbeddings
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.notices import get_default_metric, list_notices
from tracker.queries.ranking.leaders import find_leaders
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import MIN_COVERAGE, Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PromptWeights
from tracker.recording.artifacts import Artifact, build_artifacts
from tracker.recording.declaration import SELECTION_OPTIONS, Declaration, load_declaration
from tracker.recording.mlflow.tracking_store import mlflow_store
from tracker.recording.record import MetricRow, Provenance, make_metric_rows, record_failure, record_finding
from tracker.recording.verdict.leaders import name_leaders

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

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
    workers: int = 1,
    publish_to: str | None = None,
) -> RecordedFinding:
    """Run an analysis of a selection, record the finding, publish it.

    The same inputs and parameters give the same metrics and artifacts, byte for byte, for any number of workers. An
    analysis that fails after its inputs are loaded is recorded with its error.

    Args:
        engine: the store.
        analysis: its name, or its declaration.
        selection: the selection; None for an analysis of findings of several benchmarks.
        parameters: those that differ from the defaults.
        workers: number of parallel workers; -1 means one per core.
        publish_to: MLflow's tracking URI; None records only. If MLflow cannot be reached, the finding is still
            recorded, and the result holds the problem.

    Raises:
        SuffrageError: the analysis, data or a parameter does not exist, or the data do not suit the analysis.
    """
    declaration = analysis if isinstance(analysis, Declaration) else load_declaration(analysis)
    if publish_to is not None:
        mlflow_store(publish_to, engine)  # a setting that can never work is rejected before anything is computed
    computed = compute_finding(engine, declaration, selection, parameters, workers=workers)
    return record_computed(engine, computed, publish_to=publish_to)


def compute_finding(
    engine: sa.Engine,
    analysis: str | Declaration,
    selection: Selection | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    workers: int = 1,
) -> ComputedFinding:
    """Run an analysis of a selection and draw its figures; `record_computed` records the result.

    An analysis that fails once its inputs are loaded is recorded with its error.

    Args:
        engine, analysis, selection, parameters, workers: as for `run_analysis`.

    Raises:
        SuffrageError: as for `run_analysis`.
    """
    timer = StepTimer()
    inputs = _load_inputs(engine, analysis, selection, parameters)
    timer.lap("load")
    with _recorded_failures(engine, inputs.provenance, timer):
        report = inputs.compute(workers)
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
) -> Report:
    """Run an analysis of a selection without recording; `run_analysis` would record the same report.

    Args:
        engine, analysis, selection, parameters, workers: as for `run_analysis`.

    Raises:
        SuffrageError: as for `run_analysis`.
    """
    return _load_inputs(engine, analysis, selection, parameters).compute(workers)


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
    timer, report = StepTimer(), _add_warnings((), report)
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
    return RecordedFinding(finding_id=key, analysis=computed.provenance.analysis, report=report, metrics=metrics)


@contextmanager
def _recorded_failures(engine: sa.Engine, provenance: Provenance, timer: StepTimer) -> Iterator[None]:
    """Record the analysis with its error if the block raises one."""
    try:
        yield
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


@dataclass(frozen=True, kw_only=True)
class _AnalysisInputs:
    """The loaded inputs of an analysis; ``warnings`` are about them, ``leaders`` those of the leaderboard."""

    declaration: Declaration
    values: Sequence[Any]
    parameters: Mapping[str, Any]
    provenance: Provenance
    warnings: Sequence[str]
    leaders: Sequence[str] = ()

    def compute(self, workers: int) -> Report:
        """Run the analysis."""
        import joblib

        from tracker.recording.finding import Report

        with joblib.parallel_config(n_jobs=workers, backend="threading"):
            report = self.declaration.function(*self.values, **self.parameters)
        if not isinstance(report, Report):
            raise PluginError(f"The analysis {self.declaration.name} returned a {type(report).__name__}, not a Report.")
        report = _add_warnings(self.warnings, report)
        if self.provenance.selection is None or not self.declaration.score_units:
            return report
        return name_leaders(report, self.values, self.provenance.selection, self.leaders)


def _load_inputs(
    engine: sa.Engine,
    analysis: str | Declaration,
    selection: Selection | None,
    explicit_parameters: Mapping[str, Any] | None,
) -> _AnalysisInputs:
    declaration = analysis if isinstance(analysis, Declaration) else load_declaration(analysis)
    parameters = declaration.complete(explicit_parameters or {})
    _check_selection(declaration, selection)
    with transaction(engine, write=False) as session:
        benchmark = find_benchmark(session, selection.benchmark) if selection else None
        selection = _choose_policy(session, declaration, selection)
        inputs = {
            name: None
            if name in declaration.optional and not kind.is_chosen(selection)
            else kind.load(session, declaration.selection_for(kind, selection) if selection else None)
            for name, kind in declaration.inputs.items()
        }
        warnings: tuple[str, ...] = ()
        if selection and benchmark and "filter" not in declaration.claimed_options:
            warnings = list_filter_warnings(session, benchmark, selection)
        treated = (text for loaded in inputs.values() for text in getattr(loaded, "missing_warnings", ()))
        warnings = (*list_notices(session), *warnings, *dict.fromkeys(treated))
        if selection and benchmark and selection.metric is None:
            selection = replace(selection, metric=get_default_metric(session, benchmark.id))
        used = [(name, int(key)) for name, loaded in inputs.items() for key in getattr(loaded, "run_ids", ())]
        warnings = (*warnings, *list_unverified_warnings(session, {key for _, key in used}))
        run = tables.run
        stored = sa.select(run.c.id, run.c.checksum, run.c.status).where(run.c.id.in_({key for _, key in used}))
        leaders = (
            find_leaders(session, declaration.unclaimed(selection)) if selection and declaration.score_units else ()
        )
        as_read = {key: (checksum, status) for key, checksum, status in session.execute(stored)}
    digests = [loaded.digest for loaded in inputs.values() if loaded is not None]
    weights = [loaded for loaded in inputs.values() if isinstance(loaded, PromptWeights)]
    encoders = [loaded for loaded in inputs.values() if isinstance(loaded, Embeddings | StoredEmbeddings)]
    filters = [loaded.finding_id for loaded in inputs.values() if isinstance(loaded, PromptFilter)]
    if selection and filters:
        selection = replace(selection, filter=filters[0])  # the latest one, if none was named
    provenance = Provenance(
        analysis=declaration.name,
        code_version=declaration.code_version,
        selection=selection,
        parameters=parameters,
        benchmark_id=benchmark.id if benchmark else None,
        input_digest=digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest(),
        runs={(role, key): as_read[key][0] for role, key in used},
        statuses={key: status for key, (_, status) in as_read.items()},
        weights_id=weights[0].finding_id if weights else None,
        encoder_id=encoders[0].encoder_id if encoders else None,
        filter_id=selection.filter if selection else None,
    )
    return _AnalysisInputs(
        declaration=declaration,
        values=list(inputs.values()),
        parameters=parameters,
        provenance=provenance,
        warnings=warnings,
        leaders=leaders,
    )


def _choose_policy(session: Session, declaration: Declaration, selection: Selection | None) -> Selection | None:
    """Return the selection with an explicit policy for missing scores, if the analysis reads scores."""
    if selection is None:
        return None
    if not declaration.score_units:
        if selection.missing is not None:
            raise SelectionError(f"{declaration.name} does not use missing. Leave --missing out.")
        return selection
    if selection.min_coverage == MIN_COVERAGE:
        selection = replace(selection, min_coverage=declaration.min_coverage)
    return choose_policy(
        session,
        selection,
        default=declaration.missing,
        supported=declaration.policies,
        units=declaration.score_units,
        subject=declaration.name,
    )


def _check_selection(declaration: Declaration, selection: Selection | None) -> None:
    """Reject options that the analysis does not use, and missing options that it needs.

    Raises:
        SelectionError: such an option is set or missing.
    """
    if selection is None:
        if declaration.is_of_one_benchmark:
            raise SelectionError(f"{declaration.name} needs a benchmark. Name one.")
        return
    if not declaration.is_of_one_benchmark:
        raise SelectionError(f"{declaration.name} uses findings of all benchmarks. Leave the benchmark out.")
    for choice in SELECTION_OPTIONS:
        if getattr(selection, choice) is not None and not declaration.has_option(choice):
            raise SelectionError(f"{declaration.name} does not use {choice}. Leave --{choice} out.")
    if selection.task_effects is not None and not declaration.has_option("cluster"):
        raise SelectionError(f"{declaration.name} does not use task effects. Leave --task-effects out.")


def _add_warnings(warnings: Sequence[str], report: Report) -> Report:
    """Add warnings to a report; they fill the places for caveats that its summary leaves free."""
    summary, further = report.summary.add_caveats((*warnings, *report.warnings))
    return replace(report, summary=summary, warnings=further)


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
