"""Run a recorded finding again: the same analysis, parameters and data, without recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tracker.errors import NotFoundError, PluginError, SuffrageError
from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.selection import Selection
from tracker.recording.artifacts import Artifact, build_artifacts
from tracker.recording.declaration import load_declaration
from tracker.recording.finding import Report
from tracker.recording.inputs.loading import AnalysisInputs, add_warnings, load_inputs
from tracker.recording.record import MetricRow, Provenance, make_metric_rows
from tracker.recording.rerun_command import VERDICT
from tracker.recording.verdict.recorded_verdict import compute_verdict_report


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """What an analysis returns when it runs again.

    Attributes:
        provenance: what it was computed from; its digest may differ from the recorded one.
        report: what the analysis returned; None if the data have changed, so that it was not run.
        metrics, artifacts: from the report.
    """

    provenance: Provenance
    report: Report | None = None
    metrics: Sequence[MetricRow] = ()
    artifacts: Sequence[Artifact] = ()


def explain_no_rerun(record: FindingRecord) -> str:
    """Return why a finding cannot be run again; '' if it can."""
    if record.parameters.get(SIMULATED):
        return "it is simulated, and its scores are not stored"
    if record.status != "complete":
        return "it failed, so there is nothing to compare"
    if record.name == VERDICT:
        return ""
    try:
        load_declaration(record.name)
    except (NotFoundError, PluginError):
        return f"no analysis {record.name} is installed"
    return ""


def rerun_finding(engine: sa.Engine, record: FindingRecord, *, workers: int = 1) -> Iterator[Rerun]:
    """Run the analysis of a finding again if the data of its digest are still in the store.

    The recorded selection may choose later runs now. The runs that it chose are then selected by the time of the
    finding, and by their keys.

    Args:
        engine: the store.
        record: the finding, for which `explain_no_rerun` has no reason.
        workers: number of parallel workers; -1 means one per core.

    Yields:
        One rerun, or those that the record allows: it does not show whether the metric of a verdict was named or is the
        default, which the commands in its table show.

    Raises:
        SuffrageError: the data cannot be loaded, or the analysis fails.
    """
    if record.name == VERDICT:
        yield from _rerun_verdict(engine, record, workers)
        return
    inputs = _load_recorded_inputs(engine, record)
    if inputs.provenance.input_digest == record.input_digest:
        yield _complete(inputs.provenance, inputs.compute(workers))
    else:
        yield Rerun(provenance=inputs.provenance)


def read_selection(recorded: Mapping[str, Any]) -> Selection | None:
    """Return a selection from the JSON of `Selection.as_json`; None for an analysis without one."""
    if not recorded:
        return None
    known = {field.name for field in fields(Selection)}
    values = {name: _as_tuple(value) for name, value in recorded.items() if name in known}
    if isinstance(values.get("as_of"), str):
        values["as_of"] = datetime.fromisoformat(values["as_of"])
    return Selection(**values)


def _complete(provenance: Provenance, report: Report) -> Rerun:
    return Rerun(
        provenance=provenance,
        report=report,
        metrics=make_metric_rows(report.finding),
        artifacts=build_artifacts(report),
    )


def _rerun_verdict(engine: sa.Engine, record: FindingRecord, workers: int) -> Iterator[Rerun]:
    """Run a verdict again; its parameters are the choices as the user made them."""
    recorded = read_selection(record.selection or {})
    assert recorded is not None
    choices = {name: value for name, value in record.parameters.items() if name in Selection.__dataclass_fields__}
    chosen = replace(recorded, **choices)
    for selection in (replace(chosen, metric=None), chosen):
        _, provenance, report = compute_verdict_report(engine, selection, workers=workers)
        if provenance.selection is None or provenance.selection.metric != recorded.metric:
            continue
        if provenance.input_digest != record.input_digest:
            yield Rerun(provenance=provenance)
            return
        yield _complete(provenance, add_warnings((), report))


def _load_recorded_inputs(engine: sa.Engine, record: FindingRecord) -> AnalysisInputs:
    """Return the inputs with the recorded digest; if there are none, those of the recorded selection.

    Raises:
        SuffrageError: those of the recorded selection cannot be loaded.
    """
    declaration = load_declaration(record.name)
    known = {parameter.name for parameter in declaration.parameters}
    parameters = {name: _as_tuple(value) for name, value in record.parameters.items() if name in known}
    present: AnalysisInputs | None = None
    problem: SuffrageError | None = None
    for selection in _list_selections(record):
        try:
            inputs = load_inputs(engine, declaration, selection, parameters)
        except SuffrageError as error:
            problem = problem or error
            continue
        if inputs.provenance.input_digest == record.input_digest:
            return inputs
        present = present or inputs
    if present is None:
        assert problem is not None
        raise problem
    return present


def _list_selections(record: FindingRecord) -> Iterator[Selection | None]:
    recorded = read_selection(record.selection or {})
    yield recorded
    if recorded is not None and recorded.as_of is None and not recorded.runs:
        yield replace(recorded, as_of=record.recorded)
        if record.run_ids:
            yield replace(recorded, runs=record.run_ids)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
