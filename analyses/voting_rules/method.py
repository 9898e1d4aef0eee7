"""The same scores counted by several voting rules, as one finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
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
from tracker.recording.finding import Finding, Metric, Undefined
from tracker.statistics.jit import working_time


def scheme_name(rule: VotingRule) -> str:
    """A rule's name in metrics, rankings and columns."""
    return rule.replace("-", "_")


@dataclass(frozen=True, kw_only=True)
class VotingRules(Finding):
    """The same scores counted by several rules.

    Attributes:
        models, tasks: names of columns and rows.
        n_complete: tasks that every model has.
        rule: the chosen rule, whose leader is tested by removals.
        outcomes: by each rule that can be applied.
        undefined: why the others cannot be applied.
        duels: model against model, over the tasks both have.
        consensus: Kemeny's order.
        agreements: of every two rules.
        redundant: rules that give the ranking of another one by definition here.
        pivotal_sets: the fewest ``tasks`` and ``models`` without which the leader by the chosen rule does not lead, or
            why that is not known.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    n_complete: int
    rule: VotingRule
    outcomes: Mapping[VotingRule, RuleRanking]
    undefined: Mapping[VotingRule, str]
    duels: PairwiseDuels
    consensus: KemenyOrder
    agreements: tuple[RuleAgreement, ...]
    redundant: frozenset[VotingRule]
    pivotal_sets: Mapping[str, PivotalSet | str]

    def leaders(self, rule: VotingRule) -> tuple[str, ...]:
        """Models in the first place by a rule."""
        rank = self.outcomes[rule].ranks
        return tuple(self.models[model] for model in np.flatnonzero(rank == rank.min()))

    @property
    def display_rule(self) -> VotingRule:
        """By which models are shown in order: the chosen rule, or one that needs no complete tasks."""
        return self.rule if self.rule in self.outcomes else "win-rate"

    @property
    def display_order(self) -> NDArray[np.int64]:
        """``(n_models,)`` columns in the order of `display_rule`, then by name."""
        return np.lexsort((np.array(self.models), self.outcomes[self.display_rule].ranks))

    @property
    def independent_agreements(self) -> tuple[RuleAgreement, ...]:
        """Agreements of rules that are not the same by definition here."""
        return tuple(agreement for agreement in self.agreements if not agreement.is_by_definition)

    def pareto_violations(self, rule: VotingRule) -> NDArray[np.bool_]:
        """``(n_models, n_models)``: the row is nowhere worse and somewhere better than the column, yet not ahead."""
        rank = self.outcomes[rule].ranks
        return np.asarray(self.duels.pareto_dominates & (rank[:, None] >= rank[None, :]))

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, duels, agreement, Kemeny's order, Pareto, then what the first place hangs on."""
        duels, consensus = self.duels, self.consensus
        n_compared = int(duels.wins.sum())
        agreements = [agreement.agreement for agreement in self.independent_agreements]
        too_few_rules = Undefined("fewer than two rules")
        metrics: dict[str, Metric] = {
            "n_tasks": float(len(self.tasks)),
            "n_complete_tasks": float(self.n_complete),
            "n_models": float(len(self.models)),
            "n_rules": float(len(self.outcomes)),
            "leader.n_distinct": float(len({name for rule in self.outcomes for name in self.leaders(rule)})),
            "leader.n_rules": self._n_agreeing_rules(),
            "condorcet.exists": float(duels.condorcet_winner is not None),
            "condorcet.n_weak": float(len(duels.weak_condorcet_winners)),
            "smith.size": float(len(duels.smith_set)),
            "duels.n_drawn": float(np.triu(duels.margins == 0, 1).sum()),
            "duels.n_without_tasks": float(np.triu(duels.shared == 0, 1).sum()),
            "agreement.mean": float(np.mean(agreements)) if agreements else too_few_rules,
            "agreement.least": float(min(agreements)) if agreements else too_few_rules,
            "kemeny.exact": float(consensus.is_exact),
            "kemeny.distance": float(consensus.distance),
            "kemeny.distance_at_least": float(consensus.lower_bound),
            "kemeny.contradicted": consensus.distance / n_compared
            if n_compared
            else Undefined("every task ties all models"),
            "kemeny.unique": Undefined("not known: not proven in time")
            if consensus.is_unique is None
            else float(consensus.is_unique),
            "pareto.n_pairs": float(duels.pareto_dominates.sum()),
        }
        for rule in VOTING_RULES:
            is_defined = rule in self.outcomes
            metrics[f"pareto.{scheme_name(rule)}"] = (
                float(self.pareto_violations(rule).sum()) if is_defined else Undefined(self.undefined[rule])
            )
        for kind, pivotal_set in self.pivotal_sets.items():
            metrics |= _pivotal_metrics(kind, pivotal_set)
        return metrics

    def _n_agreeing_rules(self) -> Metric:
        """By how many rules the leader of the chosen rule leads."""
        if self.rule not in self.outcomes:
            return Undefined(self.undefined[self.rule])
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


def apply_voting_rules(
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
        rule: whose leader is tested by removals.
        time_limit: seconds for Kemeny's order, and again for each search of removals.
    """
    election = Election.from_scores(scores)
    complete = election.select_complete_tasks()
    outcomes, undefined, consensus = rank_by_rules(election, complete, deadline=working_time() + time_limit)
    if rule in undefined:
        pivotal_sets: Mapping[str, PivotalSet | str] = dict.fromkeys(("tasks", "models"), undefined[rule])
    elif rule in COMPLETE_TASK_RULES:
        is_complete = np.asarray(scores.present.all(axis=1))
        complete_tasks = tuple(task for task, keep in zip(tasks, is_complete, strict=True) if keep)
        pivotal_sets = _find_pivotal_sets(rule, complete, complete_tasks, models, time_limit)
    else:
        pivotal_sets = _find_pivotal_sets(rule, election, tasks, models, time_limit)
    redundant = redundant_rules(election)
    return VotingRules(
        models=models,
        tasks=tasks,
        n_complete=complete.n_tasks,
        rule=rule,
        outcomes=outcomes,
        undefined=undefined,
        duels=election.duels,
        consensus=consensus,
        agreements=compare_rules(outcomes, redundant),
        redundant=redundant,
        pivotal_sets=pivotal_sets,
    )


def _find_pivotal_sets(
    rule: VotingRule, election: Election, tasks: tuple[str, ...], models: tuple[str, ...], time_limit: float
) -> Mapping[str, PivotalSet | str]:
    """The fewest tasks, and the fewest models, without which the leaders no longer lead.

    Args:
        rule: it can be applied.
        election: complete for the rules that need it.
        tasks, models: names.
        time_limit: seconds for each search.
    """
    leaders = find_leaders(rule, election, deadline=working_time() + time_limit)
    if leaders is None:
        return dict.fromkeys(("tasks", "models"), "the leader is not known: the best order is not proven in time")
    pivotal_sets: dict[str, PivotalSet | str] = {}
    searches = (("tasks", tasks, find_pivotal_tasks), ("models", models, find_pivotal_models))
    for kind, names, search in searches:
        removal = search(rule, election, leaders, deadline=working_time() + time_limit)
        if removal.removed is None:
            pivotal_sets[kind] = PivotalSet(removed=None, lower_bound=removal.lower_bound)
            continue
        kept = np.setdiff1d(np.arange(len(names)), removal.removed)
        remaining = election.select_tasks(kept) if kind == "tasks" else election.select_models(kept)
        remaining_models = models if kind == "tasks" else tuple(models[model] for model in kept)
        new_leaders = find_leaders(rule, remaining, deadline=working_time() + time_limit)
        pivotal_sets[kind] = PivotalSet(
            removed=tuple(names[item] for item in removal.removed),
            lower_bound=removal.lower_bound,
            new_leaders=() if new_leaders is None else tuple(remaining_models[model] for model in new_leaders),
        )
    return pivotal_sets


def _pivotal_metrics(kind: str, pivotal_set: PivotalSet | str) -> Mapping[str, Metric]:
    """How many must go, how many at least, and whether that is the same number."""
    name = f"removal.{kind}"
    if isinstance(pivotal_set, str):
        return dict.fromkeys((name, f"{name}.at_least", f"{name}.exact"), Undefined(pivotal_set))
    bound = pivotal_set.lower_bound
    never = Undefined(f"no set of {kind} takes the first place away")
    unknown = never if bound is None else Undefined(f"no set found; at least {bound} would have to go")
    return {
        name: unknown if pivotal_set.removed is None else float(len(pivotal_set.removed)),
        f"{name}.at_least": never if bound is None else float(bound),
        f"{name}.exact": float(pivotal_set.is_exact),
    }
