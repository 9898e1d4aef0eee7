"""The order of models that contradicts the fewest comparisons within tasks (Kemeny's rule).

An order is contradicted wherever a task has one of two models strictly better and the order has the other ahead. The
order with the fewest contradictions is hard to find in general, and rarely so in fact:

- Models with the same order on all tasks stand next to each other in some best order, so they are one model that
  counts several times.
- Take an edge from each winner of a duel to its loser. The strongly connected parts of that graph, in any order that
  no edge contradicts, each arranged at its best, make a best order: every duel between parts goes as it was won.
- What is left of each part is an integer program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.kemeny_program import minimize_order_cost, order_cost
from tracker.statistics.jit import jit, working_time

MAX_PROGRAM_MODELS = 100
"""Models of a cycle up to which the integer program is tried."""
MAX_STARTS = 8
"""Orders from which the search starts."""


@dataclass(frozen=True, kw_only=True)
class KemenyOrder:
    """The best order found.

    Attributes:
        order: ``(n_models,)`` columns, best first.
        ranks: ``(n_models,)`` places in it; models next to each other share the mean of theirs if any order among them
            costs the same.
        distance: contradictions of the order, over all tasks and pairs of models.
        lower_bound: no order has fewer.
        is_unique: whether every other order has more, but for swaps of models with the same order on all tasks; None
            where that is not known.
    """

    order: NDArray[np.int64]
    ranks: NDArray[np.float64]
    distance: int
    lower_bound: int
    is_unique: bool | None

    @property
    def is_exact(self) -> bool:
        """Whether no order is better."""
        return self.distance == self.lower_bound


def find_kemeny_order(codes: NDArray[np.int32], *, deadline: float, with_uniqueness: bool = True) -> KemenyOrder:
    """The order with the fewest contradictions, or the best one found and a bound.

    Args:
        codes: ``(n_tasks, n_models)`` of `rank_codes`; a task that a model lacks does not compare it.
        deadline: by `working_time`.
        with_uniqueness: whether to find out if it is the only one.
    """
    distinct, group, copies = np.unique(codes, axis=1, return_inverse=True, return_counts=True)
    duels = PairwiseDuels.from_codes(distinct)
    # Having the row ahead costs one for each task that the column wins, once for each pair of copies.
    cost = duels.wins.T.astype(np.int64) * copies[:, None] * copies[None, :]
    net_wins = duels.margins.astype(np.int64) @ copies
    initial_orders = _initial_orders(distinct, net_wins)
    components = _ordered_components(cost, net_wins)
    lower_bound = _cost_between_components(cost, components)
    component_orders = []
    for component in components:
        component_cost = cost[np.ix_(component, component)]
        component_order, component_bound = _solve_component(
            component_cost, [_restrict_order(order, component) for order in initial_orders], deadline
        )
        component_orders.append(component[component_order])
        lower_bound += component_bound
    order = np.concatenate(component_orders)
    distance = order_cost(cost, order)
    is_unique = None
    if with_uniqueness and distance == lower_bound:
        is_unique = _is_unique(cost, component_orders, order, deadline)
    columns, ranks = _restore_copies(_interchangeable_runs(cost, order), group.ravel())
    return KemenyOrder(order=columns, ranks=ranks, distance=distance, lower_bound=lower_bound, is_unique=is_unique)


def _initial_orders(codes: NDArray[np.int32], net_wins: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Orders to start from: by tasks won less tasks lost, then as single tasks have it."""
    tasks = codes[np.argsort(-(codes > 0).sum(axis=1), kind="stable")][: MAX_STARTS - 1]
    return [np.argsort(-net_wins, kind="stable"), *(np.lexsort((-net_wins, -row)) for row in tasks)]


def _restrict_order(order: NDArray[np.int64], component: NDArray[np.int64]) -> NDArray[np.int64]:
    """An order of all as an order of places in a part."""
    position = np.full(len(order), -1)
    position[component] = np.arange(len(component))
    return np.asarray(position[order][position[order] >= 0])


def _ordered_components(cost: NDArray[np.int64], net_wins: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Strongly connected parts of the graph from winners to losers, in an order that no edge contradicts."""
    beats = cost < cost.T
    n_components, component = connected_components(csr_array(beats), directed=True, connection="strong")
    members = [np.flatnonzero(component == label) for label in range(n_components)]
    above = np.zeros((n_components, n_components), dtype=bool)
    winner, loser = np.nonzero(beats)
    above[component[winner], component[loser]] = True
    np.fill_diagonal(above, False)
    weight = np.array([net_wins[columns].mean() for columns in members])
    is_waiting, n_above = np.ones(n_components, dtype=bool), above.sum(axis=0)
    ordered = []
    for _ in range(n_components):
        free = np.flatnonzero(is_waiting & (n_above == 0))
        first = free[np.argmax(weight[free])]
        is_waiting[first] = False
        n_above = n_above - above[first]
        ordered.append(members[first])
    return ordered


def _cost_between_components(cost: NDArray[np.int64], components: list[NDArray[np.int64]]) -> int:
    """Cost of all pairs of different parts, each as its duel was won."""
    least = np.minimum(cost, cost.T)
    inside = sum(int(least[np.ix_(component, component)].sum()) for component in components)
    return (int(least.sum()) - inside) // 2


def _solve_component(
    cost: NDArray[np.int64], starts: list[NDArray[np.int64]], deadline: float
) -> tuple[NDArray[np.int64], int]:
    """The best order found of one part, and a bound that no order is below."""
    m = len(cost)
    if m == 1:
        return np.zeros(1, dtype=np.int64), 0
    best = starts[0]
    for start in starts:
        best = min(best, _improve_order(cost, start, deadline), key=lambda order: order_cost(cost, order))
    incumbent_cost = order_cost(cost, best)
    lower_bound = int(np.triu(np.minimum(cost, cost.T), 1).sum()) + int(_cycle_cost_bound(np.maximum(cost.T - cost, 0)))
    if lower_bound < incumbent_cost and m <= MAX_PROGRAM_MODELS:
        result = minimize_order_cost(cost, incumbent_cost=incumbent_cost, deadline=deadline)
        best = best if result.order is None else result.order
        lower_bound = max(lower_bound, result.lower_bound)
    return best, lower_bound


def _improve_order(cost: NDArray[np.int64], order: NDArray[np.int64], deadline: float) -> NDArray[np.int64]:
    """Move one model at a time to its best place, until none gains or time runs out."""
    order = order.copy()
    has_moved = True
    while has_moved and working_time() < deadline:
        has_moved = False
        for model in order.copy():
            position = int(np.flatnonzero(order == model)[0])
            remaining = np.delete(order, position)
            # At place p, it is behind the first p of the others and ahead of the rest.
            costs = np.zeros(len(order), dtype=np.int64)
            costs[1:] = np.cumsum(cost[remaining, model] - cost[model, remaining])
            best = int(np.argmin(costs))
            if costs[best] < costs[position]:
                order = np.insert(remaining, best, model)
                has_moved = True
    return order


@jit
def _cycle_cost_bound(margins: Any) -> Any:
    """What circles of three must cost at least: margins of duels are spent on one circle after the other.

    Args:
        margins: ``(m, m)`` int64, by how much the row wins; overwritten.
    """
    m = margins.shape[0]
    bound = np.int64(0)
    for i in range(m):
        for j in range(m):
            for k in range(m):
                if margins[i, j] <= 0:
                    break
                if margins[j, k] > 0 and margins[k, i] > 0:
                    least = min(margins[i, j], margins[j, k], margins[k, i])
                    margins[i, j] -= least
                    margins[j, k] -= least
                    margins[k, i] -= least
                    bound += least
    return bound


def _is_unique(
    cost: NDArray[np.int64], components: list[NDArray[np.int64]], order: NDArray[np.int64], deadline: float
) -> bool | None:
    """Whether the best order is the only one."""
    if (cost[order[:-1], order[1:]] == cost[order[1:], order[:-1]]).any():
        return False
    is_proven = True
    for component in components:
        if len(component) == 1:
            continue
        component_cost = cost[np.ix_(component, component)]
        best = np.arange(len(component))
        limit = order_cost(component_cost, best) + 1
        result = minimize_order_cost(component_cost, incumbent_cost=limit, deadline=deadline, excluded_order=best)
        if result.order is not None:
            return False
        is_proven &= result.lower_bound >= limit
    return True if is_proven else None


def _interchangeable_runs(cost: NDArray[np.int64], order: NDArray[np.int64]) -> list[list[int]]:
    """Runs of models next to each other that cost the same in any order among them."""
    runs: list[list[int]] = []
    for model in order.tolist():
        if runs and all(cost[model, member] == cost[member, model] for member in runs[-1]):
            runs[-1].append(model)
        else:
            runs.append([model])
    return runs


def _restore_copies(runs: list[list[int]], group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The order and ranks of all models, copies beside each other."""
    columns: list[int] = []
    ranks = np.empty(len(group))
    for run in runs:
        n_before = len(columns)
        for model in run:
            columns += np.flatnonzero(group == model).tolist()
        ranks[columns[n_before:]] = (n_before + 1 + len(columns)) / 2
    return np.array(columns, dtype=np.int64), ranks
