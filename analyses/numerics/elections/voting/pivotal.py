"""Who leads by a rule, and on how few tasks or models that depends."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.kemeny import kemeny
from analyses.numerics.elections.voting.removals import NEVER, Removal, by_search, by_sums, by_worst_duel
from analyses.numerics.elections.voting.rules import (
    ADDITIVE,
    Election,
    PointsRule,
    Rule,
    as_counted,
    defeats,
    opponent_points,
    points,
    task_points,
)
from analyses.numerics.elections.win_rates import models_beaten, pairwise_wins

RIVALS = 3
"""Models after the leaders that are put first in Kemeny's order, to see how close they come."""


def leaders(rule: Rule, election: Election, *, deadline: float) -> NDArray[np.int64] | None:
    """Models in the first place; by Kemeny's rule, those that are first in some best order.

    Args:
        rule: by which they are ranked.
        election: complete for the rules that need it.
        deadline: by `time.monotonic`.

    Returns:
        Columns; None where they are not known: the best order is not proven, or strengths do not exist.
    """
    rule = as_counted(rule, election)
    if rule == "kemeny":
        return _first_in_order(election, deadline)
    levels = _levels(rule, election)
    return None if levels is None else np.flatnonzero(np.asarray(levels == levels.max(), dtype=bool))


def fewest_tasks(rule: Rule, election: Election, leading: NDArray[np.int64], *, deadline: float) -> Removal:
    """A smallest set of tasks whose removal takes the first place from all who hold it; at least one task is left.

    Args:
        rule: by which models are ranked.
        election: complete for the rules that need it.
        leading: of `leaders`.
        deadline: by `time.monotonic`.
    """
    if len(leading) == election.n_models or _never_behind(election, leading):
        return NEVER
    counted = as_counted(rule, election)
    if counted in ADDITIVE:
        return by_sums(task_points(counted, election)[0], leading)
    if counted == "win-rate" and election.is_complete:
        return by_sums(models_beaten(election.codes), leading)
    everything = np.arange(election.n_tasks)

    def lead(removed: NDArray[np.int64]) -> Any:
        left = np.setdiff1d(everything, removed)
        return _lead(rule, election.among_tasks(left), leading, deadline) if len(left) else 1

    return by_search(everything, lead, deadline=deadline)


def fewest_models(rule: Rule, election: Election, leading: NDArray[np.int64], *, deadline: float) -> Removal:
    """A smallest set of models, none of them leading, without which the leaders are no longer in the first place.

    Tasks stay the same. By ``mean`` and ``median`` there is none: other models have no part in a model's score.

    Args:
        rule: by which models are ranked.
        election: complete for the rules that need it.
        leading: of `leaders`.
        deadline: by `time.monotonic`.
    """
    counted = as_counted(rule, election)
    if counted in ("mean", "median") or len(leading) == election.n_models or _never_behind(election, leading):
        return NEVER
    if counted == "win-rate":
        return by_sums(pairwise_wins(election.scores).wins.T, leading, items_are_models=True)
    if counted in ("borda", "copeland"):
        return by_sums(opponent_points(counted, election).T, leading, items_are_models=True)
    if counted == "minimax":
        return by_worst_duel(defeats(election.duels)[0], leading)
    if counted == "kemeny" and np.isin(leading, election.duels.weak_winners).any():
        return NEVER  # it loses no duel, whoever else stands
    others = np.setdiff1d(np.arange(election.n_models), leading)

    def lead(removed: NDArray[np.int64]) -> Any:
        left = np.setdiff1d(np.arange(election.n_models), removed)
        return _lead(rule, election.among_models(left), np.searchsorted(left, leading), deadline)

    return by_search(others, lead, deadline=deadline)


def _never_behind(election: Election, leading: NDArray[np.int64]) -> bool:
    """Whether a leader has the best score on every task, and nobody lacks one: then no rule has anybody ahead of it."""
    first = election.codes == election.codes.max(axis=1, keepdims=True)
    return election.is_complete and bool(first[:, leading].all(axis=0).any())


def _levels(rule: PointsRule | Literal["bradley-terry"], election: Election) -> NDArray[Any] | None:
    """What models are ranked by; None where strengths do not exist."""
    if rule == "bradley-terry":
        duels = election.duels
        worth = bradley_terry.strengths(duels) if bradley_terry.has_strengths(duels) else None
        return None if worth is None else bradley_terry.levels(worth)
    return points(rule, election).points


def _lead(rule: Rule, election: Election, leading: NDArray[np.int64], deadline: float) -> Any:
    """By how much the foremost of some models is ahead of all others; below 0 it is not first; None = not known."""
    others = np.setdiff1d(np.arange(election.n_models), leading)
    if not len(others):
        return 1
    rule = as_counted(rule, election)
    if rule == "kemeny":
        return _lead_in_order(election, leading, deadline)
    levels = _levels(rule, election)
    return None if levels is None else max(levels[leading].tolist()) - max(levels[others].tolist())


def _first_in_order(election: Election, deadline: float) -> NDArray[np.int64] | None:
    """Models that are first in some best order; None where best orders are not proven."""
    best, duels = _proven(election, deadline), election.duels
    if best is None:
        return None
    # Whoever loses more than it wins could be moved to the end for less.
    able = [model for model in duels.smith.tolist() if int(duels.margins[model].sum()) >= 0]
    costs = [_cost_if_first(election, model, deadline) for model in able] if duels.winner is None else [best]
    if any(cost is None for cost in costs):
        return None
    return np.array([model for model, cost in zip(able, costs, strict=True) if cost == best], dtype=np.int64)


def _lead_in_order(election: Election, leading: NDArray[np.int64], deadline: float) -> int | None:
    """How much more the best order costs with another model first than with one of these; below 0 it is cheaper."""
    whole = kemeny(election.codes, deadline=deadline, with_uniqueness=False)
    costs = [_cost_if_first(election, model, deadline) for model in leading.tolist()]
    known = [cost for cost in costs if cost is not None]
    if not whole.is_exact or len(known) < len(costs):
        return None
    if whole.distance < min(known):
        return whole.distance - min(known)
    rivals = [model for model in whole.order.tolist() if model not in leading][:RIVALS]
    others = [_cost_if_first(election, model, deadline) for model in rivals]
    return min((cost for cost in others if cost is not None), default=min(known)) - min(known)


def _cost_if_first(election: Election, model: int, deadline: float) -> int | None:
    """Contradictions of the best order that begins with a model; None where it is not proven."""
    rest = _proven(election.among_models(np.delete(np.arange(election.n_models), model)), deadline)
    return None if rest is None else rest + int(election.duels.wins[:, model].sum())


def _proven(election: Election, deadline: float) -> int | None:
    best = kemeny(election.codes, deadline=deadline, with_uniqueness=False)
    return best.distance if best.is_exact else None
