"""How the cosines of one table's rows are distributed: bins, and statistics of the pairs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_layout import CosineLayout
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.distributions import PERCENTILES, STATISTICS
from analyses.numerics.similarity.weighted_distributions import REACHED

Counts = NDArray[Any]
"""int64, or float64 where rows have weights."""


@dataclass(frozen=True, slots=True)
class CosineDistribution:
    """One table's distribution.

    Attributes:
        nonzero: ``(BINS,)`` pairs of rows that are not all zero, or their weight.
        zero_pairs: pairs with a row of zeros, or their weight.
        statistics: ``(n_similarities, 4)``.
    """

    nonzero: Counts
    zero_pairs: float
    statistics: NDArray[np.float64]

    def counts(self, name: str, layout: CosineLayout) -> Counts:
        """Counts of "cosine" or of "cosine_nonzero"."""
        if name == "cosine_nonzero":
            return self.nonzero
        counts = self.nonzero.copy()
        counts[layout.zero_bin] += self.zero_pairs
        return counts


def describe_cosines(
    scores: NDArray[np.float64], layout: CosineLayout, names: tuple[str, ...], scratch: NDArray[np.int64]
) -> CosineDistribution:
    """One table's distribution.

    Args:
        scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
        layout: of the observed table.
        names: some of "cosine" and "cosine_nonzero".
        scratch: ``(BINS,)``; spares a fresh page of memory for each draw.
    """
    if layout.is_weighted:
        return _describe_weighted(scores, layout, names)
    return _describe(scores, layout, names, scratch)


def _describe(
    scores: NDArray[np.float64], layout: CosineLayout, names: tuple[str, ...], scratch: NDArray[np.int64]
) -> CosineDistribution:
    """One table's distribution; ``scratch`` is ``(BINS,)`` and spares a fresh page of memory for each draw."""
    binned = layout.bin(scores, layout.weights)
    counts = binned.counts
    zero_pairs = layout.zero_pairs(scores)
    nonzero = counts.copy()
    nonzero[layout.zero_bin] -= zero_pairs
    distribution = CosineDistribution(nonzero, zero_pairs, np.full((len(names), len(STATISTICS)), np.nan))
    counts_of = {"cosine": counts, "cosine_nonzero": nonzero}
    places: dict[tuple[str, int], tuple[NDArray[np.int64], NDArray[np.int64], float]] = {}
    is_selected = np.zeros(BINS, np.bool_)
    for name in names:
        passed = np.cumsum(counts_of[name], out=scratch)
        total = int(passed[-1])
        for p, (numerator, denominator) in enumerate(PERCENTILES if total else ()):
            low, part = divmod((total - 1) * numerator, denominator)
            ranks = np.array([low, min(low + 1, total - 1)])
            bins = np.searchsorted(passed, ranks, side="right")
            places[name, p] = (bins, ranks - passed[bins] + counts_of[name][bins], part / denominator)
            is_selected[bins] = True
    selected = np.flatnonzero(is_selected)
    cosines, _ = layout.collect(scores, layout.weights, is_selected, int(counts[selected].sum()))
    cosines.sort()
    for i, name in enumerate(names):
        total = int(counts_of[name].sum())
        if not total:
            continue
        # Pairs with a row of zeros are 1 from 1.
        n_zero_pairs = int(counts.sum()) - total
        gap, square = (binned.moments - n_zero_pairs) / total
        distribution.statistics[i, 0], distribution.statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        of_pairs = _drop_zeros(cosines, zero_pairs) if name == "cosine_nonzero" else cosines
        starts = np.concatenate([[0], np.cumsum(counts_of[name][selected])])
        for p in range(len(PERCENTILES)):
            bins, ranks, weight = places[name, p]
            a, b = of_pairs[starts[np.searchsorted(selected, bins)] + ranks]
            distribution.statistics[i, 1 + p] = a + (b - a) * weight
    return distribution


def _drop_zeros(cosines: NDArray[np.float64], n_zeros: int) -> NDArray[np.float64]:
    """Sorted similarities without ``n_zeros`` of the zeros, if their bin is among them."""
    at = int(np.searchsorted(cosines, 0.0))
    n_present = int(np.searchsorted(cosines, 0.0, side="right")) - at
    return np.delete(cosines, slice(at, at + min(n_zeros, n_present)))


def _describe_weighted(scores: NDArray[np.float64], layout: CosineLayout, names: tuple[str, ...]) -> CosineDistribution:
    """The distribution of weighted pairs. Rows of zeros weigh nothing in the passes and are added where they count."""
    is_zero = np.asarray(~scores.any(axis=1))
    weights = np.where(is_zero, 0.0, layout.weights)
    binned = layout.bin(scores, weights)
    counts, masses = binned.counts, binned.masses
    distribution = CosineDistribution(masses, layout.zero_mass(is_zero), np.full((len(names), len(STATISTICS)), np.nan))
    places: dict[tuple[int, int], tuple[int, float]] = {}
    is_selected = np.zeros(BINS, np.bool_)
    for i, name in enumerate(names):
        passed = np.cumsum(distribution.counts(name, layout))
        for p, (numerator, denominator) in enumerate(PERCENTILES if passed[-1] else ()):
            share = (numerator / denominator - REACHED) * passed[-1]
            place = int(np.searchsorted(passed, share))
            places[i, p] = (place, share - (passed[place - 1] if place else 0.0))
            is_selected[place] = True
    selected = np.flatnonzero(is_selected)
    cosines, cosine_masses = layout.collect(scores, weights, is_selected, int(counts[selected].sum()))
    order = np.argsort(cosines, kind="stable")
    cosines, cosine_masses = cosines[order], cosine_masses[order]
    starts = dict(zip(selected.tolist(), np.cumsum([0, *counts[selected]])[:-1].tolist(), strict=True))
    for i, name in enumerate(names):
        zero_mass = distribution.zero_pairs if name == "cosine" else 0.0
        total = masses.sum() + zero_mass
        if not total:
            continue
        gap, square = (binned.moments + zero_mass) / total
        distribution.statistics[i, 0], distribution.statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        for p in range(len(PERCENTILES)):
            place, share = places[i, p]
            place_range = slice(starts[place], starts[place] + int(counts[place]))
            values, heavy = cosines[place_range], cosine_masses[place_range]
            if place == layout.zero_bin and zero_mass:
                at = int(np.searchsorted(values, 0.0))
                values, heavy = np.insert(values, at, 0.0), np.insert(heavy, at, zero_mass)
            values, heavy = values[heavy > 0], heavy[heavy > 0]
            last = values.size - 1
            distribution.statistics[i, 1 + p] = values[min(last, int(np.searchsorted(np.cumsum(heavy), share)))]
    return distribution
