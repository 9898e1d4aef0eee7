"""How far many rankings are from one, counted in integers: strict reversals, ties, the largest change of rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from tracker.statistics.jit import jit

INSERTION_RUN = 8
"""Models sorted by insertion before runs are merged."""


@dataclass(frozen=True, kw_only=True)
class ReferenceRanking:
    """The ranking that others are compared with.

    Attributes:
        ranks: ``(m,)`` 1 is best, ties share the mean of their ranks.
        order: ``(m,)`` int64, models best first.
        group_starts: ``(n_groups + 1,)`` int64, where models of equal rank begin in ``order``.
        n_tied: pairs that it ties.
    """

    ranks: NDArray[np.float64]
    order: NDArray[np.int64]
    group_starts: NDArray[np.int64]
    n_tied: int

    @classmethod
    def from_totals(cls, totals: Sequence[int]) -> ReferenceRanking:
        """The ranking by totals; larger is better."""
        ranks = average_ranks(totals)
        sizes = np.unique(ranks, return_counts=True)[1]
        return cls(
            ranks=ranks,
            order=np.argsort(ranks, kind="stable").astype(np.int64),
            group_starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            n_tied=int((sizes * (sizes - 1) // 2).sum()),
        )


@dataclass(frozen=True, kw_only=True)
class RankingDistances:
    """Distances of ``n`` rankings of ``n_models`` models from the standard; see `RankingDistance`.

    Attributes:
        n_models: at least 2.
        n_tied_before: pairs that the standard ties.
        n_reversed: ``(n,)`` int64, pairs in strictly opposite order.
        n_tied: pairs that the ranking ties.
        n_tied_both: pairs that both tie.
        doubled_rank_change: twice the largest change of rank.
    """

    n_models: int
    n_tied_before: int
    n_reversed: NDArray[np.int64]
    n_tied: NDArray[np.int64]
    n_tied_both: NDArray[np.int64]
    doubled_rank_change: NDArray[np.int64]

    @classmethod
    def concatenate(cls, parts: Sequence[RankingDistances]) -> RankingDistances:
        """Distances from the same standard, one after the other."""
        names = [f.name for f in fields(cls)][2:]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(n_models=parts[0].n_models, n_tied_before=parts[0].n_tied_before, **arrays)

    @property
    def n_pairs(self) -> int:
        """Pairs of models."""
        return self.n_models * (self.n_models - 1) // 2

    @property
    def n_changed(self) -> NDArray[np.int64]:
        """``(n,)`` pairs reversed, or tied in exactly one of the two rankings."""
        return self.n_reversed + self.n_tied + self.n_tied_before - 2 * self.n_tied_both

    @property
    def tau(self) -> NDArray[np.float64]:
        """``(n,)`` share of pairs in strictly opposite order."""
        return np.asarray(self.n_reversed / self.n_pairs)

    @property
    def tau_paper(self) -> NDArray[np.float64]:
        """``(n,)`` share of pairs reversed, or tied in exactly one of the two rankings."""
        return np.asarray(self.n_changed / self.n_pairs)

    @property
    def tau_b(self) -> NDArray[np.float64]:
        """``(n,)`` (1 − tau-b) / 2; NaN where exactly one of the two ties all models, 0 where both do."""
        n_ordered = float(self.n_pairs - self.n_tied_before)
        ordered = (self.n_pairs - self.n_tied).astype(np.float64)
        agreeing = self.n_pairs - self.n_tied_before - self.n_tied + self.n_tied_both - self.n_reversed
        norm = np.sqrt(n_ordered * ordered)
        without = np.where(ordered == n_ordered, 1.0, np.nan)
        return np.asarray((1 - np.divide(agreeing - self.n_reversed, norm, out=without, where=norm > 0)) / 2)

    @property
    def mrc(self) -> NDArray[np.float64]:
        """``(n,)`` largest change of rank, over m − 1."""
        return np.asarray(self.doubled_rank_change / (2 * (self.n_models - 1)))


def count_distances(reference: ReferenceRanking, totals: NDArray[np.int64]) -> RankingDistances:
    """How far the rankings by totals are from the standard.

    Args:
        reference: of m models, at least 2.
        totals: ``(n, n_digits, m)`` int64, larger is better; compared digit by digit.
    """
    counts = np.empty((4, len(totals)), np.int64)
    _count(totals, reference.order, reference.group_starts, np.rint(2 * reference.ranks).astype(np.int64), counts)
    return RankingDistances(
        n_models=len(reference.order),
        n_tied_before=reference.n_tied,
        n_reversed=counts[0],
        n_tied=counts[1],
        n_tied_both=counts[2],
        doubled_rank_change=counts[3],
    )


@jit
def _below(a: Any, b: Any, totals: Any) -> Any:
    """Whether model ``a`` has less than model ``b``."""
    for d in range(totals.shape[0]):
        if totals[d, a] != totals[d, b]:
            return totals[d, a] < totals[d, b]
    return False


@jit
def _sort(models: Any, buffer: Any, totals: Any) -> Any:
    """Sort models, the most first, equal ones as they come; returns the pairs that were strictly out of order.

    Runs are sorted by insertion, then merged; both count what each step moves past.
    """
    n = models.size
    n_reversed = np.int64(0)
    for start in range(0, n, INSERTION_RUN):
        for i in range(start + 1, min(start + INSERTION_RUN, n)):
            model, j = models[i], i
            while j > start and _below(models[j - 1], model, totals):
                models[j] = models[j - 1]
                j -= 1
            models[j] = model
            n_reversed += i - j
    width = INSERTION_RUN
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle, stop = start + width, min(start + 2 * width, n)
            if not _below(models[middle - 1], models[middle], totals):
                continue
            for i in range(start, middle):
                buffer[i - start] = models[i]
            left, n_left, right, position = 0, middle - start, middle, start
            while left < n_left and right < stop:
                if _below(buffer[left], models[right], totals):
                    models[position] = models[right]
                    right += 1
                    n_reversed += n_left - left
                else:
                    models[position] = buffer[left]
                    left += 1
                position += 1
            while left < n_left:
                models[position] = buffer[left]
                left += 1
                position += 1
        width *= 2
    return n_reversed


@jit
def _count(totals: Any, order: Any, group_starts: Any, twice_rank: Any, counts: Any) -> None:
    """Fill ``counts``, ``(4, n)``: reversed, tied, tied in both, twice the largest change of rank."""
    m, n_groups = order.size, group_starts.size - 1
    models, buffer = np.empty(m, np.int64), np.empty(m, np.int64)
    for s in range(totals.shape[0]):
        ranking = totals[s]
        for i in range(m):
            models[i] = order[i]
        if n_groups < m:  # Pairs that the standard ties are not reversed, so they are put in order uncounted.
            for g in range(n_groups):
                if group_starts[g + 1] - group_starts[g] > 1:
                    _sort(models[group_starts[g] : group_starts[g + 1]], buffer, ranking)
        counts[0, s] = _sort(models, buffer, ranking)
        n_tied, n_tied_both, doubled_rank_change = np.int64(0), np.int64(0), np.int64(0)
        start = 0
        while start < m:
            stop = start + 1
            while stop < m and not _below(models[stop], models[start], ranking):
                stop += 1
            n_tied += (stop - start) * (stop - start - 1) // 2
            run = 0
            for i in range(start, stop):
                before = twice_rank[models[i]]
                run = run + 1 if i > start and before == twice_rank[models[i - 1]] else 0
                n_tied_both += run
                doubled_rank_change = max(doubled_rank_change, abs(before - (start + stop + 1)))
            start = stop
        counts[1, s], counts[2, s], counts[3, s] = n_tied, n_tied_both, doubled_rank_change
