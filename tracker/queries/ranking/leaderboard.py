"""Compute a leaderboard with standard errors, confidence intervals and rank intervals.

Scores are averaged over trials, then over prompts, with equal or chosen weights. If only whole tasks are scored, they
are averaged over tasks. Prompts of one task resemble each other, so the standard error is also clustered by task.

Source: Miller 2024, "Adding Error Bars to Evals", section 2.2.
"""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.name_lists import join_names
from tracker.queries.catalogue.unverified_runs import list_unverified_warnings, load_unverified
from tracker.queries.clusters import Clusters
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.filtering.prompt_filter import make_task_scores_error
from tracker.queries.notices import list_notices
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard_intervals import add_rank_intervals
from tracker.queries.ranking.leaderboard_result import Leaderboard, LeaderboardRow, RankInterval
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.ranking.ranked_means import RankingOptions, rank_by_prompts, rank_by_tasks
from tracker.queries.resolution import BenchmarkKey, find_benchmark, find_metric
from tracker.queries.selected_runs.runs import select_runs
from tracker.queries.selection import Selection, Unit, restricts_split
from tracker.queries.splits.choice import choose_split
from tracker.queries.sql import tables
from tracker.queries.task_matrix import load_task_matrix
from tracker.queries.weights import TASK_EQUAL, PromptWeights, load_prompt_weights
from tracker.run_settings import describe_progress, evaluation_identity

__all__ = ["Leaderboard", "LeaderboardRow", "RankInterval", "load_leaderboard"]

MAX_NAMES = 5


def load_leaderboard(
    session: Session,
    selection: Selection,
    *,
    with_rank_intervals: bool = True,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Leaderboard:
    """Rank the models of a selection by their means, with rank intervals.

    The prompts that any model has scores for, under the same metric and condition, are expected of every model. Missing
    scores are treated by the policy of the selection: by default ``bounds``, or ``common`` under a metric without
    bounds. Models below the least coverage are listed apart, below the ranked ones. If runs are selected, the prompts
    of these runs are expected; selecting models only hides rows. Prompts without a weight, with weight 0, or removed by
    a filter are excluded for all models.

    Args:
        session: the store; only committed data are visible.
        selection: the selection, with the policy for missing scores; see `tracker.queries.ranking.missing`.
        with_rank_intervals: whether to test all pairs of models for rank intervals and groups.
        n_resamples: number of resamples of prompts, or of whole clusters, for bootstrap ranks; 0 for none.
        seed: seed of the resamples.

    Raises:
        NotFoundError: a benchmark, metric, model, task, run or field of prompts does not exist.
        SelectionError: scores are missing and the policy is ``fail``; the selection is empty, or names no metric
            although there are several; or weights or a filter are selected for scores of whole tasks.
    """
    units: tuple[Unit, ...] = ("prompt", "task")
    selection = choose_policy(session, selection, default="bounds", units=units, treats_tasks=True)
    benchmark = find_benchmark(session, selection.benchmark)
    metric, unit = find_metric(session, benchmark, selection, units)
    selection = replace(selection, metric=metric.name)
    if unit == "task" and (selection.filter is not None or restricts_split(selection.split)):
        raise make_task_scores_error(benchmark, metric.name)
    selection = choose_split(session, benchmark, metric, selection) if unit == "prompt" else selection
    models = {run.id: run.column for run in select_runs(session, benchmark, metric, None, selection)}
    options = RankingOptions(
        missing=selection.missing or "bounds",
        min_coverage=selection.least_coverage,
        run_ids=frozenset(models) if selection.models else None,
        clusters=Clusters.load(session, selection) if unit == "prompt" else None,
        worst=metric.worst,
        best=metric.best,
    )
    board = _rank(session, benchmark, selection, unit, options)
    board = _add_warnings(session, benchmark, selection, board, models)
    if with_rank_intervals:
        return add_rank_intervals(board, options.clusters, n_resamples=n_resamples, seed=seed)
    return board


def _rank(
    session: Session, benchmark: BenchmarkKey, selection: Selection, unit: str, options: RankingOptions
) -> Leaderboard:
    """Compute means, errors and ranks; the models of the whole benchmark define the expected prompts."""
    all_models = replace(selection, models=(), missing=None)
    weights = load_prompt_weights(session, selection) if PromptWeights.is_chosen(selection) else None
    if unit == "prompt":
        return rank_by_prompts(load_performance_matrix(session, all_models), weights, options)
    if weights is None or weights.name == TASK_EQUAL:
        return rank_by_tasks(load_task_matrix(session, all_models), options)
    raise SelectionError(
        f"{benchmark.label} has scores of whole tasks only, so prompt weights do not apply. Leave --weights out; "
        f"tasks have equal weights, as with {TASK_EQUAL}."
    )


def _add_warnings(
    session: Session, benchmark: BenchmarkKey, selection: Selection, board: Leaderboard, models: dict[int, str]
) -> Leaderboard:
    """Add warnings about chosen and unverified runs, the filter, unfinished evaluations and models without a row."""
    unverified = load_unverified(session, [row.run_id for row in board.rows])
    if unverified:
        rows = (replace(row, unverified=unverified.get(row.run_id, ("", ""))[1]) for row in board.rows)
        board = replace(board, rows=tuple(rows))
    warnings = [*list_notices(session), *list_unverified_warnings(session, unverified), *board.warnings]
    if unfinished := _describe_unfinished(session, benchmark, selection):
        warnings.append(unfinished)
    if selection.filter is not None:
        warnings = [*list_filter_warnings(session, benchmark, selection), *warnings]
    if unscored := sorted(set(models) - {row.run_id for row in board.rows}):
        names = ", ".join(models[key] for key in unscored)
        scope = "selected tasks" if selection.filter is None else "kept prompts"
        warnings.append(f"Not shown, because the {scope} have no scores per {board.unit} from these models: {names}.")
    return replace(board, warnings=tuple(warnings), filter_id=selection.filter)


def _describe_unfinished(session: Session, benchmark: BenchmarkKey, selection: Selection) -> str:
    """Return a warning about models with an unfinished evaluation; '' without any, or if runs are selected."""
    if selection.runs:
        return ""
    run, model = tables.run.c, tables.model.c
    rows = session.execute(
        sa.select(run.id, run.settings, model.name)
        .join(tables.model, model.id == run.model_id)
        .where(
            run.benchmark_id == benchmark.id,
            run.status == "partial",
            run.condition == selection.condition,
            run.variant == selection.variant,
        )
        .order_by(run.id)
    )
    names = [
        f"{row.name} (run {row.id}, {describe_progress(row.settings)})"
        for row in rows
        if evaluation_identity(row.settings) is not None
    ]
    return f"Excluded, because the evaluation is not complete: {join_names(names, MAX_NAMES)}." if names else ""
