"""Who leads a benchmark, and how sure is that?

Scores are averaged over prompts, after trials have been averaged, with equal weight or with the weights
chosen; where only whole tasks were scored, over tasks. Prompts of one task resemble each other, so the
standard error is also given clustered by task.
Source: Miller 2024, "Adding Error Bars to Evals", section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlmodel import Session

from tracker.errors import SelectionError
from tracker.queries.electorate import Electorate, electorate
from tracker.queries.filter_notes import filter_notes
from tracker.queries.filters import whole_tasks
from tracker.queries.performance import PerformanceMatrix, TaskMatrix, performance_matrix, task_matrix
from tracker.queries.resolution import chosen_runs, find_benchmark, find_metric
from tracker.queries.selection import Selection
from tracker.queries.standard_errors import interval, means
from tracker.queries.weights import TASK_EQUAL, PromptWeights, prompt_weights

TIE = 1e-12


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A model's place.

    Attributes:
        model: its name.
        run_id: the run behind it.
        n: prompts (or tasks) measured.
        coverage: share of those that any model was measured on, in (0, 1].
        mean: mean score over them, weighted where weights were chosen, in the metric's unit.
        stderr: standard error as if they were independent; None where there are fewer than two.
        stderr_clustered: standard error clustered by task; None with the reason in ``unclustered``.
        low, high: ends of the 95 % interval: of Student's t with G − 1 degrees around the clustered
            standard error of G tasks, else with n − 1 degrees around the plain one; None where there is none.
        rank: 1 is best, ties share the mean rank; None with the reason in ``unranked``.
        unclustered: why there is no clustered standard error; '' where there is one.
        unranked: why there is no rank; '' where there is one.
        n_effective: Kish's effective number of prompts (or tasks), (Σw)² / Σw²; ``n`` where all count the same.
    """

    model: str
    run_id: int
    n: int
    coverage: float
    mean: float
    stderr: float | None
    stderr_clustered: float | None
    low: float | None
    high: float | None
    rank: float | None
    unclustered: str = ""
    unranked: str = ""
    n_effective: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The models of a benchmark: the ranked ones from the best on, then those that lack scores.

    Attributes:
        benchmark, metric, condition: what was selected.
        higher_is_better: whether larger scores are better.
        unit: what the scores are of, ``prompt`` or ``task``.
        n_units: how many of them any model was measured on.
        n_tasks: in how many tasks they are.
        rows: one for each model.
        notes: what a reader should know beside the numbers.
        weights: by which prompts were weighted, such as ``12:distance``; '' where all count the same.
        n_effective: effective number of prompts (or tasks) for a model that was measured on all.
        filter_id: the finding whose kept prompts count; None where all do.
    """

    benchmark: str
    metric: str
    condition: str
    higher_is_better: bool
    unit: str
    n_units: int
    n_tasks: int
    rows: tuple[LeaderboardRow, ...]
    notes: tuple[str, ...] = ()
    weights: str = ""
    n_effective: float = 0.0
    filter_id: int | None = None


def leaderboard(session: Session, selection: Selection) -> Leaderboard:
    """The models of a selection, ranked by their means.

    A model that was not measured on everything that the others under the same metric and condition
    were measured on has no rank and stands below the ranked ones, with what it lacks. Where runs are
    given, the others are the other runs given; naming models only leaves rows out. Prompts without a
    weight, or of weight 0, do not count for anybody; nor do those that a filter does not keep.

    Args:
        session: the store; only what is committed is seen.
        selection: which data.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run is not there.
        SelectionError: the selection is empty, leaves the metric open where there are several, or weighs or filters
            the prompts of a benchmark that has scores of whole tasks only.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    metric, unit = find_metric(session, benchmark, selection, ("prompt", "task"))
    selection = replace(selection, metric=metric.name)
    if unit == "task" and selection.filter is not None:
        raise whole_tasks(benchmark, metric.name)
    everyone = replace(selection, models=())
    weights = prompt_weights(session, selection) if PromptWeights.is_chosen(selection) else None
    if unit == "prompt":
        board = rank_by_prompts(performance_matrix(session, everyone), weights)
    elif weights is None or weights.name == TASK_EQUAL:
        board = rank_by_tasks(task_matrix(session, everyone))
    else:
        raise SelectionError(
            f"{benchmark.label} has scores of whole tasks only, so its prompts cannot be weighted. "
            f"Leave --weights out; tasks weigh the same, as by {TASK_EQUAL}."
        )
    if selection.filter is not None:
        said = filter_notes(session, benchmark, selection)
        board = replace(board, notes=(*said, *board.notes), filter_id=selection.filter)
    scored = {run.id: run.column for run in chosen_runs(session, benchmark, metric, None, selection)}
    if missing := sorted(set(scored) - {row.run_id for row in board.rows}):
        names = ", ".join(scored[key] for key in missing)
        asked = "chosen tasks" if selection.filter is None else "prompts kept"
        unseen = f"Not shown, since the {asked} were not measured per {unit}: {names}."
        board = replace(board, notes=(*board.notes, unseen))
    return _only(board, set(scored)) if selection.models else board


def rank_by_prompts(scores: PerformanceMatrix, weights: PromptWeights | None = None) -> Leaderboard:
    """The leaderboard of a performance matrix; its rows are what every model should have been measured on.

    Args:
        scores: the matrix.
        weights: how much each prompt counts; None counts all the same.

    Raises:
        SelectionError: no prompt has a weight.
    """
    return _ranked_by(electorate(scores, weights))


def _ranked_by(chosen: Electorate) -> Leaderboard:
    scores = chosen.scores
    found = means(scores.Q, scores.tasks, chosen.weights)
    rows = []
    for j, model in enumerate(scores.models):
        count, clusters, mean = int(found.n[j]), int(found.n_clusters[j]), float(found.mean[j])
        if count == 0:
            continue
        plain = found.plain(j)
        reason = _unclustered(count, int(found.n_without_task[j]), clusters)
        clustered = None if reason else found.clustered(j)
        error, degrees = (plain, count - 1) if clustered is None else (clustered, clusters - 1)
        low, high = interval(mean, error, degrees)
        rows.append(
            LeaderboardRow(
                model=model,
                run_id=int(scores.run_ids[j]),
                n=count,
                coverage=count / scores.n_prompts,
                mean=mean,
                stderr=plain,
                stderr_clustered=clustered,
                low=low,
                high=high,
                rank=None,
                unclustered=reason,
                unranked=_lacks(count, scores.n_prompts, "prompts"),
                n_effective=float(found.n_effective[j]),
            )
        )
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="prompt",
        n_units=scores.n_prompts,
        n_tasks=len(set(scores.tasks.tolist()) - {""}),
        rows=_ranked(rows, scores.higher_is_better),
        notes=chosen.notes,
        weights=chosen.weights_name,
        n_effective=chosen.n_effective,
    )


def rank_by_tasks(scores: TaskMatrix) -> Leaderboard:
    """The leaderboard of a task matrix: tasks weigh the same, standard errors are those over tasks."""
    rows = []
    for j, model in enumerate(scores.models):
        values = scores.T[:, j][~np.isnan(scores.T[:, j])]
        count = len(values)
        if count == 0:
            continue
        mean = float(values.mean())
        plain = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else None
        low, high = interval(mean, plain, count - 1)
        rows.append(
            LeaderboardRow(
                model=model,
                run_id=int(scores.run_ids[j]),
                n=count,
                coverage=count / scores.n_tasks,
                mean=mean,
                stderr=plain,
                stderr_clustered=None,
                low=low,
                high=high,
                rank=None,
                unclustered="its scores are of whole tasks",
                unranked=_lacks(count, scores.n_tasks, "tasks"),
                n_effective=float(count),
            )
        )
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="task",
        n_units=scores.n_tasks,
        n_tasks=scores.n_tasks,
        rows=_ranked(rows, scores.higher_is_better),
        n_effective=float(scores.n_tasks),
    )


def _only(board: Leaderboard, run_ids: set[int]) -> Leaderboard:
    kept = [row for row in board.rows if row.run_id in run_ids]
    return replace(board, rows=_ranked(kept, board.higher_is_better))


def _unclustered(n: int, n_without_task: int, n_clusters: int) -> str:
    if n_without_task == n:
        return "its prompts name no tasks"
    if n_without_task:
        return f"{n_without_task:,} of its prompts name no task"
    return "its prompts are in one task only" if n_clusters < 2 else ""


def _lacks(n: int, wanted: int, units: str) -> str:
    return f"{wanted - n:,} of {wanted:,} {units} are missing" if n < wanted else ""


def _ranked(rows: Sequence[LeaderboardRow], higher_is_better: bool) -> tuple[LeaderboardRow, ...]:
    """The rows in order, ranked where nothing is missing.

    Means that differ by less than 1e-12 of the largest are tied: equal sums of 0 and 1 always are. Tied models are in
    the order of their names.
    """
    sign = -1.0 if higher_is_better else 1.0
    ordered = sorted(rows, key=lambda row: (bool(row.unranked), sign * row.mean, row.model))
    complete = [row for row in ordered if not row.unranked]
    slack = TIE * max((abs(row.mean) for row in complete), default=0.0)
    ranked: list[LeaderboardRow] = []
    while len(ranked) < len(complete):
        start = end = len(ranked)
        while end < len(complete) and abs(complete[end].mean - complete[start].mean) <= slack:
            end += 1
        shared = (start + 1 + end) / 2
        ranked += [replace(row, rank=shared) for row in sorted(complete[start:end], key=lambda row: row.model)]
    return (*ranked, *ordered[len(complete) :])
