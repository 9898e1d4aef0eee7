"""Write a finding with all its parts in one transaction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tracker.schema import FilterDecision, FilterReason, PromptValue, StoredFinding

if TYPE_CHECKING:
    from tracker.recording.finding import FilterDecisions, Finding, RankedModels, Report


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
    key = {"finding_id": finding.id}
    _insert(session, tables.finding_run, _run_rows(key, provenance))
    _insert(
        session,
        tables.finding_metric,
        (
            {**key, "name": m.name, "value": m.value, "reason": m.reason, "is_main": m.is_main, "position": position}
            for position, m in enumerate(metrics)
        ),
    )
    _insert(
        session,
        tables.finding_artifact,
        ({**key, "name": a.name, "media_type": a.media_type, "content": a.content} for a in artifacts),
    )
    for name, values in report.prompt_values.items():
        pairs = zip(values.prompt_ids.tolist(), values.values.tolist(), strict=True)
        finite = [(finding.id, name, prompt, value) for prompt, value in pairs if math.isfinite(value)]
        insert_rows(session, PromptValue, finite)
    _record_task_values(session, key, provenance.benchmark_id, report.task_values)
    _record_rankings(session, key, report.rankings)
    if report.filter is not None:
        _record_filter(session, finding.id, report.filter)
    return finding.id


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
    rows = _run_rows({"finding_id": finding.id}, provenance)
    _insert(session, tables.finding_run, (row for row in rows if row["run_id"] not in deleted))
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


def _run_rows(key: Mapping[str, int], provenance: Provenance) -> Iterator[dict[str, Any]]:
    """Return the finding's runs, as they were read."""
    for (role, run), checksum in provenance.runs.items():
        status = provenance.statuses.get(run, "complete")
        yield {**key, "run_id": run, "role": role, "checksum": checksum, "status": status}


def _record_task_values(
    session: Session, key: Mapping[str, int], benchmark_id: int | None, task_values: Mapping[str, Mapping[str, float]]
) -> None:
    task = tables.task
    keys = sa.select(task.c.name, task.c.id).where(task.c.benchmark_id == benchmark_id)
    tasks = dict(session.execute(keys).all()) if task_values else {}
    for name, values in task_values.items():
        rows = ({**key, "name": name, "task_id": tasks[task], "value": float(v)} for task, v in values.items())
        _insert(session, tables.task_value, (row for row in rows if math.isfinite(row["value"])))


def _record_rankings(session: Session, key: Mapping[str, int], rankings: Mapping[str, RankedModels]) -> None:
    models = dict(session.execute(sa.select(tables.model.c.name, tables.model.c.id)).all()) if rankings else {}
    for scheme, ranked in rankings.items():
        columns = {
            name: values.tolist()
            for name in ("rank", "score", "low", "high", "rank_low", "rank_high")
            if (values := getattr(ranked, name)) is not None
        }
        rows = []
        for place, model in enumerate(ranked.models):
            numbers = {name: _finite(values[place]) for name, values in columns.items()}
            if numbers["rank"] is not None and numbers["score"] is not None:
                rows.append({**key, "scheme": scheme, "model_id": models[model], **numbers})
        _insert(session, tables.ranking, rows)


def _record_filter(session: Session, key: int, decisions: FilterDecisions) -> None:
    decided = zip(decisions.prompt_ids.tolist(), decisions.kept.tolist(), strict=True)
    insert_rows(session, FilterDecision, [(key, *row) for row in decided])
    for step, out in decisions.reasons.items():
        numbers = [-1] * len(out.prompt_ids) if out.groups is None else out.groups.tolist()
        groups = (None if number < 0 else number for number in numbers)
        rows = zip(out.prompt_ids.tolist(), groups, out.retained.tolist(), strict=True)
        insert_rows(session, FilterReason, [(key, prompt, step, *rest) for prompt, *rest in rows])


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _insert(session: Session, table: sa.TableClause, rows: Iterable[dict[str, Any]]) -> None:
    if row_list := list(rows):
        session.execute(sa.insert(table), row_list)
