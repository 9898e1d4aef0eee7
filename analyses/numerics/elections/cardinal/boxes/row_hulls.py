"""Affine bounds of how many rows hold in a box, from the hull of each row.

In the coordinates x of a box, with b_j = (1 + x_j) / 2 for a negative slope and (1 − x_j) / 2 for a positive one, a row
is its largest value less 2 Σ |slope_j| b_j. For any set A of weights for which the row's least value plus
2 Σ_A |slope_j| is a positive s, the row is at most 0 only where 2 Σ_A |slope_j| b_j ≥ s. So the left side over s bounds
"the row holds" from above, everywhere in the box. The best A at a point is {j : z > b_j}, with z the root in (0, 1) of
the convex z · least + 2 Σ |slope_j| (z − b_j)⁺, which Newton's method from 1 finds in a few steps; any A is valid.

Of a clique at most one row holds, so that its rows together count no more than the largest worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.rows_in_box import MAX_ERROR, RowsInBox
from tracker.statistics.jit import jit, sum_kernel

MAX_STEPS, MIN_STEP = 8, 1e-9
"""Of Newton's method: how many, and the least change of the root."""

MIN_DENOMINATOR = 1e-6
"""Below it a row counts its worth."""

THRESHOLD, DENOMINATOR = 0, 1
"""Columns of a row's hull: below which b_j a weight is in A, and s; s = 0 where the row counts its worth."""

FIRST_STEP, LONGER, SHORTER, MIXTURE_STEPS = 0.3, 1.2, 0.9, 14
"""Of the bundle: the first step, by the largest slope; its growth and its decay; halvings of a mixture's share."""


@dataclass(frozen=True, kw_only=True)
class Majorant:
    """constant + slopes · x bounds the worth of the rows that hold, for x in [−1, 1]ⁿ."""

    constant: float
    slopes: NDArray[np.float64]

    @property
    def maximum(self) -> float:
        """Over the box."""
        return float(self.constant + np.abs(self.slopes).sum())


@sum_kernel
def _active_sums(slopes: Any, row: Any, x: Any, z: Any) -> Any:
    """Σ_A 2 |slope_j| b_j and Σ_A 2 |slope_j| over A = {j : b_j < z}."""
    reached, size = 0.0, 0.0
    for j in range(slopes.shape[1]):
        slope = slopes[row, j]
        twice_b = 1.0 - x[j] if slope > 0 else 1.0 + x[j]
        weight = abs(slope) if twice_b < 2 * z else 0.0
        reached += weight * twice_b
        size += 2 * weight
    return reached, size


@jit
def _fill_hulls(slopes: Any, centre: Any, worth: Any, clique_of: Any, x: Any, hulls: Any, counts: Any) -> None:
    """Fill ``hulls`` with the set A of each row at ``x`` and its denominator, ``counts`` with the bounds of cliques."""
    for row in range(len(centre)):
        least = centre[row] - 1.0
        z, denominator, bound = 1.0, 0.0, 1.0
        for _ in range(MAX_STEPS):
            reached, size = _active_sums(slopes, row, x, z)
            rest = size + least - MAX_ERROR
            if rest <= MIN_DENOMINATOR or reached >= rest * z:
                break
            denominator, bound = rest, reached / rest
            hulls[row, THRESHOLD] = z
            if z - bound < MIN_STEP:
                break
            z = bound
        hulls[row, DENOMINATOR] = denominator
        counts[clique_of[row]] += worth[row] * bound


@jit
def _add_slopes(
    slopes: Any, worth: Any, clique_of: Any, x: Any, hulls: Any, counts: Any, most: Any, gradient: Any
) -> Any:
    """Add the rows' slopes to ``gradient``, except those of saturated cliques; returns the constant."""
    constant = 0.0
    for clique in range(len(counts)):
        if counts[clique] >= most[clique]:
            constant += most[clique]
    for row in range(len(worth)):
        if counts[clique_of[row]] >= most[clique_of[row]]:
            continue
        if hulls[row, DENOMINATOR] == 0:
            constant += worth[row]
            continue
        z, share = hulls[row, THRESHOLD], worth[row] / hulls[row, DENOMINATOR]
        for j in range(slopes.shape[1]):
            slope = slopes[row, j]
            twice_b = 1.0 - x[j] if slope > 0 else 1.0 + x[j]
            if twice_b < 2 * z:
                constant += abs(slope) * share
                gradient[j] -= slope * share
    return constant


def majorize(rows: RowsInBox, clique_of: NDArray[np.int64], most: NDArray[np.float64], x: NDArray[np.float64]) -> Any:
    """The majorant that is tight at a point.

    Args:
        rows: in a box.
        clique_of: ``(n_rows,)`` the clique of each.
        most: ``(n_cliques,)`` largest worth of a clique's rows.
        x: ``(n_free,)`` the point, in [−1, 1].
    """
    hulls, counts, gradient = np.zeros((len(rows.centre), 2)), np.zeros(len(most)), np.zeros(len(x))
    _fill_hulls(rows.slopes, rows.centre, rows.worth, clique_of, x, hulls, counts)
    constant = _add_slopes(rows.slopes, rows.worth, clique_of, x, hulls, counts, most, gradient)
    return Majorant(constant=rows.certain_worth + constant, slopes=gradient)


@dataclass
class MajorantBundle:
    """Majorants of one box mixed into one whose maximum is small: a proximal bundle method with aggregation.

    Each mixture has the least maximum near the best point, distances from which cost; where the mixture is largest
    in this sense, the next majorant is made.

    Source: Kiwiel 1990, Proximity control in bundle methods.

    Attributes:
        mixture: of the majorants so far.
        best: the majorant with the least maximum so far, a mixture too.
        centre, value: the point of the largest value, and that value.
        step: the larger, the less distances cost.
    """

    mixture: Majorant
    best: Majorant
    centre: NDArray[np.float64]
    value: float = -np.inf
    step: float = 0.0

    def add(self, majorant: Majorant, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mix in the majorant that is tight at ``x``; returns the next point."""
        value = float(majorant.constant + majorant.slopes @ x)
        if self.step == 0:
            self.step = FIRST_STEP / max(float(np.abs(majorant.slopes).max()), MIN_DENOMINATOR)
        elif value > self.value:
            self.step *= LONGER
        else:
            self.step *= SHORTER
        if value > self.value:
            self.centre, self.value = x, value
        constant, slopes = majorant.constant - self.mixture.constant, majorant.slopes - self.mixture.slopes
        low, high = 0.0, 1.0
        for _ in range(MIXTURE_STEPS):
            share = (low + high) / 2
            point = np.clip(self.centre + self.step * (self.mixture.slopes + share * slopes), -1.0, 1.0)
            low, high = (low, share) if constant + slopes @ point > 0 else (share, high)
        share = (low + high) / 2
        self.mixture = Majorant(
            constant=self.mixture.constant + share * constant, slopes=self.mixture.slopes + share * slopes
        )
        self.best = min(self.best, self.mixture, majorant, key=lambda candidate: candidate.maximum)
        return np.asarray(np.clip(self.centre + self.step * self.mixture.slopes, -1.0, 1.0))
