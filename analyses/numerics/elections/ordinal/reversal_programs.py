"""Which models to add so that most pairs of leading models stand in an order wanted: as an integer program."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from analyses.numerics.elections.integer_programs import maximize
from analyses.numerics.elections.ordinal.added_models import LinearAdditions
from analyses.numerics.elections.ordinal.local_search import PairGoal

MAX_CELLS = 1_000_000
"""Programs with more coefficients are not begun: they would not end in time."""


def solve_met_pairs(
    additions: LinearAdditions, goal: PairGoal, *, more_than: int, deadline: float
) -> tuple[NDArray[np.bool_] | None, int]:
    """Additions that bring more pairs into the order wanted than ``more_than``, if there are any.

    A pair p gets a variable x_p that may be 1 only if it stands as wanted: with d the whole numbers by which the added
    models change the difference, d @ added <= limit + M (1 - x_p). Answers are checked in whole numbers; where a pair
    is claimed that does not stand so, as the solver works in floats, that is forbidden and the program solved again.

    Args:
        additions: who leads and who may be added.
        goal: the pairs.
        more_than: pairs met by the best additions known.
        deadline: by `time.monotonic`.

    Returns:
        The best additions found that meet more pairs, None if none was found; and a number of pairs that none exceeds.
    """
    base = additions.base[goal.behind] - additions.base[goal.ahead] - goal.allows_tie.astype(int) + 1
    if base.size * additions.effects.shape[1] > MAX_CELLS or time.monotonic() >= deadline:
        return None, len(goal)
    effects = additions.effects[goal.behind] - additions.effects[goal.ahead]
    # A pair is in order when effects @ added + base <= 0. One that never or always is, is settled.
    least, most = base + np.minimum(effects, 0).sum(axis=1), base + np.maximum(effects, 0).sum(axis=1)
    never, always = np.asarray(least > 0, dtype=bool), np.asarray(most <= 0, dtype=bool)
    open_ = ~never & ~always
    n_settled, kept = int(always.sum()), np.flatnonzero(open_)
    upper_bound, found = n_settled + len(kept), None
    if upper_bound <= more_than or not len(kept):
        return None, max(upper_bound, more_than) if len(kept) else n_settled
    base, effects = base[open_], effects[open_]
    # Who only helps is added, who only hinders is not.
    helps, hinders = (effects <= 0).all(axis=0), (effects >= 0).all(axis=0)
    free = np.flatnonzero(~helps & ~hinders)
    base, effects = base + effects[:, helps].sum(axis=1), effects[:, free]
    standing, limits = _order_constraints(base, effects)
    rules, rule_limits = _transitivity_constraints(goal, never, open_, len(free))
    matrix, upper = vstack([standing, rules]).tocsr(), np.concatenate([limits, rule_limits])
    n_pairs, best = len(kept), more_than - n_settled
    gains = np.concatenate([np.zeros(len(free)), np.ones(n_pairs)])
    while True:
        solved = maximize(gains, matrix, -np.inf, upper, time_limit=deadline - time.monotonic())
        if solved.upper_bound < np.inf:
            bound = solved.integer_bound if solved.upper_bound > -np.inf else 0
            upper_bound = min(upper_bound, n_settled + max(bound, best))
        if solved.x is None:
            return found, upper_bound
        added, claimed = solved.x[: len(free)] > 0.5, solved.x[len(free) :] > 0.5
        met = np.asarray(base + effects[:, added].sum(axis=1) <= 0, dtype=bool)
        if int(met.sum()) > best:
            best = int(met.sum())
            found = helps.copy()
            found[free[added]] = True
        wrong = np.flatnonzero(claimed & ~met)
        if upper_bound <= n_settled + best or not len(wrong):
            return found, upper_bound
        cuts = np.zeros((len(wrong), matrix.shape[1]))
        cuts[:, : len(free)] = np.where(added, 1.0, -1.0)
        cuts[np.arange(len(wrong)), len(free) + wrong] = 1.0
        matrix = vstack([matrix, csr_array(cuts)]).tocsr()
        upper = np.concatenate([upper, np.full(len(wrong), float(added.sum()))])


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
    goal: PairGoal, never: NDArray[np.bool_], open_: NDArray[np.bool_], n_free: int
) -> tuple[csr_array, NDArray[np.float64]]:
    """What follows from orders being orders, which spares the solver most of its search.

    Who is strictly ahead is ahead or tied. Of three, p can be behind r only if it is behind q or q behind r, and is so
    if both hold.
    """
    variable = np.cumsum(open_) - 1 + n_free
    pairs = zip(goal.behind.tolist(), goal.ahead.tolist(), goal.allows_tie.tolist(), strict=True)
    # Settled pairs are constants: their place is None where they never stand as wanted.
    place = {pair: int(variable[i]) if open_[i] else None for i, pair in enumerate(pairs) if open_[i] or never[i]}
    rules: list[tuple[list[int], list[float], float]] = []

    def rule(terms: list[tuple[int | None, float]], limit: float) -> None:
        known = [(x, sign) for x, sign in terms if x is not None]
        if sum(sign > 0 for _, sign in known) > limit:
            rules.append(([x for x, _ in known], [sign for _, sign in known], limit))

    strict = {}
    for (behind, ahead, allows_tie), x in place.items():
        if not allows_tie:
            strict[behind, ahead] = x
            if (behind, ahead, True) in place:
                rule([(x, 1.0), (place[behind, ahead, True], -1.0)], 0.0)
    following: dict[int, list[int]] = {}
    for behind, ahead in strict:
        following.setdefault(behind, []).append(ahead)
    for p, q in strict:
        for r in following.get(q, []):
            if (p, r) in strict:
                first, second, both = strict[p, q], strict[q, r], strict[p, r]
                rule([(first, 1.0), (second, 1.0), (both, -1.0)], 1.0)
                rule([(both, 1.0), (first, -1.0), (second, -1.0)], 0.0)
    columns = [x for variables, _, _ in rules for x in variables]
    signs = [sign for _, signs, _ in rules for sign in signs]
    ends = np.cumsum([0, *(len(variables) for variables, _, _ in rules)])
    matrix = csr_array((signs, columns, ends), shape=(len(rules), n_free + int(open_.sum())))
    return matrix, np.array([limit for _, _, limit in rules])
