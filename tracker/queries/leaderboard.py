"""Who leads a benchmark, and how sure is that?

Scores are averaged over prompts with equal weight, after trials have been averaged; where only whole
tasks were scored, over tasks. Prompts of one task resemble each other, so the standard error is also
given clustered by task.
Source: Miller 2024, "Adding Error Bars to Evals", section 2.2; CR1 as in Cameron and Miller 2015, section II.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist

import numpy as np
from sqlmodel import Session

from tracker.queries.performance import PerformanceMatrix, TaskMatrix, performance_matrix, task_matrix
from tracker.queries.resolution import chosen_runs, find_benchmark, find_metric
from tracker.queries.selection import Selection

LEVEL = 0.95
TIE = 1e-12


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A model's place.

    Attributes:
        model: its name.
        run_id: the run behind it.
        n: prompts (or tasks) measured.
        coverage: share of those that any model was measured on, in (0, 1].
        mean: mean score over them, in the metric's unit.
        stderr: standard error as if they were independent; None where there are fewer than two.
        stderr_clustered: standard error clustered by task; None with the reason in ``unclustered``.
        low, high: ends of the 95 % interval: of Student's t with G − 1 degrees around the clustered
            standard error of G tasks, else with n − 1 degrees around the plain one; None where there is none.
        rank: 1 is best, ties share the mean rank; None with the reason in ``unranked``.
        unclustered: why there is no clustered standard error; '' where there is one.
        unranked: why there is no rank; '' where there is one.
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


def leaderboard(session: Session, selection: Selection) -> Leaderboard:
    """The models of a selection, ranked by their means.

    A model that was not measured on everything that the others under the same metric and condition
    were measured on has no rank and stands below the ranked ones, with what it lacks. Where runs are
    given, the others are the other runs given; naming models only leaves rows out.

    Args:
        session: the store; only what is committed is seen.
        selection: which data.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run is not there.
        SelectionError: the selection is empty, or leaves the metric open where there are several.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    metric, unit = find_metric(session, benchmark, selection, ("prompt", "task"))
    selection = replace(selection, metric=metric.name)
    everyone = replace(selection, models=())
    if unit == "task":
        board = rank_by_tasks(task_matrix(session, everyone))
    else:
        board = rank_by_prompts(performance_matrix(session, everyone))
    scored = {run.id: run.column for run in chosen_runs(session, benchmark, metric, None, selection)}
    if missing := sorted(set(scored) - {row.run_id for row in board.rows}):
        names = ", ".join(scored[key] for key in missing)
        board = replace(board, notes=(f"Not shown, since the chosen tasks were not measured per {unit}: {names}.",))
    return _only(board, set(scored)) if selection.models else board


def rank_by_prompts(scores: PerformanceMatrix) -> Leaderboard:
    """The leaderboard of a performance matrix; its rows are what every model should have been measured on."""
    Q = scores.Q
    order = np.argsort(scores.tasks, kind="stable")
    names, starts = np.unique(scores.tasks[order], return_index=True)
    seen = ~np.isnan(Q)
    n = seen.sum(axis=0)
    means = np.divide(np.nansum(Q, axis=0), n, out=np.full(len(n), np.nan), where=n > 0)
    residuals = np.where(seen, Q - means, 0.0)[order]
    squares = (residuals**2).sum(axis=0)
    by_task = np.add.reduceat(residuals, starts, axis=0)
    n_clusters = np.add.reduceat(seen[order], starts, axis=0, dtype=np.int64).astype(bool).sum(axis=0)
    between = (by_task**2).sum(axis=0)
    homeless = (seen & (scores.tasks == "")[:, None]).sum(axis=0)

    rows = []
    for j, model in enumerate(scores.models):
        count, clusters = int(n[j]), int(n_clusters[j])
        if count == 0:
            continue
        plain = math.sqrt(squares[j] / (count - 1) / count) if count > 1 else None
        reason = _unclustered(count, int(homeless[j]), clusters)
        clustered = None if reason else math.sqrt(clusters / (clusters - 1) * between[j]) / count
        error, degrees = (plain, count - 1) if clustered is None else (clustered, clusters - 1)
        low, high = _interval(float(means[j]), error, degrees)
        rows.append(
            LeaderboardRow(
                model=model,
                run_id=int(scores.run_ids[j]),
                n=count,
                coverage=count / scores.n_prompts,
                mean=float(means[j]),
                stderr=plain,
                stderr_clustered=clustered,
                low=low,
                high=high,
                rank=None,
                unclustered=reason,
                unranked=_lacks(count, scores.n_prompts, "prompts"),
            )
        )
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="prompt",
        n_units=scores.n_prompts,
        n_tasks=int((names != "").sum()),
        rows=_ranked(rows, scores.higher_is_better),
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
        low, high = _interval(mean, plain, count - 1)
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

    Means that differ by less than 1e-12 of the largest are tied: equal sums of 0 and 1 always are.
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
        ranked += [replace(row, rank=shared) for row in complete[start:end]]
    return (*ranked, *ordered[len(complete) :])


def _interval(mean: float, error: float | None, degrees: int) -> tuple[float | None, float | None]:
    if error is None:
        return None, None
    reach = student_quantile(degrees) * error
    return mean - reach, mean + reach


@cache
def student_quantile(degrees: int, level: float = LEVEL) -> float:
    """How many standard errors to either side hold ``level`` of Student's t with that many degrees of freedom.

    Newton's method on the exact sum for whole degrees; it approaches from below, since the sum is
    concave. SciPy has the same number, but its import would slow the start of every leaderboard.
    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    i = np.arange(1, (degrees - degrees % 2) // 2, dtype=np.float64)
    weights = np.cumprod(np.concatenate(([1.0], 2 * i / (2 * i + 1) if degrees % 2 else (2 * i - 1) / (2 * i))))
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    t, step = NormalDist().inv_cdf((1 + level) / 2), 1.0
    while step > 1e-14 * t:
        angle = math.atan2(t, math.sqrt(degrees))
        series = float(weights @ math.cos(angle) ** (2.0 * np.arange(len(weights))))
        if degrees == 1:
            inside = 2 / math.pi * angle
        elif degrees % 2:
            inside = 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * series)
        else:
            inside = math.sin(angle) * series
        density = math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (level - inside) / (2 * density)
        t += step
    return t
