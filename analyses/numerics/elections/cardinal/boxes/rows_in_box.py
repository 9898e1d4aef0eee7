"""The rows that are undecided in a box of weights, in the box's coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.branch_and_bound import SUM_ERROR

MAX_ERROR = 1e-7
"""Rows known less exactly than this share of their range in a box are only counted."""


@dataclass(frozen=True, kw_only=True)
class RowsInBox:
    """Undecided rows as centre + slopes · x, with x in [−1, 1]ⁿ, and Σ|slopes| = 1; up to `MAX_ERROR` each.

    Attributes:
        certain_worth: worth of rows that hold in the whole box, and of those that nearly do not vary in it.
        index: ``(n_rows,)`` which row it is.
        centre: ``(n_rows,)`` in (−1, 1), ascending: rows that are reversed most easily first.
        slopes: ``(n_rows, n_free)``.
        worth: ``(n_rows,)`` int64.
        free: ``(n_free,)`` weights that vary in the box.
        middle, half_width: ``(n_free,)`` of the box, along these weights.
    """

    certain_worth: int
    index: NDArray[np.int64]
    centre: NDArray[np.float64]
    slopes: NDArray[np.float64]
    worth: NDArray[np.int64]
    free: NDArray[np.int64]
    middle: NDArray[np.float64]
    half_width: NDArray[np.float64]


def rows_in_box(
    R: NDArray[np.float64], slack: NDArray[np.float64], worth: NDArray[np.int64], box: NDArray[np.float64]
) -> RowsInBox:
    """The rows that hold in part of a box, perhaps.

    Args:
        R: ``(n_rows, n_weights)`` rows.
        slack: ``(n_rows,)`` how far a computed sum may be from the true one.
        worth: ``(n_rows,)`` of a row.
        box: ``(2, n_weights)`` its ends.
    """
    middle, half_width = (box[0] + box[1]) / 2, (box[1] - box[0]) / 2
    centre, slopes = R @ middle, R * half_width
    size = np.abs(slopes).sum(axis=1)
    is_certain = centre + size < -slack
    is_open = (centre - size < slack) & ~is_certain
    is_narrow = is_open & (size * MAX_ERROR <= SUM_ERROR + slack)
    kept = np.flatnonzero(is_open & ~is_narrow)
    kept = kept[np.argsort(centre[kept] / size[kept], kind="stable")]
    free = np.flatnonzero(half_width > 0)
    return RowsInBox(
        certain_worth=int(worth[is_certain | is_narrow].sum()),
        index=kept,
        centre=centre[kept] / size[kept],
        slopes=np.ascontiguousarray(slopes[kept][:, free] / size[kept, None]),
        worth=worth[kept],
        free=free,
        middle=middle[free],
        half_width=half_width[free],
    )
