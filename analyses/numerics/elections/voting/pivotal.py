"""Who leads by a rule, and on how few tasks or models that depends."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.kemeny import find_kemeny_order
from analyses.numerics.elections.voting.removals import (
    NO_REMOVAL,
    Removal,
    minimize_minimax_removal,
    minimize_sum_removal,
    search_removal,
)
from analyses.numerics.elections.voting.rules import (
    ADDITIVE_RULES,
    Election,
    PointsRule,
    VotingRule,
    canonical_rule,
    count_points,
    defeat_margins,
    opponent_points,
    task_points,
)
from analyses.numerics.elections.win_rates import count_models_beaten, pairwise_wins

MAX_RIVALS = 3
"""Models after the leaders that are put first in Kemeny's order, to see how close they come."""


def find_leaders(rule: VotingRule, election: Election, *, deadline: float) -> NDArray[np.int64] | None:
    """Models in the first place; by Kemeny's rule, those that are first in some best order.

    Args:
        rule: by which they are ranked.
        election: complete for the rules that need it.
        deadline: by `working_time`.

    Returns:
        Columns; None where they are not known: the best order is not proven, or strengths do not exist.
    """
    rule = canonical_rule(rule, election)
    if rule == "kemeny":
        return _kemeny_leaders(election, deadline)
    levels = _rule_levels(rule, election)
    return None if levels is None else np.flatnonzero(np.asarray(levels == levels.max(), dtype=bool))


def find_pivotal_tasks(rule: VotingRule, election: Election, leading: NDArray[np.int64], *, deadline: float) -> Removal:
    """A smallest set of tasks whose removal takes the first place from all who hold it; at least one task is left.

    Args:
        rule: by which models are ranked.
        election: complete for the rules that need it.
        leading: of `find_leaders`.
        deadline: by `working_time`.
    """
    if len(leading) == election.n_models or _is_unbeatable(election, leading):
        return NO_REMOVAL
    canonical = canonical_rule(rule, election)
    if canonical in ADDITIVE_RULES:
        return minimize_sum_removal(task_points(canonical, election)[0], leading)
    if canonical == "win-rate" and election.is_complete:
        return minimize_sum_removal(count_models_beaten(election.codes), leading)
    all_tasks = np.arange(election.n_tasks)

    def lead(removed: NDArray[np.int64]) -> Any:
        remaining = np.setdiff1d(all_tasks, removed)
        return _leader_margin(rule, election.select_tasks(remaining), leading, deadline) if len(remaining) else 1

    return search_removal(all_tasks, lead, deadline=deadline)


def find_pivotal_models(
    rule: VotingRule, election: Election, leading: NDArray[np.int64], *, deadline: float
) -> Removal:
    """A smallest set of models, none of them leading, without which the leaders are no longer in the first place.

    Tasks stay the same. By ``mean`` and ``median`` there is none: other models have no part in a model's score.

    Args:
        rule: by which models are ranked.
        election: complete for the rules that need it.
        leading: of `find_leaders`.
        deadline: by `working_time`.
    """
    canonical = canonical_rule(rule, election)
    if canonical in ("mean", "median") or len(leading) == election.n_models or _is_unbeatable(election, leading):
        return NO_REMOVAL
    if canonical == "win-rate":
        return minimize_sum_removal(pairwise_wins(election.scores).wins.T, leading, items_are_models=True)
    if canonical in ("borda", "copeland"):
        return minimize_sum_removal(opponent_points(canonical, election).T, leading, items_are_models=True)
    if canonical == "minimax":
        return minimize_minimax_removal(defeat_margins(election.duels)[0], leading)
    if canonical == "kemeny" and np.isin(leading, election.duels.weak_condorcet_winners).any():
        return NO_REMOVAL  # it loses no duel, whoever else stands
    removable = np.setdiff1d(np.arange(election.n_models), leading)

    def lead(removed: NDArray[np.int64]) -> Any:
        remaining = np.setdiff1d(np.arange(election.n_models), removed)
        return _leader_margin(rule, election.select_models(remaining), np.searchsorted(remaining, leading), deadline)

    return search_removal(removable, lead, deadline=deadline)


def _is_unbeatable(election: Election, leading: NDArray[np.int64]) -> bool:
    """Whether a leader has the best score on every task, and nobody lacks one: then no rule has anybody ahead of it."""
    first = election.codes == election.codes.max(axis=1, keepdims=True)
    return election.is_complete and bool(first[:, leading].all(axis=0).any())


def _rule_levels(rule: PointsRule | Literal["bradley-terry"], election: Election) -> NDArray[Any] | None:
    """What models are ranked by; None where strengths do not exist."""
    if rule == "bradley-terry":
        duels = election.duels
        strengths = bradley_terry.fit_strengths(duels) if bradley_terry.has_finite_strengths(duels) else None
        return None if strengths is None else bradley_terry.tie_levels(strengths)
    return count_points(rule, election).points


def _leader_margin(rule: VotingRule, election: Election, leading: NDArray[np.int64], deadline: float) -> Any:
    """By how much the foremost of some models is ahead of all others; below 0 it is not first; None = not known."""
    challengers = np.setdiff1d(np.arange(election.n_models), leading)
    if not len(challengers):
        return 1
    rule = canonical_rule(rule, election)
    if rule == "kemeny":
        return _kemeny_margin(election, leading, deadline)
    levels = _rule_levels(rule, election)
    return None if levels is None else max(levels[leading].tolist()) - max(levels[challengers].tolist())


def _kemeny_leaders(election: Election, deadline: float) -> NDArray[np.int64] | None:
    """Models that are first in some best order; None where best orders are not proven."""
    best_cost, duels = _proven_kemeny_cost(election, deadline), election.duels
    if best_cost is None:
        return None
    # Whoever loses more than it wins could be moved to the end for less.
    candidates = [model for model in duels.smith_set.tolist() if int(duels.margins[model].sum()) >= 0]
    costs: list[int | None] = [best_cost]
    if duels.condorcet_winner is None:
        costs = [_kemeny_cost_with_leader(election, model, deadline) for model in candidates]
    if any(cost is None for cost in costs):
        return None
    return np.array([model for model, cost in zip(candidates, costs, strict=True) if cost == best_cost], dtype=np.int64)


def _kemeny_margin(election: Election, leading: NDArray[np.int64], deadline: float) -> int | None:
    """How much more the best order costs with another model first than with one of these; below 0 it is cheaper."""
    consensus = find_kemeny_order(election.codes, deadline=deadline, with_uniqueness=False)
    costs = [_kemeny_cost_with_leader(election, model, deadline) for model in leading.tolist()]
    known = [cost for cost in costs if cost is not None]
    if not consensus.is_exact or len(known) < len(costs):
        return None
    if consensus.distance < min(known):
        return consensus.distance - min(known)
    rivals = [model for model in consensus.order.tolist() if model not in leading][:MAX_RIVALS]
    rival_costs = [_kemeny_cost_with_leader(election, model, deadline) for model in rivals]
    return min((cost for cost in rival_costs if cost is not None), default=min(known)) - min(known)


def _kemeny_cost_with_leader(election: Election, model: int, deadline: float) -> int | None:
    """Contradictions of the best order that begins with a model; None where it is not proven."""
    remaining_cost = _proven_kemeny_cost(
        election.select_models(np.delete(np.arange(election.n_models), model)), deadline
    )
    return None if remaining_cost is None else remaining_cost + int(election.duels.wins[:, model].sum())


def _proven_kemeny_cost(election: Election, deadline: float) -> int | None:
    consensus = find_kemeny_order(election.codes, deadline=deadline, with_uniqueness=False)
    return consensus.distance if consensus.is_exact else None
