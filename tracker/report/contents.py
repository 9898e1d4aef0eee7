"""What a report of a benchmark holds, gathered from the store."""

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
from tracker.report.prompt_examples import Examples, select_examples


@dataclass(frozen=True, kw_only=True)
class RankSpans:
    """Between which ranks models lie.

    Attributes:
        low, high: best and worst rank of each model, by name.
        text: what the intervals are, in words, or why there are none.
        groups: which models cannot be told apart, a sentence for each group.
    """

    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    groups: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything that a report tells.

    Attributes:
        selection: the choices made, with the metric that was taken.
        board: the models, ranked.
        ranks: between which ranks they lie.
        tasks: means by task; None where the prompts are in one task only.
        scores: scores by prompt; None where only whole tasks were scored.
        findings: of the benchmark, the latest first; numbers and words, without files.
        pictures: files of findings that are pictures, by key of the finding and name.
        questions: what findings of that name ask: the text of the question, by name.
        runs: those that are ranked, by name of the model.
        examples: prompts to look at; None where they are not to be shown, or have no texts.
        database_id: which store.
        as_of: the latest moment at which one of these runs was taken in, or one of these findings recorded.
    """

    selection: Selection
    board: Leaderboard
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
    board: Leaderboard,
    *,
    ranks: RankSpans | None = None,
    questions: Mapping[str, str] | None = None,
    with_prompts: bool = True,
) -> Contents:
    """Everything that a report of a benchmark tells.

    Args:
        session: the store.
        selection: which scores to rank; findings are all those of the benchmark, whatever they were asked of.
        board: the leaderboard of that selection.
        ranks: between which ranks the models lie, where that is known.
        questions: the text of each question, by name.
        with_prompts: whether texts of prompts may be shown.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run is not there.
        SelectionError: the selection is empty.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    selection = replace(selection, metric=board.metric)
    scores = load_performance_matrix(session, selection) if board.unit == "prompt" else None
    by_task = load_task_matrix(session, selection)
    findings = tuple(
        load_finding_records(
            session, tables.finding.c.benchmark_id == benchmark.id, tables.finding.c.status == "complete"
        )
    )
    ranked_ids = {row.run_id for row in board.rows}
    ranked = sorted(
        (run for run in list_runs(session, benchmark=selection.benchmark) if run.id in ranked_ids), key=_by_model
    )
    moments = [*(run.ingested for run in ranked), *(finding.recorded for finding in findings)]
    return Contents(
        selection=selection,
        board=board,
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
