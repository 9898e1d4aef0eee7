"""Which models to add so that most pairs of leading models stand in an order wanted: as an integer program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from analyses.numerics.elections.integer_programs import maximize
from analyses.numerics.elections.ordinal.added_models import LinearAdditions
from analyses.numerics.elections.ordinal.local_search import PairGoal
from tracker.statistics.jit import working_time

MAX_CELLS = 1_000_000
"""Programs with more coefficients are not begun: they would not end in time."""


def solve_met_pairs(
    additions: LinearAdditions, goal: PairGoal, *, incumbent: int, deadline: float
) -> tuple[NDArray[np.bool_] | None, int]:
    """Additions that bring more pairs into the target order than the incumbent, if there are any.

    A pair p gets a variable x_p that may be 1 only if it is in order: with d the whole numbers by which the added
    models change the difference, d @ added <= limit + M (1 - x_p). Solutions are checked in whole numbers; where a pair
    is claimed that is not in order, as the solver works in floats, a cut forbids it and the program is solved again.

    Args:
        additions: who leads and who may be added.
        goal: the pairs.
        incumbent: pairs met by the best additions known.
        deadline: by `working_time`.

    Returns:
        The best additions that meet more pairs, None if there are none; and an upper bound of the number of pairs.
    """
    base = additions.base[goal.behind] - additions.base[goal.ahead] - goal.allows_tie.astype(int) + 1
    if base.size * additions.effects.shape[1] > MAX_CELLS or working_time() >= deadline:
        return None, len(goal)
    effects = additions.effects[goal.behind] - additions.effects[goal.ahead]
    # A pair is in order when effects @ added + base <= 0. Some pairs never or always are.
    minimum, maximum = base + np.minimum(effects, 0).sum(axis=1), base + np.maximum(effects, 0).sum(axis=1)
    never, always = np.asarray(minimum > 0, dtype=bool), np.asarray(maximum <= 0, dtype=bool)
    is_open = ~never & ~always
    n_always, n_open = int(always.sum()), int(is_open.sum())
    upper_bound = n_always + n_open
    if upper_bound <= incumbent or not n_open:
        return None, max(upper_bound, incumbent) if n_open else n_always
    base, effects = base[is_open], effects[is_open]
    # Who only helps is added, who only hinders is not.
    helps, hinders = (effects <= 0).all(axis=0), (effects >= 0).all(axis=0)
    free = np.flatnonzero(~helps & ~hinders)
    base, effects = base + effects[:, helps].sum(axis=1), effects[:, free]
    order_rows, order_limits = _order_constraints(base, effects)
    logic_rows, logic_limits = _transitivity_constraints(goal, never, is_open, len(free))
    program = _MetPairsProgram(
        base=base,
        effects=effects,
        matrix=vstack([order_rows, logic_rows]).tocsr(),
        upper=np.concatenate([order_limits, logic_limits]),
    )
    added, n_met_bound = program.solve(incumbent=incumbent - n_always, deadline=deadline)
    if added is None:
        return None, n_always + n_met_bound
    all_added = helps.copy()
    all_added[free[added]] = True
    return all_added, n_always + n_met_bound


@dataclass(kw_only=True)
class _MetPairsProgram:
    """The integer program over the free additions and the open pairs.

    Attributes:
        base: ``(n_pairs,)`` whole numbers.
        effects: ``(n_pairs, n_free)`` whole numbers; a pair is in order when ``effects @ added + base <= 0``.
        matrix, upper: constraints ``matrix @ x <= upper``; cuts are appended.
    """

    base: NDArray[Any]
    effects: NDArray[Any]
    matrix: csr_array
    upper: NDArray[np.float64]

    def solve(self, *, incumbent: int, deadline: float) -> tuple[NDArray[np.bool_] | None, int]:
        """Additions that meet more open pairs than the incumbent, if there are any, and an upper bound.

        Args:
            incumbent: open pairs met by the best additions known.
            deadline: by `working_time`.
        """
        n_pairs, n_free = self.effects.shape
        gains = np.concatenate([np.zeros(n_free), np.ones(n_pairs)])
        best: NDArray[np.bool_] | None = None
        upper_bound = n_pairs
        while True:
            time_limit = deadline - working_time()
            solution = maximize(gains, self.matrix, -np.inf, self.upper, time_limit=time_limit)
            if solution.upper_bound < np.inf:
                bound = solution.integer_bound if solution.upper_bound > -np.inf else 0
                upper_bound = min(upper_bound, max(bound, incumbent))
            if solution.x is None:
                return best, upper_bound
            added, claimed = solution.x[:n_free] > 0.5, solution.x[n_free:] > 0.5
            met = np.asarray(self.base + self.effects[:, added].sum(axis=1) <= 0, dtype=bool)
            if int(met.sum()) > incumbent:
                incumbent, best = int(met.sum()), added
            violated = np.flatnonzero(claimed & ~met)
            if upper_bound <= incumbent or not len(violated):
                return best, upper_bound
            self._add_cuts(added, violated)

    def _add_cuts(self, added: NDArray[np.bool_], violated: NDArray[np.int64]) -> None:
        """Forbid that these additions claim these pairs."""
        n_free = len(added)
        cuts = np.zeros((len(violated), self.matrix.shape[1]))
        cuts[:, :n_free] = np.where(added, 1.0, -1.0)
        cuts[np.arange(len(violated)), n_free + violated] = 1.0
        self.matrix = vstack([self.matrix, csr_array(cuts)]).tocsr()
        self.upper = np.concatenate([self.upper, np.full(len(violated), float(added.sum()))])


def _order_constraints(base: NDArray[Any], effects: NDArray[Any]) -> tuple[csr_array, NDArray[np.float64]]:
    """``effects @ added + M x <= M - base`` per pair, in coefficients of at most about 1."""
    divisors = np.maximum(np.gcd.reduce(np.abs(effects), axis=1), 1)
    whole, limits = effects // divisors[:, None], -base // divisors
    reach = np.maximum(np.maximum(whole, 0).sum(axis=1) - limits, 0)
    scales = np.maximum(np.abs(whole).max(axis=1, initial=0), 1)
    coefficients = (whole / scales[:, None]).astype(np.float64)
    reaches = (reach / scales).astype(np.float64)
    upper = ((limits + reach) / scales).astype(np.float64)
    return hstack([csr_array(coefficients), csr_array(np.diag(reaches))]).tocsr(), upper


def _transitivity_constraints(
    goal: PairGoal, never: NDArray[np.bool_], is_open: NDArray[np.bool_], n_free: int
) -> tuple[csr_array, NDArray[np.float64]]:
    """What follows from orders being orders, which spares the solver most of its search.

    Who is strictly ahead is ahead or tied. Of three, p can be behind r only if it is behind q or q behind r, and is so
    if both hold.
    """
    variable = np.cumsum(is_open) - 1 + n_free
    pairs = zip(goal.behind.tolist(), goal.ahead.tolist(), goal.allows_tie.tolist(), strict=True)
    # Decided pairs are constants: their index is None where they are never in order.
    index_of_pair = {
        pair: int(variable[i]) if is_open[i] else None for i, pair in enumerate(pairs) if is_open[i] or never[i]
    }
    constraints: list[tuple[list[int], list[float], float]] = []

    def add_constraint(terms: list[tuple[int | None, float]], limit: float) -> None:
        free_terms = [(x, sign) for x, sign in terms if x is not None]
        if sum(sign > 0 for _, sign in free_terms) > limit:
            constraints.append(([x for x, _ in free_terms], [sign for _, sign in free_terms], limit))

    strict = {}
    for (behind, ahead, allows_tie), x in index_of_pair.items():
        if not allows_tie:
            strict[behind, ahead] = x
            if (behind, ahead, True) in index_of_pair:
                add_constraint([(x, 1.0), (index_of_pair[behind, ahead, True], -1.0)], 0.0)
    following: dict[int, list[int]] = {}
    for behind, ahead in strict:
        following.setdefault(behind, []).append(ahead)
    for p, q in strict:
        for r in following.get(q, []):
            if (p, r) in strict:
                first, second, both = strict[p, q], strict[q, r], strict[p, r]
                add_constraint([(first, 1.0), (second, 1.0), (both, -1.0)], 1.0)
                add_constraint([(both, 1.0), (first, -1.0), (second, -1.0)], 0.0)
    columns = [x for variables, _, _ in constraints for x in variables]
    signs = [sign for _, signs, _ in constraints for sign in signs]
    ends = np.cumsum([0, *(len(variables) for variables, _, _ in constraints)])
    matrix = csr_array((signs, columns, ends), shape=(len(constraints), n_free + int(is_open.sum())))
    return matrix, np.array([limit for _, _, limit in constraints])
