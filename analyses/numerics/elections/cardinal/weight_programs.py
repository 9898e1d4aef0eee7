"""Weights that fulfil many inequalities at once, by an integer program; for few inequalities it finds what others miss.

Only its weights are used, never its bound: HiGHS decides inequalities with a tolerance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.box_search import WeightInequalities
from analyses.numerics.elections.integer_programs import maximize

MAX_ROWS = 400
"""Beyond, the program finds nothing in time."""

MARGIN = 1e-6
"""By how much a row, its entries adding up to 1, must be below 0: what HiGHS may be off."""


def solve_weight_program(
    rows: WeightInequalities, *, min_weight: float, time_limit: float
) -> NDArray[np.float64] | None:
    """The best weights found in the time; None where there are none, or too many rows.

    Args:
        rows: with entries that add up to 1 in size, each.
        min_weight: least weight; the largest is 1.
        time_limit: seconds.
    """
    n_weights, n_rows = rows.D.shape
    if n_rows > MAX_ROWS:
        return None
    largest = np.maximum(rows.D, 0).sum(axis=0) + min_weight * np.minimum(rows.D, 0).sum(axis=0)
    solution = maximize(
        np.r_[np.zeros(n_weights), rows.worth],
        np.hstack([rows.D.T, np.diag(largest + MARGIN)]),
        -np.inf,
        largest,
        bounds=(np.r_[np.full(n_weights, min_weight), np.zeros(n_rows)], np.ones(n_weights + n_rows)),
        integrality=np.r_[np.zeros(n_weights), np.ones(n_rows)],
        time_limit=time_limit,
    )
    return None if solution.x is None else np.clip(solution.x[:n_weights], min_weight, 1.0)
