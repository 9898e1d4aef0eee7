"""How few tasks give nearly the final ranking?

The ranking by every set of one, two, … tasks is compared with the ranking by all of them: the best set, which is picked
with the answer in sight, beside the median one. Then tasks are added one by one, each time the one that helps most: an
order to go by. How much of its success is selection shows on models that had no say in it.

Source: Zhang & Hardt 2024, appendix D and figure 6; every number is defined in docs/statistics/task-subsets.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.distance_counts import ReferenceRanking
from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
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
from analyses.numerics.elections.voting.task_votes import AggregationRule, TaskVotes, combine_digits, task_votes
from analyses.numerics.elections.win_rates import win_rates
from analyses.presentation.validation import validate
from analyses.task_subsets import figures, tables
from analyses.task_subsets import summary as wording
from tracker.queries.performance import TaskMatrix
from tracker.queries.ranking.task_rankings import task_rankings
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, analysis, finite_or_undefined

HEADLINE_SIZES = 6
"""Sizes up to which numbers are worth comparing across findings."""
NO_HALVES = Undefined(f"two halves need at least {MIN_MODELS} models")


@dataclass(frozen=True, kw_only=True)
class TaskSubsets(Finding):
    """Rankings by a few tasks beside the ranking by all.

    Attributes:
        models, tasks: names; tasks in alphabetical order.
        rule: "mean" or "win-rate".
        within: share of changed pairs that is near enough.
        n_tied_tasks: tasks on which all models have the same score.
        standard: the ranking by all tasks.
        sizes: what was found for sets of 1, 2, … tasks.
        greedy: tasks one by one, to the last.
        held: greedy orders judged by models that had no say; None for fewer than four models.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    rule: AggregationRule
    within: float
    n_tied_tasks: int
    standard: ReferenceRanking
    sizes: tuple[SubsetDistances, ...]
    greedy: GreedyOrder
    held: HoldoutDistances | None

    @property
    def greedy_size_within(self) -> int:
        """How many tasks of the greedy order are near enough for the first time."""
        return int(np.argmax(self.greedy.distances.tau_paper <= self.within)) + 1

    @property
    def smallest(self) -> tuple[tuple[str, ...], bool]:
        """A smallest set known to be near enough, and whether it is proven that no smaller one is."""
        for one in self.sizes:
            if one.sets.size >= self.greedy_size_within:
                break
            if one.distances.tau_paper.min() <= self.within:
                return self._named(one.nearest), self._is_proven(one.sets.size)
        size = self.greedy_size_within
        return self._named(np.sort(self.greedy.order[:size])), self._is_proven(size)

    def _is_proven(self, size: int) -> bool:
        return size <= len(self.sizes) + 1 and all(one.sets.is_exhaustive for one in self.sizes[: size - 1])

    def _named(self, tasks: NDArray[np.int64]) -> tuple[str, ...]:
        return tuple(self.tasks[task] for task in tasks)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """How many tasks are enough, then distances by size."""
        found, is_proven = self.smallest
        metrics: dict[str, Metric] = {
            "n_tasks": float(len(self.tasks)),
            "n_models": float(len(self.models)),
            "n_tied_tasks": float(self.n_tied_tasks),
            "within": self.within,
            "size_within": float(len(found)),
            "size_within.exact": float(is_proven),
            "greedy.size_within": float(self.greedy_size_within),
        }
        for measure in tables.MEASURES:
            for one in self.sizes:
                told, size = tables.quantiles(one.distances, measure), one.sets.size
                for level in ("best", "median"):
                    metrics[f"{level}.{measure}.{size}"] = finite_or_undefined(
                        told[level], "every set of this size, or all tasks, tie all models"
                    )
                metrics[f"greedy.{measure}.{size}"] = finite_or_undefined(
                    float(getattr(self.greedy.distances, measure)[size - 1]),
                    "these tasks, or all tasks, tie all models",
                )
        for place, one in enumerate(self.sizes):
            for name in ("chosen", "judged", "unchosen"):
                metrics[f"holdout.{name}.{one.sets.size}"] = (
                    NO_HALVES if self.held is None else float(getattr(self.held, name)[:, place].mean())
                )
        return metrics

    @property
    def headline(self) -> tuple[str, ...]:
        """How many tasks are enough, and the first sizes."""
        sizes = range(1, min(HEADLINE_SIZES, len(self.sizes)) + 1)
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
        arrays: dict[str, NDArray[Any]] = {"rank": self.standard.ranks, "greedy.order": self.greedy.order}
        if self.held is not None:
            arrays |= {f"holdout.{name}": getattr(self.held, name) for name in ("chosen", "judged", "unchosen")}
        return arrays

    def summary(self) -> str:
        """What was found, in plain words."""
        names, is_proven = self.smallest
        told = self.sizes[min(len(names), len(self.sizes)) - 1]
        medians = (tables.quantiles(told.distances, measure)["median"] for measure in ("tau_paper", "mrc"))
        counts = {"n_tasks": len(self.tasks), "n_models": len(self.models)}
        words = [
            wording.enough(len(names), is_proven, names, rule=self.rule, within=self.within, **counts),
            wording.best_and_median(told, *medians),
            wording.one_by_one(self.greedy, self.tasks, self.greedy_size_within, self.within),
        ]
        if self.held is not None:
            words.append(wording.judged_apart(self.held, min(self.greedy_size_within, len(self.sizes))))
        return " ".join([*words, "Nothing here is a test."])


def few_tasks(
    scores: ExactScores,
    *,
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    rule: AggregationRule = "mean",
    max_size: int = 6,
    n_samples: int = 1000,
    largest_enumeration: int = 200_000,
    within: float = 0.05,
    n_splits: int = 20,
    seed: int = 0,
) -> TaskSubsets:
    """Compare rankings by sets of tasks with the ranking by all.

    Args:
        scores: at least 2 tasks and 2 models; without gaps for the rule ``mean``.
        models, tasks: names of columns and rows; among sets as near, those of earlier rows are taken.
        rule: how tasks are aggregated.
        max_size: largest size of a set, at least 1; sizes end at one task less than all.
        n_samples: sets of a size, drawn where not all are examined.
        largest_enumeration: up to so many sets of a size, all are.
        within: share of changed pairs that is near enough, in [0, 1).
        n_splits: random halves of the models.
        seed: of all draws.
    """
    votes = task_votes(scores, rule)
    standard = rank_by_all_tasks(votes)
    last = min(max_size, scores.n_tasks - 1)

    def of_size(size: int) -> SubsetDistances:
        sets = SubsetSample.enumerate_or_draw(
            scores.n_tasks, size, largest_enumeration=largest_enumeration, n_samples=n_samples, seed=seed
        )
        return measure_subsets(votes, standard, sets)

    splittable = scores.n_models >= MIN_MODELS
    return TaskSubsets(
        models=models,
        tasks=tasks,
        rule=rule,
        within=within,
        n_tied_tasks=int(_ties_everyone(scores).sum()),
        standard=standard,
        sizes=tuple(of_size(size) for size in range(1, last + 1)),
        greedy=choose_greedily(votes, standard, n_steps=scores.n_tasks),
        held=validate_on_holdout(votes, n_steps=last, n_splits=n_splits, seed=seed) if splittable else None,
    )


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    rule: Annotated[
        Literal["mean", "win-rate"], "how tasks are aggregated: mean score, or share of duels won over the tasks"
    ] = "mean",
    max_size: Annotated[int, "largest number of tasks in a set"] = 6,
    n_samples: Annotated[int, "random sets of a size that has too many to examine all"] = 1000,
    largest_enumeration: Annotated[int, "up to so many sets of a size, all are examined"] = 200_000,
    within: Annotated[float, "share of pairs of models that may change"] = 0.05,
    n_splits: Annotated[int, "random halves of the models on which the greedy choice is judged"] = 20,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Find few tasks that rank nearly as all do.

    Args:
        scores: at least 3 models and 2 tasks. For ``mean``, tasks that some model lacks are left out, with a note.
        rule: ``mean``, or ``win-rate``: pairwise, over the tasks of a set that both models have.
        max_size: see `few_tasks`, as for all below.
        n_samples: of a size.
        largest_enumeration: of a size.
        within: in [0, 1).
        n_splits: at least 1.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: too few models or tasks, infinite scores, or an option out of range.
    """
    validate(
        wording.option_problems(
            rule=rule,
            max_size=max_size,
            n_samples=n_samples,
            largest_enumeration=largest_enumeration,
            n_splits=n_splits,
            within=within,
            seed=seed,
        )
    )
    field = task_rankings(scores)
    kept = field.scores.complete() if rule == "mean" else field.scores
    validate(wording.field_problems(field.scores, kept, rule))
    sets = {"max_size": max_size, "n_samples": n_samples, "largest_enumeration": largest_enumeration}
    validate(wording.cost_problems(kept, rule, **sets))
    by_name = np.array(sorted(range(kept.n_tasks), key=lambda task: kept.tasks[task]), dtype=np.int64)
    exact = exact_scores(kept.T, kept.n_prompts, higher_is_better=kept.higher_is_better).rows(by_name)
    found = few_tasks(
        exact,
        models=kept.models,
        tasks=tuple(kept.tasks[task] for task in by_name),
        rule=rule,
        max_size=max_size,
        n_samples=n_samples,
        largest_enumeration=largest_enumeration,
        within=within,
        n_splits=n_splits,
        seed=seed,
    )
    tied = [name for name, ties in zip(found.tasks, _ties_everyone(exact), strict=True) if ties]
    ties_all = bool((found.standard.ranks == found.standard.ranks[0]).all())
    chosen = np.sort(found.greedy.order[: found.greedy_size_within])
    return Report(
        found,
        task_values={"greedy_position": {found.tasks[task]: float(i) for i, task in enumerate(found.greedy.order, 1)}},
        rankings={
            "all_tasks": _ranked(exact, found, np.arange(exact.n_tasks), kept.higher_is_better),
            "greedy_tasks": _ranked(exact, found, chosen, kept.higher_is_better),
        },
        tables={
            "sizes": tables.by_size(found.sizes, found.tasks),
            "greedy": tables.one_by_one(found.greedy, found.held, found.tasks),
        },
        figures={
            "distance": lambda: figures.distance(found.sizes, found.greedy, found.held, within),
            "greedy": lambda: figures.greedy(found.greedy, found.tasks, within, found.greedy_size_within),
        },
        warnings=[
            *field.warnings,
            *wording.warnings(field.scores, kept, rule, tied=tied, max_size=max_size, ties_all=ties_all),
        ],
    )


def _ties_everyone(scores: ExactScores) -> NDArray[np.bool_]:
    """``(n_tasks,)`` whether all models that have the task have the same score on it."""
    pairs = zip(scores.numerators, scores.present, strict=True)
    return np.array([len(set(row[there])) == 1 for row, there in pairs])


def _ranked(scores: ExactScores, found: TaskSubsets, tasks: NDArray[np.int64], higher_is_better: bool) -> RankedModels:
    """The models by some of the tasks; means in the direction in which they were measured."""
    votes: TaskVotes = task_votes(scores, found.rule)
    ranks = average_ranks(combine_digits(votes.totals(tasks[None])[0]))
    some = scores.rows(tasks)
    if found.rule == "mean":
        value = some.T.mean(axis=0) * (1 if higher_is_better else -1)
    else:
        value = np.array([float(rate) for rate in win_rates(some)])
    return RankedModels(models=found.models, score=np.asarray(value, dtype=np.float64), rank=ranks)
