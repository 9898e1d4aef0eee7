"""How the cosines of a table's rows are distributed: bins, and statistics of the pairs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_layout import CosineLayout
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.cosines.cosine_passes import CosinePasses
from analyses.numerics.similarity.cosines.expected_bins import ExpectedBins
from analyses.numerics.similarity.distributions import PERCENTILES, STATISTICS
from analyses.numerics.similarity.weighted_distributions import REACHED
from tracker.statistics.jit import jit

Counts = NDArray[Any]
"""Integers, or float64 where rows have weights."""


@dataclass(frozen=True, slots=True)
class CosineDistribution:
    """One table's distribution. Thousands of these stay in memory, or come from other machines.

    Attributes:
        start: the first bin with a pair of rows that are not all zero.
        trimmed: the pairs of such rows in the bins from there to the last one with any, or their weight; integers in as
            few bytes as hold them.
        zero_pairs: pairs with a row of zeros, or their weight.
        zero_bin: the bin of their cosine, 0.
        statistics: ``(n_names, 4)``.
    """

    start: int
    trimmed: Counts
    zero_pairs: float
    zero_bin: int
    statistics: NDArray[np.float64]

    @classmethod
    def create(
        cls, nonzero: Counts, zero_pairs: float, zero_bin: int, statistics: NDArray[np.float64]
    ) -> CosineDistribution:
        """The distribution with ``(BINS,)`` pairs of rows that are not all zero."""
        present = np.flatnonzero(nonzero)
        start, stop = (int(present[0]), int(present[-1]) + 1) if present.size else (0, 0)
        trimmed = nonzero[start:stop]
        kind = np.min_scalar_type(int(trimmed.max(initial=0))) if trimmed.dtype.kind == "i" else trimmed.dtype
        return cls(start, trimmed.astype(kind), zero_pairs, zero_bin, statistics)

    def counts(self, name: str) -> Counts:
        """``(BINS,)`` counts of "cosine" or of "cosine_nonzero"."""
        counts = np.zeros(BINS, np.int64 if self.trimmed.dtype.kind == "u" else self.trimmed.dtype)
        counts[self.start : self.start + self.trimmed.size] = self.trimmed
        if name != "cosine_nonzero":
            counts[self.zero_bin] += self.zero_pairs
        return counts


def describe_cosines(
    scores: NDArray[np.float64], layout: CosineLayout, passes: CosinePasses, expected: ExpectedBins
) -> CosineDistribution:
    """One table's distribution.

    Args:
        scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
        layout: of the observed table.
        passes: over the table and its draws.
        expected: of the draws before; extended by those of this draw.
    """
    if layout.is_weighted:
        return _describe_weighted(scores, layout, passes, expected)
    return _describe(scores, layout, passes, expected)


@jit
def _find_ranks(counts: Any, low: int, high: int) -> Any:
    """The bins of two ranks, the second the same or the next, and which of the pairs in its bin each is."""
    place = passed = 0
    last = counts.size - 1
    while passed + counts[place] <= low and place < last:
        passed += counts[place]
        place += 1
    low_bin, low_rank = place, low - passed
    while passed + counts[place] <= high and place < last:
        passed += counts[place]
        place += 1
    return low_bin, place, low_rank, high - passed


def _describe(
    scores: NDArray[np.float64], layout: CosineLayout, passes: CosinePasses, expected: ExpectedBins
) -> CosineDistribution:
    """One table's distribution where pairs count the same."""
    rows = passes.prepare(scores, layout.weights)
    binned = passes.bin(rows, expected.prepare())
    counts = nonzero = binned.counts
    zero_pairs = layout.zero_pairs(scores)
    if zero_pairs:
        nonzero = counts.copy()
        nonzero[layout.zero_bin] -= zero_pairs
    n_pairs = layout.n_pairs
    totals = {"cosine": n_pairs, "cosine_nonzero": n_pairs - zero_pairs}
    counts_of = {"cosine": counts, "cosine_nonzero": nonzero}
    statistics = np.full((len(layout.names), len(STATISTICS)), np.nan)
    places: dict[tuple[str, int], tuple[list[int], list[int], float]] = {}
    is_selected = np.zeros(BINS, np.bool_)
    for name in layout.names:
        last = totals[name] - 1
        for p, (numerator, denominator) in enumerate(PERCENTILES if last >= 0 else ()):
            low, part = divmod(last * numerator, denominator)
            *bins, rank, next_rank = _find_ranks(counts_of[name], low, min(low + 1, last))
            places[name, p] = bins, [rank, next_rank], part / denominator
            is_selected[bins] = True
    selected = np.flatnonzero(is_selected).tolist()
    cosines, _ = expected.collect(rows, is_selected, counts)
    cosines.sort()
    for i, name in enumerate(layout.names):
        total = totals[name]
        if not total:
            continue
        # Pairs with a row of zeros are 1 from 1.
        gap, square = (binned.moments - (n_pairs - total)) / total
        statistics[i, 0], statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        of_pairs = _drop_zeros(cosines, zero_pairs) if name == "cosine_nonzero" else cosines
        starts = dict(zip(selected, accumulate(counts_of[name][selected].tolist(), initial=0), strict=False))
        for p in range(len(PERCENTILES)):
            bins, ranks, weight = places[name, p]
            a, b = (float(of_pairs[starts[at] + rank]) for at, rank in zip(bins, ranks, strict=True))
            statistics[i, 1 + p] = a + (b - a) * weight
    return CosineDistribution.create(nonzero, zero_pairs, layout.zero_bin, statistics)


def _drop_zeros(cosines: NDArray[np.float64], n_zeros: int) -> NDArray[np.float64]:
    """Sorted similarities without ``n_zeros`` of the zeros, if their bin is among them."""
    at = int(np.searchsorted(cosines, 0.0))
    n_present = int(np.searchsorted(cosines, 0.0, side="right")) - at
    return np.delete(cosines, slice(at, at + min(n_zeros, n_present)))


def _describe_weighted(
    scores: NDArray[np.float64], layout: CosineLayout, passes: CosinePasses, expected: ExpectedBins
) -> CosineDistribution:
    """The distribution of weighted pairs. Rows of zeros weigh nothing in the passes and are added where they count."""
    is_zero = np.asarray(~scores.any(axis=1))
    weights = np.where(is_zero, 0.0, layout.weights)
    rows = passes.prepare(scores, weights)
    binned = passes.bin(rows, expected.prepare())
    counts, masses = binned.counts, binned.masses
    statistics = np.full((len(layout.names), len(STATISTICS)), np.nan)
    distribution = CosineDistribution.create(masses, layout.zero_mass(is_zero), layout.zero_bin, statistics)
    places: dict[tuple[int, int], tuple[int, float]] = {}
    is_selected = np.zeros(BINS, np.bool_)
    for i, name in enumerate(layout.names):
        passed = np.cumsum(distribution.counts(name))
        for p, (numerator, denominator) in enumerate(PERCENTILES if passed[-1] else ()):
            share = (numerator / denominator - REACHED) * passed[-1]
            place = int(np.searchsorted(passed, share))
            places[i, p] = (place, share - (passed[place - 1] if place else 0.0))
            is_selected[place] = True
    selected = np.flatnonzero(is_selected)
    cosines, cosine_masses = expected.collect(rows, is_selected, counts)
    order = np.argsort(cosines, kind="stable")
    cosines, cosine_masses = cosines[order], cosine_masses[order]
    starts = dict(zip(selected.tolist(), np.cumsum([0, *counts[selected]])[:-1].tolist(), strict=True))
    for i, name in enumerate(layout.names):
        zero_mass = distribution.zero_pairs if name == "cosine" else 0.0
        total = masses.sum() + zero_mass
        if not total:
            continue
        gap, square = (binned.moments + zero_mass) / total
        statistics[i, 0], statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        for p in range(len(PERCENTILES)):
            place, share = places[i, p]
            place_range = slice(starts[place], starts[place] + int(counts[place]))
            values, heavy = cosines[place_range], cosine_masses[place_range]
            if place == layout.zero_bin and zero_mass:
                at = int(np.searchsorted(values, 0.0))
                values, heavy = np.insert(values, at, 0.0), np.insert(heavy, at, zero_mass)
            values, heavy = values[heavy > 0], heavy[heavy > 0]
            last = values.size - 1
            statistics[i, 1 + p] = values[min(last, int(np.searchsorted(np.cumsum(heavy), share)))]
    return distribution
