"""The order in which rows are added one by one, each as far as possible from those already there.

Distances are cosine distances; a row of zeros has no direction and is at distance 1 from every row, itself
included. Rows whose distances differ by no more than `TIE_TOLERANCE` are equally far, and the first of them is added.
Sums are carried in two floats, so that rounding stays orders of magnitude below `TIE_TOLERANCE` whatever the order.

The order is that of the direct method, which compares every remaining row with every selected one at each step;
only rows that could be next are looked at: what is known of a row from an earlier step bounds its similarity
from below.

Source: Ailem et al. 2024, section 3.3; the lazy evaluation of Minoux 1978, "Accelerated greedy algorithms for
maximizing submodular set functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.farthest_from_nearest import order_by_nearest
from analyses.numerics.growth.farthest_on_average import order_by_mean
from analyses.numerics.growth.groups import Groups
from analyses.numerics.growth.nearest_sets import order_sets_by_nearest


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Rows in the order in which they were added.

    Attributes:
        rows: ``(n,)`` int64.
        distances: ``(n,)`` float64 from those already there, by the criterion, in [0, 2]; NaN for the first.
    """

    rows: NDArray[np.int64]
    distances: NDArray[np.float64]


def order_farthest_first(groups: Groups, start: int, criterion: Literal["mean", "min"] = "mean") -> Order:
    """Rows one by one, each the farthest from those already there.

    Args:
        groups: the rows by direction.
        start: the first row.
        criterion: "mean" takes the mean distance to all selected rows, "min" that to the nearest of them.
    """
    rows, distances = np.empty(groups.n_rows, np.int64), np.empty(groups.n_rows)
    if criterion == "mean":
        order_by_mean(groups, start, rows, distances)
    elif groups.is_binary:
        order_sets_by_nearest(groups, start, rows, distances)
    else:
        order_by_nearest(groups, start, rows, distances)
    return Order(rows=rows, distances=np.clip(distances, 0.0, 2.0))
