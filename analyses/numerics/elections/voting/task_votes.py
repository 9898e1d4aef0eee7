"""What each task gives each model, in integers, so that any set of tasks can be added up without rounding.

Totals of any size are kept in 64-bit integers: as one where all sums fit, otherwise as digits of `DIGIT_BITS` bits, the
most significant first, carried after adding. A sum of digits stays below 2⁶³ for fewer than 2²³ summands.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.win_rates import count_models_beaten, rank_codes
from tracker.statistics.jit import jit, popcount

AggregationRule = Literal["mean", "win-rate"]
"""How tasks are aggregated."""
DIGIT_BITS = 40
"""Bits of a digit of a total."""
MAX_SINGLE_DIGIT_BITS = 62
"""Bits up to which a total is not split."""
_MASK = (1 << DIGIT_BITS) - 1


class TaskVotes(Protocol):
    """Votes of tasks that can be added up over any of them."""

    @property
    def n_tasks(self) -> int:
        """Voters."""

    @property
    def n_models(self) -> int:
        """Candidates."""

    def totals(self, subsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """What models get from sets of tasks.

        Args:
            subsets: ``(n_subsets, size)`` tasks.

        Returns:
            ``(n_subsets, n_digits, n_models)``; larger is better.
        """

    def select_models(self, models: NDArray[np.int64]) -> TaskVotes:
        """The votes if only these models stood."""


def task_votes(scores: ExactScores, rule: AggregationRule) -> TaskVotes:
    """The votes under a rule.

    Args:
        scores: of the tasks; without gaps for ``mean``.
        rule: ``mean``, or ``win-rate``: the mean over opponents of the share of tasks won, among those both have
            (a tie is not won, and without a common task the share is 0).
    """
    if rule == "mean":
        return PointVotes.from_scores(scores)
    levels = rank_codes(scores).astype(np.int64)
    return WinVotes.from_levels(levels) if scores.is_complete else PairwiseVotes.from_levels(levels, scores.present)


def combine_digits(totals: NDArray[np.int64]) -> list[int]:
    """The totals of one set of tasks, ``(n_digits, n_models)``, as Python's integers."""
    integers = [0] * totals.shape[1]
    for digit in totals.tolist():
        integers = [(high << DIGIT_BITS) + low for high, low in zip(integers, digit, strict=True)]
    return integers


@dataclass(frozen=True, kw_only=True)
class PointVotes:
    """Votes that are added up.

    Attributes:
        digits: ``(n_digits, n_tasks, n_models)`` int64, non-negative.
    """

    digits: NDArray[np.int64]

    @classmethod
    def from_scores(cls, scores: ExactScores) -> PointVotes:
        """Scores above the lowest of their task, in the largest unit of which all are multiples."""
        above = scores.numerators - scores.numerators.min(axis=1, keepdims=True)
        unit = gcd(*above.ravel().tolist()) or 1
        return cls(digits=_split_digits(above // unit, len(above)))

    @property
    def n_tasks(self) -> int:
        """Voters."""
        return int(self.digits.shape[1])

    @property
    def n_models(self) -> int:
        """Candidates."""
        return int(self.digits.shape[2])

    def totals(self, subsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `TaskVotes`."""
        out = np.empty((len(subsets), len(self.digits), self.n_models), np.int64)
        _sum_digits(self.digits, subsets, out)
        return out

    def select_models(self, models: NDArray[np.int64]) -> PointVotes:
        """The votes if only these models stood."""
        return PointVotes(digits=np.ascontiguousarray(self.digits[:, :, models]))


@dataclass(frozen=True, kw_only=True)
class WinVotes:
    """Votes by the number of models beaten; no score is missing.

    Attributes:
        levels: ``(n_tasks, n_models)`` int64, in the order of the scores of each task, equal where they are.
        points: how many models each beats on each task.
    """

    levels: NDArray[np.int64]
    points: PointVotes

    @classmethod
    def from_levels(cls, levels: NDArray[np.int64]) -> WinVotes:
        """Votes from the order of scores in each task."""
        return cls(levels=levels, points=PointVotes(digits=count_models_beaten(levels)[None]))

    @property
    def n_tasks(self) -> int:
        """Voters."""
        return self.points.n_tasks

    @property
    def n_models(self) -> int:
        """Candidates."""
        return self.points.n_models

    def totals(self, subsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `TaskVotes`."""
        return self.points.totals(subsets)

    def select_models(self, models: NDArray[np.int64]) -> WinVotes:
        """The votes if only these models stood."""
        return WinVotes.from_levels(self.levels[:, models])


@dataclass(frozen=True, kw_only=True)
class PairwiseVotes:
    """Votes pair by pair, over the tasks that both have a score for.

    Attributes:
        won: ``(n_models, n_models, n_words)`` uint64, bit t set where the row has the better score on task t.
        both: likewise, where both have a score.
        n_tasks: voters.
    """

    won: NDArray[np.uint64]
    both: NDArray[np.uint64]
    n_tasks: int

    @classmethod
    def from_levels(cls, levels: NDArray[np.int64], present: NDArray[np.bool_]) -> PairwiseVotes:
        """Votes from the order of scores in each task, ``(n_tasks, n_models)``, and where there are any."""
        n_tasks, n_models = levels.shape
        won = np.zeros((n_models, n_models, n_tasks // 64 + 1), np.uint64)
        both = np.zeros_like(won)
        for task in range(n_tasks):
            bit, word = np.uint64(1) << np.uint64(task % 64), task // 64
            compared = present[task][:, None] & present[task]
            both[:, :, word] |= compared * bit
            won[:, :, word] |= (compared & (levels[task][:, None] > levels[task])) * bit
        return cls(won=won, both=both, n_tasks=n_tasks)

    @property
    def n_models(self) -> int:
        """Candidates."""
        return int(self.won.shape[0])

    def totals(self, subsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `TaskVotes`; in units of one over the least common multiple of the possible numbers of common tasks."""
        size = subsets.shape[1]
        whole = lcm(*range(1, size + 1))
        shares = np.array([[0], *([whole // count] for count in range(1, size + 1))], dtype=object)
        digits = _split_digits(shares, size * self.n_models)[:, :, 0]
        out = np.empty((len(subsets), len(digits), self.n_models), np.int64)
        _sum_pairwise_wins(self.won, self.both, digits, subsets, out)
        return out

    def select_models(self, models: NDArray[np.int64]) -> PairwiseVotes:
        """The votes if only these models stood."""
        chosen = np.ix_(models, models)
        return PairwiseVotes(
            won=np.ascontiguousarray(self.won[chosen]),
            both=np.ascontiguousarray(self.both[chosen]),
            n_tasks=self.n_tasks,
        )


def _split_digits(values: NDArray[Any], n_summands: int) -> NDArray[np.int64]:
    """Non-negative Python integers ``(n, m)`` as ``(n_digits, n, m)``, such that so many can be added up."""
    largest = int(values.max())
    if (largest * n_summands).bit_length() <= MAX_SINGLE_DIGIT_BITS:
        return values[None].astype(np.int64)
    n_digits = -(-largest.bit_length() // DIGIT_BITS)
    shifts = [DIGIT_BITS * index for index in reversed(range(n_digits))]
    return np.array([(values >> index) & _MASK for index in shifts]).astype(np.int64, order="C")


@jit
def _carry(totals: Any) -> None:
    """Bring all digits but the first below 2^DIGIT."""
    for d in range(totals.shape[0] - 1, 0, -1):
        for j in range(totals.shape[1]):
            totals[d - 1, j] += totals[d, j] >> DIGIT_BITS
            totals[d, j] &= _MASK


@jit
def _sum_digits(digits: Any, subsets: Any, out: Any) -> None:
    """Sums over the tasks of each set; what a set begins with like the one before it is not added again."""
    n_digits, m, size = digits.shape[0], digits.shape[2], subsets.shape[1]
    sums = np.zeros((size + 1, n_digits, m), np.int64)
    for s in range(subsets.shape[0]):
        first = 0
        while s > 0 and first < size - 1 and subsets[s, first] == subsets[s - 1, first]:
            first += 1
        for level in range(first, size):
            task = subsets[s, level]
            for d in range(n_digits):
                for j in range(m):
                    sums[level + 1, d, j] = sums[level, d, j] + digits[d, task, j]
        for d in range(n_digits):
            for j in range(m):
                out[s, d, j] = sums[size, d, j]
        _carry(out[s])


@jit
def _sum_pairwise_wins(won: Any, both: Any, shares: Any, subsets: Any, out: Any) -> None:
    """Sums of the shares of duels won; ``shares``, ``(n_digits, size + 1)``: one win among so many common tasks."""
    m, n_words = won.shape[0], won.shape[2]
    chosen = np.empty(n_words, np.uint64)
    for s in range(subsets.shape[0]):
        chosen[:] = 0
        for task in subsets[s]:
            chosen[task // 64] |= np.uint64(1) << np.uint64(task % 64)
        out[s] = 0
        for i in range(m):
            for j in range(m):
                common, wins = np.uint64(0), np.uint64(0)
                for w in range(n_words):
                    common += popcount(both[i, j, w] & chosen[w])
                    wins += popcount(won[i, j, w] & chosen[w])
                for d in range(shares.shape[0]):
                    out[s, d, i] += np.int64(wins) * shares[d, np.int64(common)]
        _carry(out[s])
