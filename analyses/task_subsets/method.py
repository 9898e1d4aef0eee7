"""Rankings by few tasks beside the ranking by all, as one finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.distance_counts import RankingDistances, ReferenceRanking
from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.subsets.subset_sampling import SubsetSample
from analyses.numerics.elections.subsets.task_subsets import (
    MIN_MODELS,
    GreedyOrder,
    HoldoutDistances,
    SubsetDistances,
    choose_greedily,
    measure_subsets,
    rank_by_all_tasks,
    validate_on_holdout,
)
from analyses.numerics.elections.voting.task_votes import AggregationRule, combine_digits, task_votes
from analyses.numerics.elections.win_rates import win_rates
from tracker.recording.finding import Finding, Metric, RankedModels, Undefined, finite_or_undefined

N_HEADLINE_SIZES = 6
"""Sizes up to which numbers are worth comparing across findings."""
TOO_FEW_MODELS = Undefined(f"two halves need at least {MIN_MODELS} models")
MEASURES = ("tau", "tau_paper", "tau_b", "mrc")
"""Distances, as their columns are named."""
QUANTILES = {"best": 0.0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "worst": 1.0}
"""Quantiles of the distances of all sets of a size."""


def quantiles(distances: RankingDistances, measure: str) -> dict[str, float]:
    """Best, quartiles and worst of the defined distances; NaN where none is defined."""
    values = getattr(distances, measure)
    values = values[~np.isnan(values)]
    if not values.size:
        return dict.fromkeys(QUANTILES, np.nan)
    return dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values())).tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class SubsetOptions:
    """Which sets of tasks are compared, and how.

    Attributes:
        rule: how tasks are aggregated.
        max_size: largest size of a set, at least 1; sizes end at one task less than all.
        n_samples: sets of a size, drawn where not all are examined.
        largest_enumeration: up to so many sets of a size, all are.
        within: share of changed pairs that is near enough, in [0, 1).
        n_splits: random halves of the models.
        seed: of all draws.
    """

    rule: AggregationRule = "mean"
    max_size: int = 6
    n_samples: int = 1000
    largest_enumeration: int = 200_000
    within: float = 0.05
    n_splits: int = 20
    seed: int = 0

    def sample(self, n_tasks: int, size: int) -> SubsetSample:
        """All sets of a size, or a sample of them."""
        return SubsetSample.enumerate_or_draw(
            n_tasks, size, largest_enumeration=self.largest_enumeration, n_samples=self.n_samples, seed=self.seed
        )


@dataclass(frozen=True, kw_only=True)
class TaskSubsets(Finding):
    """Rankings by a few tasks beside the ranking by all.

    Attributes:
        models, tasks: names; tasks in alphabetical order.
        rule: "mean" or "win-rate".
        within: share of changed pairs that is near enough.
        n_tied_tasks: tasks on which all models have the same score.
        reference: the ranking by all tasks.
        sizes: distances of sets of 1, 2, … tasks.
        greedy: tasks one by one, to the last.
        holdout: greedy orders tested on models that had no say; None for fewer than four models.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    rule: AggregationRule
    within: float
    n_tied_tasks: int
    reference: ReferenceRanking
    sizes: tuple[SubsetDistances, ...]
    greedy: GreedyOrder
    holdout: HoldoutDistances | None

    @property
    def greedy_size_within(self) -> int:
        """How many tasks of the greedy order are near enough for the first time."""
        return int(np.argmax(self.greedy.distances.tau_paper <= self.within)) + 1

    @property
    def smallest(self) -> tuple[tuple[str, ...], bool]:
        """A smallest set known to be near enough, and whether it is proven that no smaller one is."""
        for subsets in self.sizes:
            if subsets.sample.size >= self.greedy_size_within:
                break
            if subsets.distances.tau_paper.min() <= self.within:
                return self._task_names(subsets.nearest), self._is_proven(subsets.sample.size)
        size = self.greedy_size_within
        return self._task_names(np.sort(self.greedy.order[:size])), self._is_proven(size)

    def _is_proven(self, size: int) -> bool:
        return size <= len(self.sizes) + 1 and all(subsets.sample.is_exhaustive for subsets in self.sizes[: size - 1])

    def _task_names(self, tasks: NDArray[np.int64]) -> tuple[str, ...]:
        return tuple(self.tasks[task] for task in tasks)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """How many tasks are enough, then distances by size."""
        smallest, is_proven = self.smallest
        metrics: dict[str, Metric] = {
            "n_tasks": float(len(self.tasks)),
            "n_models": float(len(self.models)),
            "n_tied_tasks": float(self.n_tied_tasks),
            "within": self.within,
            "size_within": float(len(smallest)),
            "size_within.exact": float(is_proven),
            "greedy.size_within": float(self.greedy_size_within),
        }
        for measure in MEASURES:
            for subsets in self.sizes:
                metrics |= self._distance_metrics(subsets, measure)
        for index, subsets in enumerate(self.sizes):
            for name in HoldoutDistances.CURVES:
                metrics[f"holdout.{name}.{subsets.sample.size}"] = (
                    TOO_FEW_MODELS if self.holdout is None else float(self.holdout.curves[name][:, index].mean())
                )
        return metrics

    def _distance_metrics(self, subsets: SubsetDistances, measure: str) -> Mapping[str, Metric]:
        levels, size = quantiles(subsets.distances, measure), subsets.sample.size
        metrics = {
            f"{level}.{measure}.{size}": finite_or_undefined(
                levels[level], "every set of this size, or all tasks, tie all models"
            )
            for level in ("best", "median")
        }
        greedy_distance = float(getattr(self.greedy.distances, measure)[size - 1])
        metrics[f"greedy.{measure}.{size}"] = finite_or_undefined(
            greedy_distance, "these tasks, or all tasks, tie all models"
        )
        return metrics

    @property
    def main_metrics(self) -> tuple[str, ...]:
        """How many tasks are enough, and the first sizes."""
        sizes = range(1, min(N_HEADLINE_SIZES, len(self.sizes)) + 1)
        curves = (
            "best.tau",
            "median.tau",
            "best.mrc",
            "median.mrc",
            "greedy.tau",
            "holdout.judged",
            "holdout.unchosen",
        )
        counts = ("size_within", "size_within.exact", "greedy.size_within", "n_tasks", "n_models")
        return (*counts, *(f"{curve}.{size}" for curve in curves for size in sizes))

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Ranks by all tasks, the greedy order, and every split."""
        arrays: dict[str, NDArray[Any]] = {"rank": self.reference.ranks, "greedy.order": self.greedy.order}
        if self.holdout is not None:
            arrays |= {f"holdout.{name}": distances for name, distances in self.holdout.curves.items()}
        return arrays


def compare_subsets(
    scores: ExactScores, *, models: tuple[str, ...], tasks: tuple[str, ...], options: SubsetOptions
) -> TaskSubsets:
    """Compare rankings by sets of tasks with the ranking by all.

    Args:
        scores: at least 2 tasks and 2 models; without gaps for the rule ``mean``.
        models, tasks: names of columns and rows; among sets as near, those of earlier rows are taken.
        options: which sets, and how.
    """
    votes = task_votes(scores, options.rule)
    reference = rank_by_all_tasks(votes)
    max_size = min(options.max_size, scores.n_tasks - 1)
    holdout = None
    if scores.n_models >= MIN_MODELS:
        holdout = validate_on_holdout(votes, n_steps=max_size, n_splits=options.n_splits, seed=options.seed)
    return TaskSubsets(
        models=models,
        tasks=tasks,
        rule=options.rule,
        within=options.within,
        n_tied_tasks=int(ties_all_models(scores).sum()),
        reference=reference,
        sizes=tuple(
            measure_subsets(votes, reference, options.sample(scores.n_tasks, size)) for size in range(1, max_size + 1)
        ),
        greedy=choose_greedily(votes, reference, n_steps=scores.n_tasks),
        holdout=holdout,
    )


def ties_all_models(scores: ExactScores) -> NDArray[np.bool_]:
    """``(n_tasks,)`` whether all models that have the task have the same score on it."""
    rows = zip(scores.numerators, scores.present, strict=True)
    return np.array([len(set(row[present])) == 1 for row, present in rows])


def rank_by_tasks(
    scores: ExactScores, finding: TaskSubsets, tasks: NDArray[np.int64], *, higher_is_better: bool
) -> RankedModels:
    """The models by some of the tasks; means in the direction in which they were measured.

    Args:
        scores: of all tasks.
        finding: gives the rule and the names.
        tasks: rows that count.
        higher_is_better: the direction of the scores as they were loaded.
    """
    ranks = average_ranks(combine_digits(task_votes(scores, finding.rule).totals(tasks[None])[0]))
    chosen = scores.rows(tasks)
    if finding.rule == "mean":
        value = chosen.T.mean(axis=0) * (1 if higher_is_better else -1)
    else:
        value = np.array([float(rate) for rate in win_rates(chosen)])
    return RankedModels(models=finding.models, score=np.asarray(value, dtype=np.float64), rank=ranks)
