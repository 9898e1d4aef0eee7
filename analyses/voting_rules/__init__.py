"""Does another rule crown another model, and on how little does the first place hang?

Tasks vote, models stand, and the mean is only one way to count. The same scores are counted by eleven rules: who leads
by each, how far the rankings agree, who wins every duel or is caught in a cycle, which rule fails to put a model ahead
of one that is nowhere better, and without how few tasks or rivals the leader would not lead.

Source: Zhang & Hardt 2024, section 3; every rule and number is defined in docs/statistics/voting-rules.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.kemeny import KemenyOrder
from analyses.numerics.elections.voting.pivotal import find_leaders, find_pivotal_models, find_pivotal_tasks
from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.numerics.elections.voting.rule_rankings import (
    RuleAgreement,
    RuleRanking,
    compare_rules,
    rank_by_rules,
    redundant_rules,
)
from analyses.numerics.elections.voting.rules import COMPLETE_TASK_RULES, VOTING_RULES, Election, VotingRule
from analyses.presentation.validation import validate
from analyses.voting_rules import figures, tables
from analyses.voting_rules import summary as wording
from tracker.queries.performance import TaskMatrix
from tracker.queries.ranking.task_rankings import task_rankings
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, analysis


@dataclass(frozen=True, kw_only=True)
class VotingRules(Finding):
    """The same scores counted by several rules.

    Attributes:
        models, tasks: names of columns and rows.
        n_complete: tasks that every model has.
        rule: the rule at hand.
        outcomes: by each rule that can be applied.
        absent: why the others cannot be.
        duels: model against model, over the tasks both have.
        consensus: Kemeny's order.
        agreements: of every two rules.
        same: rules that give the ranking of another one by definition here.
        removal: the fewest ``tasks`` and ``models`` without which somebody else leads by the rule at hand, or why that
            is not known.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    n_complete: int
    rule: VotingRule
    outcomes: Mapping[VotingRule, RuleRanking]
    absent: Mapping[VotingRule, str]
    duels: PairwiseDuels
    consensus: KemenyOrder
    agreements: tuple[RuleAgreement, ...]
    same: frozenset[VotingRule]
    removal: Mapping[str, PivotalSet | str]

    def leaders(self, rule: VotingRule) -> tuple[str, ...]:
        """Models in the first place by a rule."""
        rank = self.outcomes[rule].ranks
        return tuple(self.models[model] for model in np.flatnonzero(rank == rank.min()))

    @property
    def shown_rule(self) -> VotingRule:
        """By which models are shown in order: the rule at hand, or one that needs no complete tasks."""
        return self.rule if self.rule in self.outcomes else "win-rate"

    @property
    def independent(self) -> tuple[RuleAgreement, ...]:
        """Agreements of rules that are not the same by definition here."""
        return tuple(agreement for agreement in self.agreements if not agreement.is_by_definition)

    def not_ahead(self, rule: VotingRule) -> NDArray[np.bool_]:
        """``(n_models, n_models)``: the row is nowhere worse and somewhere better than the column, yet not ahead."""
        rank = self.outcomes[rule].ranks
        return np.asarray(self.duels.pareto_dominates & (rank[:, None] >= rank[None, :]))

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, duels, agreement, Kemeny's order, Pareto, then what the first place hangs on."""
        shared, best = self.duels.shared, self.consensus
        n_compared = int(self.duels.wins.sum())
        hand = self._of_the_rule_at_hand()
        found = [one.agreement for one in self.independent]
        metrics: dict[str, Metric] = {
            "n_tasks": float(len(self.tasks)),
            "n_complete_tasks": float(self.n_complete),
            "n_models": float(len(self.models)),
            "n_rules": float(len(self.outcomes)),
            "leader.n_distinct": float(len({name for rule in self.outcomes for name in self.leaders(rule)})),
            "leader.n_rules": hand,
            "condorcet.exists": float(self.duels.condorcet_winner is not None),
            "condorcet.n_weak": float(len(self.duels.weak_condorcet_winners)),
            "smith.size": float(len(self.duels.smith_set)),
            "duels.n_drawn": float(np.triu(self.duels.margins == 0, 1).sum()),
            "duels.n_without_tasks": float(np.triu(shared == 0, 1).sum()),
            "agreement.mean": float(np.mean(found)) if found else Undefined("fewer than two rules"),
            "agreement.least": float(min(found)) if found else Undefined("fewer than two rules"),
            "kemeny.exact": float(best.is_exact),
            "kemeny.distance": float(best.distance),
            "kemeny.distance_at_least": float(best.lower_bound),
            "kemeny.contradicted": best.distance / n_compared
            if n_compared
            else Undefined("every task ties all models"),
            "kemeny.unique": Undefined("not known: not proven in time")
            if best.is_unique is None
            else float(best.is_unique),
            "pareto.n_pairs": float(self.duels.pareto_dominates.sum()),
        }
        for rule in VOTING_RULES:
            there = rule in self.outcomes
            metrics[f"pareto.{tables.scheme(rule)}"] = (
                float(self.not_ahead(rule).sum()) if there else Undefined(self.absent[rule])
            )
        for what, known in self.removal.items():
            metrics |= _fall_metrics(what, known)
        return metrics

    def _of_the_rule_at_hand(self) -> Metric:
        """By how many rules its leader leads."""
        if self.rule not in self.outcomes:
            return Undefined(self.absent[self.rule])
        leading = set(self.leaders(self.rule))
        return float(sum(bool(leading & set(self.leaders(rule))) for rule in self.outcomes))

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Ranks, models by rules; tasks won, row against column; Kemeny's order as columns, best first."""
        ranks = np.stack([outcome.ranks for outcome in self.outcomes.values()], axis=1)
        return {
            "ranks": ranks,
            "wins": self.duels.wins,
            "shared": self.duels.shared,
            "kemeny.order": self.consensus.order,
        }

    def summary(self) -> str:
        """What was found, in plain words."""
        led = {rule: self.leaders(rule) for rule in self.outcomes}
        n_tasks, n_models = len(self.tasks), len(self.models)
        words = [
            wording.who_leads(self.rule, led, n_tasks=n_tasks, n_models=n_models),
            wording.agreement(self.independent),
            wording.duels(self.duels, self.models),
            wording.order(self.consensus, int(self.duels.wins.sum())),
            wording.pareto(
                {rule: int(self.not_ahead(rule).sum()) for rule in led}, int(self.duels.pareto_dominates.sum())
            ),
        ]
        for what, known in self.removal.items():
            words.append(wording.removal(what, known, self.rule))
        return " ".join(one for one in [*words, "Nothing here is a test."] if one)


def count_by_rules(
    scores: ExactScores,
    *,
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    rule: VotingRule = "mean",
    time_limit: float = 30.0,
) -> VotingRules:
    """Count the same scores by every rule.

    Args:
        scores: at least 2 models and 1 task; each has a score.
        models, tasks: names of columns and rows.
        rule: whose leader is put to the test of removals.
        time_limit: seconds for Kemeny's order, and again for each search of removals.
    """
    election = Election.from_scores(scores)
    complete = election.complete()
    found, absent, consensus = rank_by_rules(election, complete, deadline=time.monotonic() + time_limit)
    if rule in absent:
        removal: Mapping[str, PivotalSet | str] = dict.fromkeys(("tasks", "models"), absent[rule])
    elif rule in COMPLETE_TASK_RULES:
        whole = tuple(task for task, there in zip(tasks, np.asarray(scores.present.all(axis=1)), strict=True) if there)
        removal = _falls(rule, complete, whole, models, time_limit)
    else:
        removal = _falls(rule, election, tasks, models, time_limit)
    return VotingRules(
        models=models,
        tasks=tasks,
        n_complete=complete.n_tasks,
        rule=rule,
        outcomes=found,
        absent=absent,
        duels=election.duels,
        consensus=consensus,
        agreements=compare_rules(found, redundant_rules(election)),
        same=redundant_rules(election),
        removal=removal,
    )


def _falls(
    rule: VotingRule, election: Election, tasks: tuple[str, ...], models: tuple[str, ...], time_limit: float
) -> Mapping[str, PivotalSet | str]:
    """What the first place hangs on.

    Args:
        rule: it can be applied.
        election: complete for the rules that need it.
        tasks, models: names.
        time_limit: seconds for each search.
    """
    leading = find_leaders(rule, election, deadline=time.monotonic() + time_limit)
    if leading is None:
        return dict.fromkeys(("tasks", "models"), "the leader is not known: the best order is not proven in time")
    falls: dict[str, PivotalSet | str] = {}
    for what, names, search in (("tasks", tasks, find_pivotal_tasks), ("models", models, find_pivotal_models)):
        found = search(rule, election, leading, deadline=time.monotonic() + time_limit)
        if found.removed is None:
            falls[what] = PivotalSet(removed=None, lower_bound=found.lower_bound)
            continue
        kept = np.setdiff1d(np.arange(len(names)), found.removed)
        rest = election.select_tasks(kept) if what == "tasks" else election.select_models(kept)
        new_leaders = find_leaders(rule, rest, deadline=time.monotonic() + time_limit)
        left = models if what == "tasks" else tuple(models[model] for model in kept)
        falls[what] = PivotalSet(
            removed=tuple(names[one] for one in found.removed),
            lower_bound=found.lower_bound,
            new_leaders=() if new_leaders is None else tuple(left[model] for model in new_leaders),
        )
    return falls


def _fall_metrics(what: str, known: PivotalSet | str) -> Mapping[str, Metric]:
    """How many must go, how many at least, and whether that is the same number."""
    name = f"removal.{what}"
    if isinstance(known, str):
        return dict.fromkeys((name, f"{name}.at_least", f"{name}.exact"), Undefined(known))
    never = Undefined(f"no set of {what} takes the first place away")
    more = (
        never
        if known.lower_bound is None
        else Undefined(f"no set found; at least {known.lower_bound} would have to go")
    )
    return {
        name: more if known.removed is None else float(len(known.removed)),
        f"{name}.at_least": never if known.lower_bound is None else float(known.lower_bound),
        f"{name}.exact": float(known.is_exact),
    }


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    rule: Annotated[VotingRule, "whose leader is put to the test of removing tasks and models"] = "mean",
    time_limit: Annotated[float, "seconds for Kemeny's order, and for each search of what to remove"] = 30.0,
) -> Report:
    """Count the scores of a benchmark by every rule.

    Args:
        scores: at least 3 models; those without a score are left out, with a note.
        rule: see `count_by_rules`.
        time_limit: seconds, at least 0.

    Raises:
        SelectionError: fewer than 3 models, infinite scores, or an option out of range.
    """
    validate(wording.problems(rule=rule, time_limit=time_limit))
    field = task_rankings(scores)
    kept = field.scores
    exact = exact_scores(kept.T, kept.n_prompts, higher_is_better=kept.higher_is_better)
    found = count_by_rules(exact, models=kept.models, tasks=kept.tasks, rule=rule, time_limit=time_limit)
    order = np.lexsort((np.array(kept.models), found.outcomes[found.shown_rule].ranks))
    ranks = {one: outcome.ranks[order] for one, outcome in found.outcomes.items()}
    names = [kept.models[model] for model in order]
    pareto = tables.pareto(found.models, {rank: found.not_ahead(rank) for rank in ranks}, found.outcomes)
    return Report(
        found,
        rankings={tables.scheme(outcome): _ranked(found, outcome, kept.higher_is_better) for outcome in found.outcomes},
        tables={
            "rules": tables.by_rule(found.outcomes, found.absent, found.models, found.duels.pareto_dominates),
            "ranks": tables.by_model(names, ranks),
            "agreement": tables.by_pair_of_rules(found.agreements),
            "duels": tables.duels(found.duels, found.models, order),
            "pareto": pareto,
            "removals": tables.removals(found.removal),
        },
        figures={
            "ranks": lambda: figures.ranks(names, ranks, found.shown_rule),
            "agreement": lambda: figures.agreement(tuple(found.outcomes), found.agreements),
            "duels": lambda: figures.duels(found.duels, found.models, found.outcomes["copeland"].ranks),
        },
        warnings=[
            *field.warnings,
            *wording.warnings(
                found.absent,
                rule,
                n_tasks=kept.n_tasks,
                n_complete=found.n_complete,
                same=found.same,
                n_unshared=int(np.triu(found.duels.shared == 0, 1).sum()),
                is_cut=len(pareto) == tables.MOST_PAIRS,
            ),
        ],
    )


def _ranked(found: VotingRules, rule: VotingRule, higher_is_better: bool) -> RankedModels:
    """The models by one rule; means and medians in the direction in which they were measured."""
    outcome = found.outcomes[rule]
    turned = -1 if rule in ("mean", "median") and not higher_is_better else 1
    return RankedModels(models=found.models, score=outcome.scores * turned, rank=outcome.ranks)
