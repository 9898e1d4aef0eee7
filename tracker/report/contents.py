"""Load the contents of a benchmark's report from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.catalogue.listing import RunRow, list_runs
from tracker.queries.findings.finding_records import FindingRecord, load_finding_records
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.leaderboard import Leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.task_matrix import TaskMatrix, load_task_matrix
from tracker.recording.multiplicity.looks import add_recorded_looks
from tracker.recording.verdict.benchmark_verdict import Verdict
from tracker.report.prompt_examples import Examples, select_examples


@dataclass(frozen=True, kw_only=True)
class RankSpans:
    """Rank intervals of the models.

    Attributes:
        low, high: best and worst rank of each model, by name.
        text: description of the intervals, or why there are none.
        groups: groups of models that are not distinguishable, a sentence per group.
    """

    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    groups: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The contents of a report.

    Attributes:
        selection: the selection, with its metric.
        board: the leaderboard.
        verdict: who is first, and what could change that.
        ranks: rank intervals.
        tasks: means by task; None if all prompts are in one task.
        scores: scores by prompt; None if only whole tasks are scored.
        findings: of the benchmark, the latest first; metrics and texts, without files.
        pictures: figures of findings, by key of the finding and name.
        questions: question that each analysis answers, by name of the analysis.
        runs: ranked runs, by name of the model.
        examples: example prompts; None if they are hidden, or have no texts.
        database_id: identity of the store.
        as_of: latest time at which one of these runs was ingested, or one of these findings recorded.
    """

    selection: Selection
    board: Leaderboard
    verdict: Verdict
    ranks: RankSpans
    tasks: TaskMatrix | None
    scores: PerformanceMatrix | None
    findings: tuple[FindingRecord, ...]
    pictures: Mapping[tuple[int, str], bytes]
    questions: Mapping[str, str]
    runs: tuple[RunRow, ...]
    examples: Examples | None
    database_id: str
    as_of: datetime | None


def gather_contents(
    session: Session,
    selection: Selection,
    verdict: Verdict,
    *,
    ranks: RankSpans | None = None,
    questions: Mapping[str, str] | None = None,
    with_prompts: bool = True,
) -> Contents:
    """Load the contents of a benchmark's report.

    Args:
        session: the store.
        selection: the scores to rank; findings are all those of the benchmark, whatever their selection.
        verdict: the verdict on that selection, with its leaderboard.
        ranks: rank intervals of the models, if known.
        questions: question that each analysis answers, by name.
        with_prompts: whether to show texts of prompts.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: the selection is empty.
    """
    board = verdict.board
    benchmark = find_benchmark(session, selection.benchmark)
    selection = replace(selection, metric=board.metric)
    stored = replace(selection, missing=None)
    scores = load_performance_matrix(session, stored) if board.unit == "prompt" else None
    by_task = load_task_matrix(session, stored)
    complete = load_finding_records(
        session, tables.finding.c.benchmark_id == benchmark.id, tables.finding.c.status == "complete"
    )
    findings = tuple(add_recorded_looks(session, complete))
    ranked_ids = {row.run_id for row in board.rows}
    ranked = sorted(
        (run for run in list_runs(session, benchmark=selection.benchmark) if run.id in ranked_ids), key=_by_model
    )
    moments = [*(run.ingested for run in ranked), *(finding.recorded for finding in findings)]
    return Contents(
        selection=selection,
        board=board,
        verdict=verdict,
        ranks=ranks or RankSpans(),
        tasks=by_task if by_task.n_tasks > 1 else None,
        scores=scores,
        findings=findings,
        pictures=_pictures(session, benchmark.id),
        questions=questions or {},
        runs=tuple(ranked),
        examples=select_examples(session, scores) if scores is not None and with_prompts else None,
        database_id=session.scalars(sa.select(tables.database.c.id)).one(),
        as_of=max(moments, default=None),
    )


def _by_model(run: RunRow) -> tuple[str, int]:
    return run.model, run.id


def _pictures(session: Session, benchmark_id: int) -> dict[tuple[int, str], bytes]:
    file, analysis = tables.finding_artifact.c, tables.finding.c
    query = (
        sa.select(file.finding_id, file.name, file.content)
        .join(tables.finding, analysis.id == file.finding_id)
        .where(analysis.benchmark_id == benchmark_id, file.media_type == "image/png")
        .order_by(file.finding_id.desc(), file.name)
    )
    return {(row.finding_id, row.name): bytes(row.content) for row in session.execute(query)}
