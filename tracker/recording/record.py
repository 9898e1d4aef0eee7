"""Write a finding with all its parts in one transaction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import ConflictError
from tracker.ingest.write.bulk_rows import insert_rows
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.artifacts import Artifact
from tracker.recording.mlflow.run_spec import MAX_METRICS
from tracker.schema import (
    FilterDecision,
    FilterReason,
    FindingArtifact,
    FindingMetric,
    FindingRun,
    PromptValue,
    Ranking,
    StoredFinding,
    TaskValue,
)

if TYPE_CHECKING:
    from tracker.recording.finding import FilterDecisions, Finding, RankedModels, Report


Row = tuple[Any, ...]

_TABLES: Mapping[str, type[Any]] = {
    "finding_run": FindingRun,
    "finding_metric": FindingMetric,
    "finding_artifact": FindingArtifact,
    "prompt_value": PromptValue,
    "task_value": TaskValue,
    "ranking": Ranking,
    "filter_decision": FilterDecision,
    "filter_reason": FilterReason,
}
"""The tables of a finding's parts, in the order in which they are written."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The provenance of a finding: analysis, code, parameters and data.

    Attributes:
        analysis: its name.
        code_version: version of the code.
        selection: the user's selection; None if the analysis is not of one benchmark.
        parameters: all parameters, by name.
        benchmark_id: its benchmark; None for several, or none.
        input_digest: digest of everything that was loaded.
        runs: the checksum of each run by role and key.
        statuses: status of each run by key, when it was read; complete if not listed.
        weights_id: the finding whose weights were used, if any.
        encoder_id: the encoder whose vectors were used, if any.
        filter_id: the finding whose kept prompts were used, if any.
    """

    analysis: str
    code_version: str
    selection: Selection | None
    parameters: Mapping[str, Any]
    benchmark_id: int | None
    input_digest: str
    runs: Mapping[tuple[str, int], str]
    statuses: Mapping[int, str] = field(default_factory=dict)
    weights_id: int | None = None
    encoder_id: int | None = None
    filter_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """A metric of a finding, or the reason why it is undefined.

    Attributes:
        name: such as ``hamming.variance.pvalue``.
        value: finite, or None.
        reason: None if there is a value.
        is_main: whether it is shown in MLflow.
    """

    name: str
    value: float | None
    reason: str | None
    is_main: bool


def make_metric_rows(finding: Finding) -> list[MetricRow]:
    """Return a finding's metrics in their order; a number that is not finite is undefined, with that as the reason."""
    from tracker.recording.finding import Undefined

    main = set(list(finding.main_metrics)[:MAX_METRICS])
    rows = []
    for name, metric in finding.metrics.items():
        if isinstance(metric, Undefined):
            value, reason = None, metric.reason
        elif math.isfinite(metric):
            value, reason = float(metric), None
        else:
            value, reason = None, "not a number" if math.isnan(metric) else "infinite"
        rows.append(MetricRow(name=name, value=value, reason=reason, is_main=name in main))
    return rows


def record_finding(
    session: Session,
    provenance: Provenance,
    report: Report,
    metrics: Sequence[MetricRow],
    artifacts: Sequence[Artifact],
    timings: Mapping[str, float],
) -> int:
    """Write a report; return the key of its finding.

    Raises:
        ConflictError: one of its runs has been deleted since.
    """
    _check_runs_exist(session, provenance)
    finding = _finding_row(provenance)
    finding.headline, finding.timings = report.summary.headline, dict(timings)
    finding.evidence, finding.caveats = list(report.summary.evidence), list(report.summary.caveats)
    finding.warnings = list(report.warnings)
    finding.leader = ", ".join(report.leaders) or None
    session.add(finding)
    session.flush()
    assert finding.id is not None
    for name, rows in list_rows(session, finding.id, provenance, report, metrics, artifacts).items():
        insert_rows(session, _TABLES[name], rows)
    return finding.id


def list_rows(
    session: Session,
    key: int,
    provenance: Provenance,
    report: Report,
    metrics: Sequence[MetricRow],
    artifacts: Sequence[Artifact],
) -> dict[str, list[Row]]:
    """Return the rows of a finding by table, with all columns in order; the row of ``finding`` is not among them.

    Args:
        session: the store.
        key: key of the finding.
        provenance: its analysis, code, parameters and data.
        report: what the analysis returned.
        metrics, artifacts: from the report.
    """
    decisions, reasons = _list_filter_rows(key, report.filter)
    return {
        "finding_run": _list_run_rows(key, provenance),
        "finding_metric": [(key, m.name, m.value, m.reason, m.is_main, position) for position, m in enumerate(metrics)],
        "finding_artifact": [(key, a.name, a.media_type, a.content) for a in artifacts],
        "prompt_value": [
            (key, name, prompt, value)
            for name, values in report.prompt_values.items()
            for prompt, value in zip(values.prompt_ids.tolist(), values.values.tolist(), strict=True)
            if math.isfinite(value)
        ],
        "task_value": _list_task_values(session, key, provenance.benchmark_id, report.task_values),
        "ranking": _list_ranked_models(session, key, report.rankings),
        "filter_decision": decisions,
        "filter_reason": reasons,
    }


def record_failure(session: Session, provenance: Provenance, error: str, timings: Mapping[str, float]) -> int:
    """Record that an analysis failed, with those of its runs that still exist; return the key of the finding.

    Args:
        session: a transaction that writes.
        provenance: its analysis, code, parameters and data.
        error: the error message.
        timings: seconds by step, as far as it ran.
    """
    finding = _finding_row(provenance)
    finding.status, finding.error, finding.timings = "failed", error, dict(timings)
    session.add(finding)
    session.flush()
    assert finding.id is not None
    deleted = _deleted_runs(session, provenance)
    rows = [row for row in _list_run_rows(finding.id, provenance) if row[1] not in deleted]
    insert_rows(session, FindingRun, rows)
    return finding.id


def _check_runs_exist(session: Session, provenance: Provenance) -> None:
    """Reject a finding if one of its runs was deleted since it was read.

    Raises:
        ConflictError: a run was deleted.
    """
    if deleted := sorted(_deleted_runs(session, provenance)):
        raise ConflictError(f"Run {deleted[0]} was deleted while it was being analysed. Run the analysis again.")


def _deleted_runs(session: Session, provenance: Provenance) -> set[int]:
    keys = {run_id for _, run_id in provenance.runs}
    return keys - set(session.scalars(sa.select(tables.run.c.id).where(tables.run.c.id.in_(keys))))


def _finding_row(provenance: Provenance) -> StoredFinding:
    """Return the row of a finding, without its results."""
    seed = provenance.parameters.get("seed")
    return StoredFinding(
        benchmark_id=provenance.benchmark_id,
        analysis=provenance.analysis,
        parameters=dict(provenance.parameters),
        selection=provenance.selection.as_json() if provenance.selection else {},
        seed=seed if isinstance(seed, int) else None,
        input_digest=provenance.input_digest,
        weights_id=provenance.weights_id,
        encoder_id=provenance.encoder_id,
        filter_id=provenance.filter_id,
        code_version=provenance.code_version,
    )


def _list_run_rows(key: int, provenance: Provenance) -> list[Row]:
    """Return the finding's runs, as they were read."""
    return [
        (key, run, role, checksum, provenance.statuses.get(run, "complete"))
        for (role, run), checksum in provenance.runs.items()
    ]


def _list_task_values(
    session: Session, key: int, benchmark_id: int | None, task_values: Mapping[str, Mapping[str, float]]
) -> list[Row]:
    task = tables.task
    keys = sa.select(task.c.name, task.c.id).where(task.c.benchmark_id == benchmark_id)
    tasks = dict(session.execute(keys).all()) if task_values else {}
    return [
        (key, name, tasks[task], float(value))
        for name, values in task_values.items()
        for task, value in values.items()
        if math.isfinite(value)
    ]


def _list_ranked_models(session: Session, key: int, rankings: Mapping[str, RankedModels]) -> list[Row]:
    """Return the rows of ``ranking``; several runs of one model have none there, since it has a row for each model."""
    models = dict(session.execute(sa.select(tables.model.c.name, tables.model.c.id)).all()) if rankings else {}
    rows: list[Row] = []
    for scheme, ranked in rankings.items():
        columns = [getattr(ranked, name) for name in ("rank", "score", "low", "high", "rank_low", "rank_high")]
        for place, model in enumerate(ranked.models):
            numbers = [None if values is None else _finite(values[place]) for values in columns]
            if model in models and numbers[0] is not None and numbers[1] is not None:
                rows.append((key, scheme, models[model], *numbers))
    return rows


def _list_filter_rows(key: int, decisions: FilterDecisions | None) -> tuple[list[Row], list[Row]]:
    """Return the rows of ``filter_decision`` and of ``filter_reason``."""
    if decisions is None:
        return [], []
    reasons: list[Row] = []
    for step, out in decisions.reasons.items():
        numbers = [-1] * len(out.prompt_ids) if out.groups is None else out.groups.tolist()
        groups = (None if number < 0 else number for number in numbers)
        rows = zip(out.prompt_ids.tolist(), groups, out.retained.tolist(), strict=True)
        reasons += [(key, prompt, step, *rest) for prompt, *rest in rows]
    decided = zip(decisions.prompt_ids.tolist(), decisions.kept.tolist(), strict=True)
    return [(key, *row) for row in decided], reasons


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
