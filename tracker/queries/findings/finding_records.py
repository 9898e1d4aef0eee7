"""Load recorded findings, with their staleness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.catalogue.listing import to_utc
from tracker.queries.findings.staleness import list_stale_findings
from tracker.queries.findings.summary import Summary
from tracker.queries.resolution import benchmark_label, find_benchmark
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class FindingRow:
    """A finding in a list.

    Attributes:
        id: its key; a larger key was recorded later.
        name: of the analysis.
        benchmark: its benchmark; None for several.
        status: complete or failed.
        summary: headline, evidence and caveats; empty if it failed.
        error: error message; '' if it is complete.
        main_metrics: its main metrics by name; None if one is undefined.
        recorded: time of recording, UTC.
        stale: why it should be run again; '' if its data are still the latest.
        selection: its selection.
        leader: names of the models that it ranks first, separated by commas; '' without any.
    """

    id: int
    name: str
    benchmark: str | None
    status: str
    summary: Summary
    error: str
    main_metrics: Mapping[str, float | None]
    recorded: datetime
    stale: str
    selection: Any
    leader: str = ""


@dataclass(frozen=True, kw_only=True)
class MetricRecord:
    """A metric of a finding.

    Attributes:
        name: such as ``hamming.variance.pvalue``.
        value: the number; None if undefined.
        reason: why it is undefined; '' if it is not.
        is_main: whether it is shown in MLflow and on the terminal.
    """

    name: str
    value: float | None
    reason: str
    is_main: bool


@dataclass(frozen=True, kw_only=True)
class ArtifactInfo:
    """A file of a finding.

    Attributes:
        name: file name.
        media_type: type of its content.
        n_bytes: its size.
    """

    name: str
    media_type: str
    n_bytes: int


@dataclass(frozen=True, kw_only=True)
class FindingRecord(FindingRow):
    """Everything recorded of a finding, except the content of its files.

    Attributes:
        warnings: further warnings about the data and the method.
        parameters: its options.
        seed: of its random numbers; None if it draws none.
        input_digest: SHA-256 of its data.
        code_version: version of the code.
        timings: seconds by step.
        numbers: every metric, in the finding's order.
        artifacts: its files, by name.
        run_ids: keys of its runs.
    """

    warnings: tuple[str, ...]
    parameters: Any
    seed: int | None
    input_digest: str
    code_version: str
    timings: Any
    numbers: tuple[MetricRecord, ...]
    artifacts: tuple[ArtifactInfo, ...]
    run_ids: tuple[int, ...]


def list_findings(session: Session, *, benchmark: str | None = None, analysis: str | None = None) -> list[FindingRow]:
    """List all findings, or those about a benchmark or of an analysis, latest first.

    Raises:
        NotFoundError: the benchmark does not exist, or there is no finding of that analysis.
    """
    terms = []
    if benchmark is not None:
        terms.append(tables.finding.c.benchmark_id == find_benchmark(session, benchmark).id)
    if analysis is not None:
        known = session.scalars(sa.select(tables.finding.c.analysis).distinct()).all()
        if analysis not in known:
            hint = "" if known else f"Record one: suffrage analyze {analysis} BENCHMARK"
            raise NotFoundError("analysis with a finding", analysis, sorted(known), hint)
        terms.append(tables.finding.c.analysis == analysis)
    rows = _analyses(session, terms)
    numbers = _numbers(session, terms)
    stale = list_stale_findings(session, [row.id for row in rows])
    return [FindingRow(**_common_fields(row, numbers.get(row.id, ()), stale.get(row.id, ""))) for row in rows]


def get_finding(session: Session, key: int) -> FindingRecord:
    """Return one finding with its metrics.

    Raises:
        NotFoundError: no finding has this key.
    """
    records = load_finding_records(session, tables.finding.c.id == key) if 0 <= key <= MAX_KEY else []
    if not records:
        known = session.scalars(sa.select(tables.finding.c.id).order_by(tables.finding.c.id)).all()
        raise NotFoundError("finding", key, known)
    return records[0]


def load_finding_records(session: Session, *terms: sa.ColumnElement[bool]) -> list[FindingRecord]:
    """Return findings with their metrics, latest first.

    Args:
        session: the store.
        terms: conditions on columns of ``get_finding``; none means all.
    """
    rows = _analyses(session, terms)
    numbers = _numbers(session, terms)
    stale = list_stale_findings(session, [row.id for row in rows])
    of_finding, files, used = tables.finding.c.id, tables.finding_artifact.c, tables.finding_run.c
    artifacts: dict[int, list[ArtifactInfo]] = {}
    kept = sa.select(files.finding_id, files.name, files.media_type, sa.func.length(files.content))
    for key, name, media_type, n_bytes in session.execute(
        kept.join(tables.finding, of_finding == files.finding_id).where(*terms).order_by(files.name)
    ):
        artifacts.setdefault(key, []).append(ArtifactInfo(name=name, media_type=media_type, n_bytes=n_bytes))
    runs: dict[int, list[int]] = {}
    rested = sa.select(used.finding_id, used.run_id).join(tables.finding, of_finding == used.finding_id)
    for key, run_id in session.execute(rested.where(*terms).distinct().order_by(used.run_id)):
        runs.setdefault(key, []).append(run_id)
    return [
        FindingRecord(
            **_common_fields(row, numbers.get(row.id, ()), stale.get(row.id, "")),
            warnings=tuple(row.warnings or ()),
            parameters=row.parameters,
            seed=row.seed,
            input_digest=row.input_digest,
            code_version=row.code_version,
            timings=row.timings,
            numbers=tuple(numbers.get(row.id, ())),
            artifacts=tuple(artifacts.get(row.id, ())),
            run_ids=tuple(runs.get(row.id, ())),
        )
        for row in rows
    ]


def load_artifact(session: Session, key: int, name: str) -> bytes:
    """Return the content of a finding's file.

    Raises:
        NotFoundError: the finding has no file of that name.
    """
    files = tables.finding_artifact.c
    content = session.scalar(sa.select(files.content).where(files.finding_id == key, files.name == name))
    if content is None:
        known = session.scalars(sa.select(files.name).where(files.finding_id == key).order_by(files.name)).all()
        raise NotFoundError(f"file of finding {key}", name, known)
    return bytes(content)


def _analyses(session: Session, terms: Sequence[sa.ColumnElement[bool]]) -> Sequence[sa.Row[Any]]:
    query = (
        sa.select(
            tables.finding,
            tables.benchmark.c.name.label("benchmark"),
            tables.benchmark.c.revision.label("revision"),
        )
        .outerjoin(tables.benchmark, tables.benchmark.c.id == tables.finding.c.benchmark_id)
        .where(*terms)
        .order_by(tables.finding.c.id.desc())
    )
    return session.execute(query).all()


def _common_fields(row: sa.Row[Any], numbers: Sequence[MetricRecord], stale: str) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.analysis,
        "benchmark": None if row.benchmark is None else benchmark_label(row.benchmark, row.revision),
        "status": row.status,
        "summary": Summary.from_columns(row.headline, row.evidence, row.caveats),
        "error": row.error or "",
        "main_metrics": {number.name: number.value for number in numbers if number.is_main},
        "recorded": to_utc(row.recorded),
        "stale": stale,
        "selection": row.selection,
        "leader": row.leader or "",
    }


def _numbers(session: Session, terms: Sequence[sa.ColumnElement[bool]]) -> dict[int, list[MetricRecord]]:
    kept = tables.finding_metric
    query = (
        sa.select(kept.c.finding_id, kept.c.name, kept.c.value, kept.c.reason, kept.c.is_main)
        .join(tables.finding, tables.finding.c.id == kept.c.finding_id)
        .where(*terms)
        .order_by(kept.c.position, kept.c.name)
    )
    metrics: dict[int, list[MetricRecord]] = {}
    for key, name, value, reason, is_main in session.execute(query):
        metrics.setdefault(key, []).append(MetricRecord(name=name, value=value, reason=reason or "", is_main=is_main))
    return metrics
