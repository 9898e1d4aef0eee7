"""The same election counted by every rule, and how far the rankings agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import RankingDistance, average_ranks, ranking_distance
from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.kemeny import Consensus, kemeny
from analyses.numerics.elections.voting.rules import RULES, WHOLE_BALLOTS, Election, Rule, as_counted, points

INSTALL = "pip install 'suffrage[voting]'"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A ranking by one rule.

    Attributes:
        scores: ``(n_models,)`` what models are ranked by, as shown; by Kemeny's rule, places in the order.
        ranks: ``(n_models,)``: 1 is the best, ties share the mean of their ranks.
    """

    scores: NDArray[np.float64]
    ranks: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How two rules agree.

    Attributes:
        rule, other: the two.
        distance: all distances of their rankings.
        agreement: share of pairs of models in the same order, a pair tied in one of the two only being half.
        is_by_definition: whether one of them is known beforehand to give the ranking of another rule.
    """

    rule: Rule
    other: Rule
    distance: RankingDistance
    is_by_definition: bool

    @property
    def agreement(self) -> float:
        """In [0, 1]: one less Kendall's distance with p = 1/2 (Fagin et al. 2004)."""
        return 1 - (self.distance.tau + self.distance.tau_paper) / 2


def outcomes(
    election: Election, complete: Election, *, deadline: float
) -> tuple[Mapping[Rule, Outcome], Mapping[Rule, str], Consensus]:
    """Rankings by all rules that can be applied.

    Args:
        election: all tasks.
        complete: the tasks that every model has; there may be none.
        deadline: for Kemeny's order, by `time.monotonic`.

    Returns:
        By rule; why other rules cannot be applied; and Kemeny's order.
    """
    found: dict[Rule, Outcome] = {}
    absent: dict[Rule, str] = {}
    consensus = kemeny(election.codes, deadline=deadline)
    for rule in RULES:
        if rule == "kemeny":
            places = np.empty(election.n_models)
            places[consensus.order] = np.arange(1, election.n_models + 1)
            found[rule] = Outcome(scores=places, ranks=consensus.ranks)
        elif rule == "bradley-terry":
            outcome = _by_strengths(election)
            if isinstance(outcome, str):
                absent[rule] = outcome
            else:
                found[rule] = outcome
        elif rule in WHOLE_BALLOTS and not complete.n_tasks:
            absent[rule] = "no task has a score from every model"
        else:
            given = points(rule, complete if rule in WHOLE_BALLOTS else election)
            found[rule] = Outcome(scores=given.scores, ranks=given.ranks)
    return found, absent, consensus


def _by_strengths(election: Election) -> Outcome | str:
    """The ranking by strengths, or why there is none."""
    if not bradley_terry.is_installed():
        return f"evalica is not installed; {INSTALL}"
    if not bradley_terry.has_strengths(election.duels):
        return "some models win every comparison with all others, or were never compared: strengths would be infinite"
    worth = bradley_terry.strengths(election.duels)
    if worth is None:
        return "the fit of strengths does not converge"
    if as_counted("bradley-terry", election) == "borda":
        return Outcome(scores=worth, ranks=points("borda", election).ranks)
    return Outcome(scores=worth, ranks=average_ranks(bradley_terry.levels(worth)))


def counted_out(election: Election) -> frozenset[Rule]:
    """Rules that are known beforehand to give the ranking of another one here."""
    return frozenset(rule for rule in RULES if as_counted(rule, election) != rule)


def agreements(found: Mapping[Rule, Outcome], same: frozenset[Rule]) -> tuple[Agreement, ...]:
    """Agreement of every two rules.

    Args:
        found: rankings.
        same: of `counted_out`.
    """
    rules = list(found)
    return tuple(
        Agreement(
            rule=rule,
            other=other,
            distance=ranking_distance(found[rule].ranks, found[other].ranks),
            is_by_definition=rule in same or other in same,
        )
        for i, rule in enumerate(rules)
        for other in rules[i + 1 :]
    )
