"""How the cosines of one table's rows are distributed: bins, and statistics of the pairs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosine_layout import Layout
from analyses.numerics.similarity.cosine_pairs import BINS
from analyses.numerics.similarity.distributions import PERCENTILES, STATISTICS
from analyses.numerics.similarity.weighted_distributions import REACHED

Counts = NDArray[Any]
"""int64, or float64 where rows have weights."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One table's distribution.

    Attributes:
        nonzero: ``(BINS,)`` pairs of rows that are not all zero, or their weight.
        zero_pairs: pairs with a row of zeros, or their weight.
        statistics: ``(n_similarities, 4)``.
    """

    nonzero: Counts
    zero_pairs: float
    statistics: NDArray[np.float64]

    def of_similarity(self, name: str, layout: Layout) -> Counts:
        """Counts of "cosine" or of "cosine_nonzero"."""
        if name == "cosine_nonzero":
            return self.nonzero
        counts = self.nonzero.copy()
        counts[layout.zero_bin] += self.zero_pairs
        return counts


def distribution(
    scores: NDArray[np.float64], layout: Layout, names: tuple[str, ...], scratch: NDArray[np.int64]
) -> Drawn:
    """One table's distribution.

    Args:
        scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
        layout: of the observed table.
        names: some of "cosine" and "cosine_nonzero".
        scratch: ``(BINS,)``; spares a fresh page of memory for each draw.
    """
    return _weighed(scores, layout, names) if layout.is_weighted else _described(scores, layout, names, scratch)


def _described(
    scores: NDArray[np.float64], layout: Layout, names: tuple[str, ...], scratch: NDArray[np.int64]
) -> Drawn:
    """One table's distribution; ``scratch`` is ``(BINS,)`` and spares a fresh page of memory for each draw."""
    counts, moments = np.zeros(BINS, np.int64), np.zeros(2)
    layout.run(scores, counts, moments)
    zero_pairs = layout.zero_pairs(scores)
    nonzero = counts.copy()
    nonzero[layout.zero_bin] -= zero_pairs
    drawn = Drawn(nonzero, zero_pairs, np.full((len(names), len(STATISTICS)), np.nan))
    of_name = {"cosine": counts, "cosine_nonzero": nonzero}
    places: dict[tuple[str, int], tuple[NDArray[np.int64], NDArray[np.int64], float]] = {}
    wanted = np.zeros(BINS, np.bool_)
    for name in names:
        passed = np.cumsum(of_name[name], out=scratch)
        total = int(passed[-1])
        for p, (numerator, denominator) in enumerate(PERCENTILES if total else ()):
            low, part = divmod((total - 1) * numerator, denominator)
            ranks = np.array([low, min(low + 1, total - 1)])
            bins = np.searchsorted(passed, ranks, side="right")
            places[name, p] = (bins, ranks - passed[bins] + of_name[name][bins], part / denominator)
            wanted[bins] = True
    chosen = np.flatnonzero(wanted)
    found = np.empty(int(counts[chosen].sum()))
    if found.size:
        layout.run(scores, counts, moments, wanted=wanted, found=found)
    found.sort()
    for i, name in enumerate(names):
        total = int(of_name[name].sum())
        if not total:
            continue
        # Pairs with a row of zeros are 1 from 1.
        left_out = int(counts.sum()) - total
        gap, square = (moments - left_out) / total
        drawn.statistics[i, 0], drawn.statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        mine = _without_zeros(found, zero_pairs) if name == "cosine_nonzero" else found
        starts = np.concatenate([[0], np.cumsum(of_name[name][chosen])])
        for p in range(len(PERCENTILES)):
            bins, ranks, weight = places[name, p]
            a, b = mine[starts[np.searchsorted(chosen, bins)] + ranks]
            drawn.statistics[i, 1 + p] = a + (b - a) * weight
    return drawn


def _without_zeros(found: NDArray[np.float64], n_zeros: int) -> NDArray[np.float64]:
    """Sorted similarities without ``n_zeros`` of the zeros, if their bin is among them."""
    at = int(np.searchsorted(found, 0.0))
    there = int(np.searchsorted(found, 0.0, side="right")) - at
    return np.delete(found, slice(at, at + min(n_zeros, there)))


def _weighed(scores: NDArray[np.float64], layout: Layout, names: tuple[str, ...]) -> Drawn:
    """The distribution of weighted pairs. Rows of zeros weigh nothing in the passes and are added where they count."""
    is_zero = np.asarray(~scores.any(axis=1))
    weights = np.where(is_zero, 0.0, layout.weights)
    counts, masses, moments = np.zeros(BINS, np.int64), np.zeros(BINS), np.zeros(2)
    layout.run(scores, counts, moments, weights=weights, masses=masses)
    drawn = Drawn(masses, layout.zero_mass(is_zero), np.full((len(names), len(STATISTICS)), np.nan))
    places: dict[tuple[int, int], tuple[int, float]] = {}
    wanted = np.zeros(BINS, np.bool_)
    for i, name in enumerate(names):
        passed = np.cumsum(drawn.of_similarity(name, layout))
        for p, (numerator, denominator) in enumerate(PERCENTILES if passed[-1] else ()):
            share = (numerator / denominator - REACHED) * passed[-1]
            place = int(np.searchsorted(passed, share))
            places[i, p] = (place, share - (passed[place - 1] if place else 0.0))
            wanted[place] = True
    chosen = np.flatnonzero(wanted)
    found = np.empty(int(counts[chosen].sum()))
    found_masses = np.empty(found.size)
    if found.size:
        layout.run(scores, counts, moments, wanted=wanted, found=found, weights=weights, found_masses=found_masses)
    order = np.argsort(found, kind="stable")
    found, found_masses = found[order], found_masses[order]
    starts = dict(zip(chosen.tolist(), np.cumsum([0, *counts[chosen]])[:-1].tolist(), strict=True))
    for i, name in enumerate(names):
        zero_mass = drawn.zero_pairs if name == "cosine" else 0.0
        total = masses.sum() + zero_mass
        if not total:
            continue
        gap, square = (moments + zero_mass) / total
        drawn.statistics[i, 0], drawn.statistics[i, 3] = 1 - gap, max(0.0, square - gap * gap)
        for p in range(len(PERCENTILES)):
            place, share = places[i, p]
            here = slice(starts[place], starts[place] + int(counts[place]))
            values, heavy = found[here], found_masses[here]
            if place == layout.zero_bin and zero_mass:
                at = int(np.searchsorted(values, 0.0))
                values, heavy = np.insert(values, at, 0.0), np.insert(heavy, at, zero_mass)
            values, heavy = values[heavy > 0], heavy[heavy > 0]
            last = values.size - 1
            drawn.statistics[i, 1 + p] = values[min(last, int(np.searchsorted(np.cumsum(heavy), share)))]
    return drawn
