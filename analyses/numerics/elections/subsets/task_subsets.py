"""How near the ranking by a few tasks comes to the ranking by all.

The nearest set is the one with the fewest changed pairs: reversed, or tied in exactly one of the two rankings (Zhang &
Hardt 2024, equation 4). Strict reversals alone would call a task on which all models tie a perfect one. Among sets with
as many, the one with the smallest largest change of rank is taken, then the first in the order of tasks.

Source: Zhang & Hardt 2024, appendix D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.distance_counts import RankingDistances, ReferenceRanking, count_distances
from analyses.numerics.elections.subsets.subset_sampling import SubsetSample
from analyses.numerics.elections.voting.task_votes import TaskVotes, combine_digits
from tracker.statistics.resampling import map_blocks, split_blocks
from tracker.statistics.rng_streams import HALVES, generator

SUBSET_BLOCK = 8192
"""Sets in one piece of work."""
MAX_TOTALS = 1 << 18
"""Totals held at a time."""
N_RANDOM_SUBSETS = 100
"""Random sets of a size that a choice is judged beside."""
MIN_MODELS = 4
"""Two halves with a pair each."""


@dataclass(frozen=True, kw_only=True)
class SubsetDistances:
    """The rankings by sets of one size.

    Attributes:
        sets: which were examined.
        distances: of each from the ranking by all tasks.
        nearest: ``(size,)`` the nearest set examined, and how many are as near.
        nearest_mrc: ``(size,)`` likewise by the largest change of rank, then by changed pairs.
    """

    sets: SubsetSample
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
    """Greedy orders found on random halves of the models, and their distances, as ``tau_paper``.

    Attributes:
        chosen: ``(n_splits, n_sizes)`` on the models on which they were chosen.
        judged: ``(n_splits, n_sizes)`` on the others.
        unchosen: ``(n_splits, n_sizes)`` on the others, mean of random sets of that size.
    """

    chosen: NDArray[np.float64]
    judged: NDArray[np.float64]
    unchosen: NDArray[np.float64]


def rank_by_all_tasks(votes: TaskVotes) -> ReferenceRanking:
    """The ranking by all tasks."""
    everything = np.arange(votes.n_tasks, dtype=np.int64)
    return ReferenceRanking.from_totals(combine_digits(votes.totals(everything[None])[0]))


def subset_distances(votes: TaskVotes, standard: ReferenceRanking, subsets: NDArray[np.int64]) -> RankingDistances:
    """Distances of the rankings by sets of tasks, ``(n_subsets, size)``."""
    step = max(1, MAX_TOTALS // votes.n_models)
    parts = [subsets[start : start + step] for start in range(0, len(subsets), step)]
    return RankingDistances.concatenate([count_distances(standard, votes.totals(part)) for part in parts])


def measure_subsets(votes: TaskVotes, standard: ReferenceRanking, sets: SubsetSample) -> SubsetDistances:
    """The rankings by the sets of one size."""
    blocks = split_blocks(sets.n_examined, SUBSET_BLOCK)

    def done(block: int) -> RankingDistances:
        numbers = blocks[block]
        return subset_distances(votes, standard, sets.rows(numbers.start, numbers.stop))

    found = RankingDistances.concatenate(map_blocks(done, len(blocks)))
    near, near_mrc = (_first(sets, *keys) for keys in (_by_pairs(found), _by_pairs(found)[::-1]))
    return SubsetDistances(sets=sets, distances=found, nearest=near[0], n_nearest=near[1], nearest_mrc=near_mrc[0])


def choose_greedily(votes: TaskVotes, standard: ReferenceRanking, *, n_steps: int) -> GreedyOrder:
    """Begin with no task; add the one with which the ranking is nearest to the standard, as often as asked."""
    order: list[int] = []
    left = list(range(votes.n_tasks))
    steps: list[RankingDistances] = []
    for _ in range(n_steps):
        subsets = np.empty((len(left), len(order) + 1), np.int64)
        subsets[:, :-1], subsets[:, -1] = order, left
        found = subset_distances(votes, standard, subsets)
        best = int(np.lexsort(_by_pairs(found)[::-1])[0])
        order.append(left.pop(best))
        steps.append(subset_distances(votes, standard, subsets[best : best + 1]))
    return GreedyOrder(order=np.array(order, np.int64), distances=RankingDistances.concatenate(steps))


def validate_on_holdout(votes: TaskVotes, *, n_steps: int, n_splits: int, seed: int) -> HoldoutDistances:
    """Choose tasks greedily for one random half of the models, and judge them by the other.

    Each half is a field of its own: rankings, by all tasks too, are those among its models alone. Of an odd number of
    models, the half that judges has one more.

    Args:
        votes: of at least `MIN_MODELS` models.
        n_steps: tasks chosen.
        n_splits: random halves.
        seed: of the halves.
    """

    drawn = [
        SubsetSample.enumerate_or_draw(
            votes.n_tasks, size, largest_enumeration=0, n_samples=N_RANDOM_SUBSETS, seed=seed
        )
        for size in range(1, n_steps + 1)
    ]

    def split(number: int) -> tuple[NDArray[np.float64], ...]:
        models = generator(seed, HALVES, number).permutation(votes.n_models).astype(np.int64)
        choosing, judging = (votes.select_models(half) for half in np.split(models, [votes.n_models // 2]))
        greedy = choose_greedily(choosing, rank_by_all_tasks(choosing), n_steps=n_steps)
        standard = rank_by_all_tasks(judging)
        judged = [subset_distances(judging, standard, greedy.order[None, :size]) for size in range(1, n_steps + 1)]
        unchosen = [
            subset_distances(judging, standard, sets.rows(0, N_RANDOM_SUBSETS)).tau_paper.mean() for sets in drawn
        ]
        return greedy.distances.tau_paper, RankingDistances.concatenate(judged).tau_paper, np.array(unchosen)

    chosen, judged, unchosen = (np.array(one) for one in zip(*map_blocks(split, n_splits), strict=True))
    return HoldoutDistances(chosen=chosen, judged=judged, unchosen=unchosen)


def _by_pairs(found: RankingDistances) -> Sequence[NDArray[np.int64]]:
    return found.n_changed, found.doubled_rank_change


def _first(sets: SubsetSample, key: NDArray[np.int64], then: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Of the sets with the least key, and among them the least second, the first by its tasks; and their number."""
    least = np.flatnonzero(key == key.min())
    least = least[then[least] == then[least].min()]
    if sets.is_exhaustive:
        return sets.rows(int(least[0]), int(least[0]) + 1)[0], len(least)
    tied = np.unique(np.vstack([sets.rows(i, i + 1) for i in least.tolist()]), axis=0)
    return tied[0], len(tied)
