"""How near the ranking by a few tasks comes to the ranking by all.

The nearest set is the one with the fewest changed pairs: reversed, or tied in exactly one of the two rankings (Zhang &
Hardt 2024, equation 4). Strict reversals alone would call a task on which all models tie a perfect one. Among sets with
as many, the one with the smallest largest change of rank is taken, then the first in the order of tasks.

Source: Zhang & Hardt 2024, appendix D.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.distance_counts import RankingDistances, ReferenceRanking, count_distances
from analyses.numerics.elections.subsets.subset_sampling import SubsetSample
from analyses.numerics.elections.voting.task_votes import TaskVotes, combine_digits
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.rng_streams import HALVES, generator

SUBSET_BLOCK = 8192
"""Sets in one piece of work."""
MAX_TOTALS = 1 << 18
"""Totals held at a time."""
N_RANDOM_SUBSETS = 100
"""Random sets of a size that a choice is compared with."""
MIN_MODELS = 4
"""Two halves with a pair each."""


@dataclass(frozen=True, kw_only=True)
class SubsetDistances:
    """The rankings by sets of one size.

    Attributes:
        sample: the sets that were examined.
        distances: of each from the ranking by all tasks.
        nearest: ``(size,)`` the nearest set examined, and how many are as near.
        nearest_mrc: ``(size,)`` likewise by the largest change of rank, then by changed pairs.
    """

    sample: SubsetSample
    distances: RankingDistances
    nearest: NDArray[np.int64]
    n_nearest: int
    nearest_mrc: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GreedyOrder:
    """Tasks in the order in which each brings the ranking nearest to that by all.

    Attributes:
        order: tasks.
        distances: after each.
    """

    order: NDArray[np.int64]
    distances: RankingDistances


@dataclass(frozen=True, kw_only=True)
class HoldoutDistances:
    """Distances, as ``tau_paper``, of greedy orders found on random halves of the models.

    Attributes:
        selection: ``(n_splits, n_sizes)`` on the models on which the tasks were chosen.
        test: ``(n_splits, n_sizes)`` on the held-out models.
        random: ``(n_splits, n_sizes)`` on the held-out models, mean of random sets of that size.
    """

    CURVES: ClassVar[tuple[str, ...]] = ("chosen", "judged", "unchosen")
    """Names of the three in metrics, arrays and tables."""

    selection: NDArray[np.float64]
    test: NDArray[np.float64]
    random: NDArray[np.float64]

    @property
    def curves(self) -> Mapping[str, NDArray[np.float64]]:
        """The three by name."""
        return dict(zip(self.CURVES, (self.selection, self.test, self.random), strict=True))


def rank_by_all_tasks(votes: TaskVotes) -> ReferenceRanking:
    """The ranking by all tasks."""
    all_tasks = np.arange(votes.n_tasks, dtype=np.int64)
    return ReferenceRanking.from_totals(combine_digits(votes.totals(all_tasks[None])[0]))


def subset_distances(votes: TaskVotes, reference: ReferenceRanking, subsets: NDArray[np.int64]) -> RankingDistances:
    """Distances of the rankings by sets of tasks, ``(n_subsets, size)``."""
    step = max(1, MAX_TOTALS // votes.n_models)
    parts = [subsets[start : start + step] for start in range(0, len(subsets), step)]
    return RankingDistances.concatenate([count_distances(reference, votes.totals(part)) for part in parts])


def measure_subsets(votes: TaskVotes, reference: ReferenceRanking, sample: SubsetSample) -> SubsetDistances:
    """The rankings by the sets of one size."""
    blocks = split_blocks(sample.n_examined, SUBSET_BLOCK)

    def measure_block(block: int) -> RankingDistances:
        numbers = blocks[block]
        return subset_distances(votes, reference, sample.subsets(numbers.start, numbers.stop))

    distances = RankingDistances.concatenate(map_blocks(measure_block, len(blocks)))
    changed, moved = distances.n_changed, distances.doubled_rank_change
    nearest, n_nearest = _find_nearest(sample, changed, moved)
    nearest_mrc, _ = _find_nearest(sample, moved, changed)
    return SubsetDistances(
        sample=sample, distances=distances, nearest=nearest, n_nearest=n_nearest, nearest_mrc=nearest_mrc
    )


def choose_greedily(votes: TaskVotes, reference: ReferenceRanking, *, n_steps: int) -> GreedyOrder:
    """Begin with no task; ``n_steps`` times, add the one with which the ranking is nearest to the reference."""
    order: list[int] = []
    remaining = list(range(votes.n_tasks))
    steps: list[RankingDistances] = []
    for _ in range(n_steps):
        subsets = np.empty((len(remaining), len(order) + 1), np.int64)
        subsets[:, :-1], subsets[:, -1] = order, remaining
        distances = subset_distances(votes, reference, subsets)
        best = int(np.lexsort((distances.doubled_rank_change, distances.n_changed))[0])
        order.append(remaining.pop(best))
        steps.append(subset_distances(votes, reference, subsets[best : best + 1]))
    return GreedyOrder(order=np.array(order, np.int64), distances=RankingDistances.concatenate(steps))


def validate_on_holdout(votes: TaskVotes, *, n_steps: int, n_splits: int, seed: int) -> HoldoutDistances:
    """Choose tasks greedily for one random half of the models, and test them on the other.

    Each half is ranked separately: rankings, by all tasks too, are those among its models alone. Of an odd number of
    models, the test half has one more.

    Args:
        votes: of at least `MIN_MODELS` models.
        n_steps: tasks chosen.
        n_splits: random halves.
        seed: of the halves.
    """
    random_samples = [
        SubsetSample.enumerate_or_draw(
            votes.n_tasks, size, largest_enumeration=0, n_samples=N_RANDOM_SUBSETS, seed=seed
        )
        for size in range(1, n_steps + 1)
    ]

    def split(number: int) -> tuple[NDArray[np.float64], ...]:
        models = generator(seed, HALVES, number).permutation(votes.n_models).astype(np.int64)
        selection_votes, test_votes = (votes.select_models(half) for half in np.split(models, [votes.n_models // 2]))
        greedy = choose_greedily(selection_votes, rank_by_all_tasks(selection_votes), n_steps=n_steps)
        reference = rank_by_all_tasks(test_votes)
        test = [subset_distances(test_votes, reference, greedy.order[None, :size]) for size in range(1, n_steps + 1)]
        random = [
            subset_distances(test_votes, reference, sample.subsets(0, N_RANDOM_SUBSETS)).tau_paper.mean()
            for sample in random_samples
        ]
        return greedy.distances.tau_paper, RankingDistances.concatenate(test).tau_paper, np.array(random)

    selection, test, random = (np.array(curves) for curves in zip(*map_blocks(split, n_splits), strict=True))
    return HoldoutDistances(selection=selection, test=test, random=random)


def _find_nearest(
    sample: SubsetSample, key: NDArray[np.int64], tie_break: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Of the sets with the least key, then the least tie break, the first by its tasks; and their number."""
    least = np.flatnonzero(key == key.min())
    least = least[tie_break[least] == tie_break[least].min()]
    if sample.is_exhaustive:
        return sample.subsets(int(least[0]), int(least[0]) + 1)[0], len(least)
    tied = np.unique(np.vstack([sample.subsets(i, i + 1) for i in least.tolist()]), axis=0)
    return tied[0], len(tied)
