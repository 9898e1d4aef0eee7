"""Create the report of a benchmark, and log it to MLflow."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.database import transaction
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from tracker.queries.ranking.leaderboard_result import Leaderboard
    from tracker.report.contents import Contents, RankSpans

RANKS_EXPLANATION = (
    "The column “ranks” shows rank intervals, computed from comparisons of every two models on the same "
    "prompts. All of them hold simultaneously with 95 % probability (paired t-tests{clustered}, "
    "Holm's correction)."
)

EPOCH = datetime.fromtimestamp(0, UTC)
"""The time of creation is not shown; without data, no time is shown."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkReport:
    """A report.

    Attributes:
        page: the file.
        contents: its contents.
        notices: choices that were made for the user, such as the run of a model.
    """

    page: bytes
    contents: Contents
    notices: tuple[str, ...] = ()


def build_report(engine: sa.Engine, selection: Selection, *, with_prompts: bool = True) -> BenchmarkReport:
    """Create the report of a benchmark as one HTML file.

    Args:
        engine: the store.
        selection: the scores to rank.
        with_prompts: whether to show texts of prompts.

    Raises:
        SuffrageError: a benchmark, metric, model, task or run does not exist, or there is nothing to rank.
    """
    from tracker.recording.verdict.benchmark_verdict import load_verdict
    from tracker.report.contents import gather_contents
    from tracker.report.page import render_page

    verdict = load_verdict(engine, selection)
    with transaction(engine, write=False) as session:
        contents = gather_contents(
            session,
            selection,
            verdict,
            ranks=_ranks(verdict.board),
            questions=read_analysis_docstrings(),
            with_prompts=with_prompts,
        )
    return BenchmarkReport(page=render_page(contents), contents=contents, notices=verdict.notices)


def publish(engine: sa.Engine, benchmark_report: BenchmarkReport, tracking_uri: str) -> str:
    """Log a report to MLflow, in the experiment of the benchmark's reports; return the key of its MLflow run.

    Raises:
        PublishingError: MLflow cannot be reached or used.
    """
    from tracker.queries.resolution import find_benchmark
    from tracker.recording.mlflow.publishing import publish_report
    from tracker.recording.mlflow.run_spec import MlflowRunSpec, format_parameter

    contents = benchmark_report.contents
    board, moment = contents.board, contents.as_of or EPOCH
    with transaction(engine, write=False) as session:
        key = find_benchmark(session, contents.selection.benchmark).id
    chosen = {name: format_parameter(value) for name, value in contents.selection.as_json().items() if value != ""}
    spec = MlflowRunSpec(
        kind="report",
        ref_id=key,
        version=hashlib.sha256(benchmark_report.page).hexdigest(),
        experiment=f"suffrage/reports/{board.benchmark}",
        about_experiment=f"Reports on {board.benchmark}: one HTML file each, under Artifacts.",
        run_name=f"{board.benchmark} report, {board.metric}, data as of {moment:%Y-%m-%d %H:%M}",
        started=moment,
        ended=moment,
        parameters=chosen | {"missing": board.missing, "task_effects": board.task_effects},
        metrics={
            "models": len(board.rows),
            f"{board.unit}s": board.n_units,
            "findings": len(contents.findings),
            "megabytes": len(benchmark_report.page) / 1e6,
        },
        tags={"suffrage.benchmark": board.benchmark, "suffrage.metric": board.metric, **contents.verdict.tags},
        description=f"Leaderboard, figures and findings of {board.benchmark}: open `report.html` under Artifacts.",
        files={"report.html": benchmark_report.page},
    )
    return publish_report(engine, spec, tracking_uri)


def read_analysis_docstrings() -> dict[str, str]:
    """Return the docstring of every installed analysis, by name, without importing it."""
    import ast

    from tracker.recording.registry import discover_analyses

    docstrings = {}
    for name, module in discover_analyses().items():
        if module.path is not None and not module.problem:
            docstrings[name] = ast.get_docstring(ast.parse(module.path.read_bytes())) or ""
    return docstrings


def _ranks(board: Leaderboard) -> RankSpans:
    from tracker.report.contents import RankSpans

    if board.no_rank_intervals:
        return RankSpans(text=f"There are no rank intervals: {board.no_rank_intervals}.")
    by = " with errors stratified by task" if board.task_effects == "fixed" else ""
    by = f" with errors clustered by {board.cluster}" if board.is_clustered else by
    return RankSpans(
        low={model: interval.low for model, interval in board.rank_intervals.items()},
        high={model: interval.high for model, interval in board.rank_intervals.items()},
        text=" ".join((RANKS_EXPLANATION.format(clustered=by), *board.cluster_warnings)),
        groups=board.describe_groups(),
    )
