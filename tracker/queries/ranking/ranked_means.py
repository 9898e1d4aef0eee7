"""Models ranked by their means over a matrix, with what is known of each mean's error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tracker.queries.clusters import NONE, TASK, Clusters
from tracker.queries.performance import PerformanceMatrix, TaskMatrix
from tracker.queries.ranking.missing import settle
from tracker.queries.ranking.weighted_scores import weighted_scores, with_mean_one
from tracker.queries.selection import Policy
from tracker.queries.weights import PromptWeights
from tracker.statistics.standard_errors import interval, means

TIE = 1e-12


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A model's place.

    Attributes:
        model: its name.
        run_id: the run behind it.
        n: prompts (or tasks) that its mean is over.
        coverage: share of those that any model was measured on which it was measured on itself, in (0, 1].
        mean: mean score over them, weighted where weights were chosen, in the metric's unit.
        stderr: standard error as if they were independent; None where there are fewer than two.
        stderr_clustered: standard error clustered by task, or by the field chosen; None with the reason in
            ``unclustered``.
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
        warnings: what a reader should know beside the numbers.
        weights: by which prompts were weighted, such as ``12:distance``; '' where all count the same.
        n_effective: effective number of prompts (or tasks) for a model that was measured on all.
        filter_id: the finding whose kept prompts count; None where all do.
        missing: what became of scores that were not measured.
        cluster: the field whose equal values make a cluster; ``none`` where there are none.
        scores: the matrix that was ranked, with every model that says what should have been measured; None where
            whole tasks were scored.
    """

    benchmark: str
    metric: str
    condition: str
    higher_is_better: bool
    unit: str
    n_units: int
    n_tasks: int
    rows: tuple[LeaderboardRow, ...]
    warnings: tuple[str, ...] = ()
    weights: str = ""
    n_effective: float = 0.0
    filter_id: int | None = None
    missing: Policy = "unranked"
    cluster: str = TASK
    scores: PerformanceMatrix | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How models are to be ranked.

    Attributes:
        missing: what becomes of scores that were not measured.
        shown: keys of the runs to rank; None ranks all. The others say what should have been measured.
        clusters: which prompts depend on each other; None takes their tasks.
        worst, best: the metric's bounds in the order of merit; None where it has none.
    """

    missing: Policy = "unranked"
    shown: frozenset[int] | None = None
    clusters: Clusters | None = None
    worst: float | None = None
    best: float | None = None

    def of(self, run_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some runs are to be ranked."""
        return np.array([self.shown is None or key in self.shown for key in run_ids.tolist()], dtype=np.bool_)


def rank_by_prompts(
    scores: PerformanceMatrix, weights: PromptWeights | None = None, how: Ranking | None = None
) -> Leaderboard:
    """The leaderboard of a performance matrix; its rows are what every model should have been measured on.

    Args:
        scores: the matrix.
        weights: how much each prompt counts; None counts all the same.
        how: the further choices.

    Raises:
        SelectionError: no prompt has a weight; scores are missing, and that is not to be.
    """
    how = how or Ranking()
    chosen = weighted_scores(scores, weights)
    asked = chosen.scores
    shown = how.of(asked.run_ids)
    settled = settle(
        asked.Q, how.missing, models=asked.models, shown=shown, worst=how.worst, best=how.best, metric=asked.metric
    )
    kept = replace(asked.rows(settled.kept), Q=settled.Q)
    w = chosen.weights if settled.kept.all() else with_mean_one(chosen.weights[settled.kept])
    clusters = kept.tasks if how.clusters is None else how.clusters.align(kept.prompt_ids)
    cluster_field = TASK if how.clusters is None else how.clusters.field
    found = means(kept.Q, clusters, w)
    n_alone = int((clusters == "").sum())
    alone = (
        (f"{n_alone:,} of {len(clusters):,} prompts name no {cluster_field}; each is a cluster of its own.",)
        if 0 < n_alone < len(clusters)
        else ()
    )
    measured = (~np.isnan(asked.Q)).sum(axis=0)
    rows = []
    for j in np.flatnonzero(shown & (found.n > 0)).tolist():
        count, n_clusters, mean = int(found.n[j]), int(found.n_clusters[j]), float(found.mean[j])
        plain = found.plain(j)
        reason = _unclustered(count, int(found.n_without_task[j]), n_clusters, cluster_field)
        clustered = None if reason else found.clustered(j)
        error, degrees = (plain, count - 1) if clustered is None else (clustered, n_clusters - 1)
        low, high = interval(mean, error, degrees)
        rows.append(
            LeaderboardRow(
                model=kept.models[j],
                run_id=int(kept.run_ids[j]),
                n=count,
                coverage=int(measured[j]) / asked.n_prompts,
                mean=mean,
                stderr=plain,
                stderr_clustered=clustered,
                low=low,
                high=high,
                rank=None,
                unclustered=reason,
                unranked=_lacks(count, kept.n_prompts, "prompts"),
                n_effective=float(found.n_effective[j]),
            )
        )
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="prompt",
        n_units=kept.n_prompts,
        n_tasks=len(set(kept.tasks.tolist()) - {""}),
        rows=_ranked(rows, scores.higher_is_better),
        warnings=(*chosen.warnings, *settled.warnings, *alone),
        weights=chosen.weights_name,
        n_effective=float(w.sum() ** 2 / (w**2).sum()) if chosen.weights_name else float(kept.n_prompts),
        missing=how.missing,
        cluster=cluster_field,
        scores=kept,
    )


def rank_by_tasks(scores: TaskMatrix, how: Ranking | None = None) -> Leaderboard:
    """The leaderboard of a task matrix: tasks weigh the same, standard errors are those over tasks.

    Raises:
        SelectionError: scores are missing, and that is not to be.
    """
    how = how or Ranking()
    shown = how.of(scores.run_ids)
    settled = settle(
        scores.T,
        how.missing,
        models=scores.models,
        shown=shown,
        unit="task",
        worst=how.worst,
        best=how.best,
        metric=scores.metric,
    )
    measured = (~np.isnan(scores.T)).sum(axis=0)
    rows = []
    for j in np.flatnonzero(shown).tolist():
        values = settled.Q[:, j][~np.isnan(settled.Q[:, j])]
        count = len(values)
        if count == 0:
            continue
        mean = float(values.mean())
        plain = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else None
        low, high = interval(mean, plain, count - 1)
        rows.append(
            LeaderboardRow(
                model=scores.models[j],
                run_id=int(scores.run_ids[j]),
                n=count,
                coverage=int(measured[j]) / scores.n_tasks,
                mean=mean,
                stderr=plain,
                stderr_clustered=None,
                low=low,
                high=high,
                rank=None,
                unclustered="its scores are of whole tasks",
                unranked=_lacks(count, len(settled.Q), "tasks"),
                n_effective=float(count),
            )
        )
    return Leaderboard(
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
        unit="task",
        n_units=len(settled.Q),
        n_tasks=len(settled.Q),
        rows=_ranked(rows, scores.higher_is_better),
        warnings=settled.warnings,
        n_effective=float(len(settled.Q)),
        missing=how.missing,
        cluster=NONE,
    )


def _unclustered(n: int, n_without: int, n_clusters: int, field: str) -> str:
    if field == NONE:
        return "none was asked for"
    named = "name no tasks" if field == TASK else f"have no {field}"
    if n_without == n:
        return f"its prompts {named}"
    return f"its prompts are in one {field} only" if n_clusters < 2 else ""


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
