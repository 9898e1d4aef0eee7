"""The order with the least cost, as an integer program whose constraints are added where they are broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from analyses.numerics.elections.integer_programs import IntegerSolution, maximize
from tracker.statistics.jit import working_time

MIN_VIOLATION = 1e-6
"""By so much a constraint of three must be broken to be added."""
MAX_ADDED = 5_000
"""Constraints added at once, the most broken ones first."""


@dataclass(frozen=True, kw_only=True)
class OrderSearchResult:
    """What was found about orders of a few models.

    Attributes:
        order: the cheapest found, best first; None where none below the limit was found.
        lower_bound: no order allowed costs less.
    """

    order: NDArray[np.int64] | None
    lower_bound: int


def minimize_order_cost(
    cost: NDArray[np.int64],
    *,
    incumbent_cost: int,
    deadline: float,
    excluded_order: NDArray[np.int64] | None = None,
) -> OrderSearchResult:
    """Look for an order that costs less than what is known, or prove that there is none.

    A variable x_ij in {0, 1} for i < j is 1 if i is ahead of j. It is an order if no three are in a circle:
    0 <= x_ij + x_jk - x_ik <= 1. Costs are integers, so a bound above ``incumbent_cost`` - 1 ends the search.

    Args:
        cost: ``(m, m)`` what it costs to have the row ahead of the column.
        incumbent_cost: cost of an order that is there already; only cheaper ones are looked for.
        deadline: by `working_time`.
        excluded_order: an order that is not allowed.
    """
    m = len(cost)
    above, below = np.triu_indices(m, 1)
    gains = (cost[below, above] - cost[above, below]).astype(np.float64)
    base = int(cost[below, above].sum())
    lower_bound = int(np.minimum(cost[above, below], cost[below, above]).sum())
    constraints = _CycleConstraints(m)
    exclusion = None if excluded_order is None else _exclusion_row(excluded_order, above, below)
    is_integer = False
    while lower_bound < incumbent_cost:
        solution = _solve(gains, constraints, exclusion, is_integer, deadline)
        if solution.is_infeasible:
            return OrderSearchResult(order=None, lower_bound=incumbent_cost)
        if solution.upper_bound < np.inf and (is_integer or solution.is_optimal):
            lower_bound = max(lower_bound, base - solution.integer_bound)
        if solution.x is None or lower_bound >= incumbent_cost:
            break
        ahead = np.zeros((m, m))
        ahead[above, below], ahead[below, above] = solution.x, 1 - solution.x
        if constraints.add_violated(ahead):
            continue
        if np.abs(solution.x - np.round(solution.x)).max() > MIN_VIOLATION:
            is_integer = True
            continue
        order = np.argsort(-ahead.sum(axis=1), kind="stable")
        new_cost = order_cost(cost, order)
        # In floats an order that is not allowed, or no cheaper, can pass for one that is; nothing follows from it.
        is_allowed = excluded_order is None or bool((order != excluded_order).any())
        return OrderSearchResult(
            order=order if new_cost < incumbent_cost and is_allowed else None,
            lower_bound=min(lower_bound, new_cost),
        )
    return OrderSearchResult(order=None, lower_bound=min(lower_bound, incumbent_cost))


def order_cost(cost: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """What an order costs, all pairs added up."""
    arranged = cost[np.ix_(order, order)]
    return int(np.triu(arranged, 1).sum())


def _solve(
    gains: NDArray[np.float64],
    constraints: _CycleConstraints,
    exclusion: tuple[NDArray[np.float64], float] | None,
    is_integer: bool,
    deadline: float,
) -> IntegerSolution:
    matrix, lower, upper = constraints.matrix()
    if exclusion is not None:
        signs, limit = exclusion
        matrix = csr_array(np.vstack([matrix.toarray(), signs])) if matrix.shape[0] else csr_array(signs[None])
        lower, upper = np.append(lower, -np.inf), np.append(upper, limit)
    return maximize(gains, matrix, lower, upper, integrality=int(is_integer), time_limit=deadline - working_time())


def _exclusion_row(
    order: NDArray[np.int64], above: NDArray[np.int64], below: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """A row whose sum is larger than the limit for that order only."""
    position = np.argsort(order)
    agrees = position[above] < position[below]
    return np.where(agrees, 1.0, -1.0), float(agrees.sum() - 1)


class _CycleConstraints:
    """Constraints of three models each, so far."""

    def __init__(self, m: int) -> None:
        self._m = m
        self._known: set[tuple[int, int, int]] = set()
        self._number = np.zeros((m, m), dtype=np.int64)
        above, below = np.triu_indices(m, 1)
        self._number[above, below] = np.arange(len(above))
        self._n_variables = len(above)

    def add_violated(self, ahead: NDArray[np.float64]) -> bool:
        """Add those of i < j < k that are broken; whether there were any.

        Args:
            ahead: ``(m, m)`` values of the variables, row ahead of column.
        """
        violations: list[tuple[float, tuple[int, int, int]]] = []
        for i in range(self._m - 2):
            sums = ahead[i, i + 1 :, None] + ahead[i + 1 :, i + 1 :] - ahead[i, None, i + 1 :]
            violation = np.maximum(sums - 1, -sums)
            for j, k in zip(*np.nonzero(np.triu(violation, 1) > MIN_VIOLATION), strict=True):
                violations.append((-float(violation[j, k]), (i, i + 1 + int(j), i + 1 + int(k))))
        violations.sort()
        new = [triangle for _, triangle in violations if triangle not in self._known][:MAX_ADDED]
        self._known.update(new)
        return bool(new)

    def matrix(self) -> tuple[csr_array, NDArray[np.float64], NDArray[np.float64]]:
        """The constraints, with their limits."""
        triangles = np.array(sorted(self._known), dtype=np.int64).reshape(-1, 3)
        i, j, k = triangles.T
        columns = np.stack([self._number[i, j], self._number[j, k], self._number[i, k]], axis=1).ravel()
        signs = np.tile([1.0, 1.0, -1.0], len(triangles))
        row_starts = np.arange(0, 3 * len(triangles) + 1, 3)
        matrix = csr_array((signs, columns, row_starts), shape=(len(triangles), self._n_variables))
        return matrix, np.zeros(len(triangles)), np.ones(len(triangles))
