"""Passes over the cosines of a table and its draws, in double or in single precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_layout import CosineLayout
from analyses.numerics.similarity.cosines.cosine_pairs import (
    BINS,
    CollectedCosines,
    CosineBins,
    CosineRows,
    bin_cosines,
    fill_places,
)
from analyses.numerics.similarity.cosines.dot_products import make_tiles
from analyses.numerics.similarity.cosines.rounded_rows import RoundedRows, round_rows
from analyses.numerics.similarity.cosines.scaled_rows import scale_rows
from analyses.numerics.similarity.cosines.single_precision import CollectedPairs, bin_rounded, choose_cosines

NOTHING: NDArray[np.float64] = np.zeros(0)


class CosinePasses(Protocol):
    """Bins all cosines of a table, and collects some. All precisions give the same counts and the same cosines."""

    def prepare(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Any:
        """The rows of a table.

        Args:
            scores: ``(n, k)`` float64, 0 where not measured, rows in the order of the layout.
            weights: ``(n,)`` of the rows, or ``(0,)``.
        """

    def make_room(self, is_selected: NDArray[np.bool_], n: int) -> Any:
        """Room for ``n`` pairs in selected bins."""

    def bin(self, rows: Any, collected: Any) -> CosineBins:
        """All cosines in bins; those in selected bins are collected."""

    def collect(self, rows: Any, collected: Any) -> None:
        """Collect the cosines in selected bins."""

    def select(
        self, rows: Any, collected: Any, is_selected: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The collected cosines in selected bins, and the weights of their pairs."""


@dataclass(frozen=True, slots=True)
class DoublePasses:
    """Every cosine in double precision."""

    layout: CosineLayout

    def prepare(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> CosineRows:
        """See `CosinePasses`."""
        layout, scores = self.layout, scale_rows(np.ascontiguousarray(scores))
        return CosineRows(scores, make_tiles(scores), layout.patterns, layout.packed.starts, layout.lowest, weights)

    def make_room(self, is_selected: NDArray[np.bool_], n: int) -> CollectedCosines:
        """See `CosinePasses`."""
        return CollectedCosines.with_room(is_selected, n)

    def bin(self, rows: CosineRows, collected: CollectedCosines, *, n_sums: int = 0) -> CosineBins:
        """See `CosinePasses`; ``n_sums`` is the number of rows if the cosines of each are summed up."""
        counts, masses = np.zeros(BINS, self.layout.count_type), np.zeros(BINS if rows.weights.size else 0)
        bins = CosineBins(counts, np.zeros(2), masses, np.zeros(n_sums), np.zeros(n_sums))
        bin_cosines(rows, bins, collected)
        return bins

    def collect(self, rows: CosineRows, collected: CollectedCosines) -> None:
        """See `CosinePasses`."""
        counts = np.zeros(0, self.layout.count_type)
        bin_cosines(rows, CosineBins(counts, NOTHING, NOTHING, NOTHING, NOTHING), collected)

    def select(
        self, rows: CosineRows, collected: CollectedCosines, is_selected: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `CosinePasses`."""
        n = int(collected.n[0])
        cosines, places = collected.cosines[:n], np.empty(n, np.int32)
        fill_places(cosines, self.layout.lowest, places)
        chosen = is_selected[places]
        return cosines[chosen], collected.masses[:n][chosen]


@dataclass(frozen=True, slots=True)
class SinglePasses:
    """Cosines in single precision where that decides their bins; the last digits of the moments differ."""

    layout: CosineLayout

    def prepare(self, scores: NDArray[np.float64], weights: NDArray[np.float64]) -> RoundedRows:
        """See `CosinePasses`."""
        return round_rows(scale_rows(scores) if self.layout.needs_scaling else scores, self.layout.lowest)

    def make_room(self, is_selected: NDArray[np.bool_], n: int) -> CollectedPairs:
        """See `CosinePasses`."""
        return CollectedPairs.with_room(is_selected, n, self.layout.packed.order.size)

    def bin(self, rows: RoundedRows, collected: CollectedPairs) -> CosineBins:
        """See `CosinePasses`."""
        counts = np.zeros(BINS, self.layout.count_type)
        bin_rounded(rows, counts, collected)
        return CosineBins(counts, rows.gaps + self.layout.zero_pairs(rows.scores), NOTHING, NOTHING, NOTHING)

    def collect(self, rows: RoundedRows, collected: CollectedPairs) -> None:
        """See `CosinePasses`."""
        bin_rounded(rows, np.zeros(BINS, self.layout.count_type), collected)

    def select(
        self, rows: RoundedRows, collected: CollectedPairs, is_selected: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `CosinePasses`."""
        return choose_cosines(rows, collected, is_selected), NOTHING


def choose_passes(layout: CosineLayout) -> CosinePasses:
    """The passes in the precision of a layout."""
    return SinglePasses(layout) if layout.in_single_precision else DoublePasses(layout)


def mean_to_others(layout: CosineLayout, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(n,)``, the mean cosine of each row to those it shares a cell with; in the order before packing."""
    passes, no_bins = DoublePasses(layout), np.zeros(BINS, np.bool_)
    bins = passes.bin(passes.prepare(scores, layout.weights), passes.make_room(no_bins, 0), n_sums=scores.shape[0])
    means = np.full(scores.shape[0], np.nan)
    has_partners = bins.partners > 0
    means[layout.packed.order[has_partners]] = bins.sums[has_partners] / bins.partners[has_partners]
    return means
