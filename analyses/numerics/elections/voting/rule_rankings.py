"""The same election counted by every rule, and how far the rankings agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import RankingDistance, average_ranks, ranking_distance
from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.kemeny import KemenyOrder, find_kemeny_order
from analyses.numerics.elections.voting.rules import (
    COMPLETE_TASK_RULES,
    VOTING_RULES,
    Election,
    VotingRule,
    canonical_rule,
    count_points,
)

INSTALL = "pip install '.[voting]'"


@dataclass(frozen=True, kw_only=True)
class RuleRanking:
    """A ranking by one rule.

    Attributes:
        scores: ``(n_models,)`` what models are ranked by, as shown; by Kemeny's rule, places in the order.
        ranks: ``(n_models,)``: 1 is the best, ties share the mean of their ranks.
    """

    scores: NDArray[np.float64]
    ranks: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RuleAgreement:
    """How two rules agree.

    Attributes:
        rule, other_rule: the two.
        distance: all distances of their rankings.
        agreement: share of pairs of models in the same order, a pair tied in one of the two only being half.
        is_by_definition: whether one of them is known beforehand to give the ranking of another rule.
    """

    rule: VotingRule
    other_rule: VotingRule
    distance: RankingDistance
    is_by_definition: bool

    @property
    def agreement(self) -> float:
        """In [0, 1]: one less Kendall's distance with p = 1/2 (Fagin et al. 2004)."""
        return 1 - (self.distance.tau + self.distance.tau_paper) / 2


def rank_by_rules(
    election: Election, complete: Election, *, deadline: float
) -> tuple[Mapping[VotingRule, RuleRanking], Mapping[VotingRule, str], KemenyOrder]:
    """Rankings by all rules that can be applied.

    Args:
        election: all tasks.
        complete: the tasks that every model has; there may be none.
        deadline: for Kemeny's order, by `working_time`.

    Returns:
        By rule; why other rules cannot be applied; and Kemeny's order.
    """
    rankings: dict[VotingRule, RuleRanking] = {}
    undefined: dict[VotingRule, str] = {}
    consensus = find_kemeny_order(election.codes, deadline=deadline)
    for rule in VOTING_RULES:
        if rule == "kemeny":
            positions = np.empty(election.n_models)
            positions[consensus.order] = np.arange(1, election.n_models + 1)
            rankings[rule] = RuleRanking(scores=positions, ranks=consensus.ranks)
        elif rule == "bradley-terry":
            ranking = _rank_by_strengths(election)
            if isinstance(ranking, str):
                undefined[rule] = ranking
            else:
                rankings[rule] = ranking
        elif rule in COMPLETE_TASK_RULES and not complete.n_tasks:
            undefined[rule] = "no task has a score from every model"
        else:
            rule_points = count_points(rule, complete if rule in COMPLETE_TASK_RULES else election)
            rankings[rule] = RuleRanking(scores=rule_points.scores, ranks=rule_points.ranks)
    return rankings, undefined, consensus


def _rank_by_strengths(election: Election) -> RuleRanking | str:
    """The ranking by strengths, or why there is none."""
    if not bradley_terry.is_installed():
        return f"evalica is not installed; {INSTALL}"
    if not bradley_terry.has_finite_strengths(election.duels):
        return "some models win every comparison with all others, or were never compared: strengths would be infinite"
    strengths = bradley_terry.fit_strengths(election.duels)
    if strengths is None:
        return "the fit of strengths does not converge"
    if canonical_rule("bradley-terry", election) == "borda":
        return RuleRanking(scores=strengths, ranks=count_points("borda", election).ranks)
    return RuleRanking(scores=strengths, ranks=average_ranks(bradley_terry.tie_levels(strengths)))


def redundant_rules(election: Election) -> frozenset[VotingRule]:
    """Rules that are known beforehand to give the ranking of another one here."""
    return frozenset(rule for rule in VOTING_RULES if canonical_rule(rule, election) != rule)


def compare_rules(
    rankings: Mapping[VotingRule, RuleRanking], redundant: frozenset[VotingRule]
) -> tuple[RuleAgreement, ...]:
    """Agreement of every two rules.

    Args:
        rankings: rankings.
        redundant: of `redundant_rules`.
    """
    rules = list(rankings)
    return tuple(
        RuleAgreement(
            rule=first_rule,
            other_rule=second_rule,
            distance=ranking_distance(rankings[first_rule].ranks, rankings[second_rule].ranks),
            is_by_definition=first_rule in redundant or second_rule in redundant,
        )
        for i, first_rule in enumerate(rules)
        for second_rule in rules[i + 1 :]
    )
