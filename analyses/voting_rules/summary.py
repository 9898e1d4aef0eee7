"""The summary of voting rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.kemeny import KemenyOrder
from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.numerics.elections.voting.rule_rankings import RuleAgreement
from analyses.numerics.elections.voting.rules import VotingRule
from analyses.voting_rules.method import VotingRules
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary

RULE_LABELS: Mapping[VotingRule, str] = {
    "mean": "mean",
    "median": "median",
    "win-rate": "pairwise win rate",
    "win-rate-per-task": "win rate per task",
    "borda": "Borda",
    "dowdall": "Dowdall",
    "plurality": "plurality",
    "copeland": "Copeland",
    "minimax": "minimax",
    "kemeny": "Kemeny",
    "bradley-terry": "Bradley–Terry",
}
"""Rules in a sentence."""
MAX_NAMES = 6
"""Names that a list has before it is cut."""
MAX_GROUPS = 3
"""Groups of rules with the same leader that are listed."""
RulesByLeaders: TypeAlias = Sequence[tuple[tuple[str, ...], list[str]]]
"""Names of leaders with the rules that put them first; those of the chosen rule first."""


def summarize(finding: VotingRules) -> Summary:
    """Summarize whether voting rules agree on the first place and on the order."""
    leaders = _group_by_leaders(finding)
    removals = [_describe_pivotal_set(kind, pivotal, finding.rule) for kind, pivotal in finding.pivotal_sets.items()]
    evidence = [
        _describe_leaders(leaders),
        _describe_agreement(finding.independent_agreements),
        _describe_duels(finding.duels, finding.models),
        _describe_kemeny_order(finding.consensus, int(finding.duels.wins.sum())),
        " ".join(removals),
    ]
    violations = {rule: int(finding.pareto_violations(rule).sum()) for rule in finding.outcomes}
    caveats = [
        _describe_pareto(violations, int(finding.duels.pareto_dominates.sum())),
        "Descriptive: no number here is a significance test.",
    ]
    return Summary(
        _headline(finding, leaders), tuple(item for item in evidence if item), tuple(item for item in caveats if item)
    )


def _group_by_leaders(finding: VotingRules) -> RulesByLeaders:
    rules_by_leaders: dict[tuple[str, ...], list[str]] = {}
    for rule in finding.outcomes:
        rules_by_leaders.setdefault(finding.leaders(rule), []).append(RULE_LABELS[rule])
    return sorted(rules_by_leaders.items(), key=lambda item: (RULE_LABELS[finding.rule] not in item[1], -len(item[1])))


def _headline(finding: VotingRules, leaders: RulesByLeaders) -> str:
    (first, rules), *different = leaders
    n_rules = len(finding.outcomes)
    if not different:
        return f"All {n_rules} voting rules put {_format_leaders(first)} first."
    verb = "is" if len(first) == 1 else "are"
    rivals = list(dict.fromkeys(name for names, _ in different for name in names if name not in first))
    instead = f": {join_names(rivals)}" if rivals else ""
    n_different = n_rules - len(rules)
    return (
        f"{_format_leaders(first)} {verb} first by {RULE_LABELS[finding.rule]}, but {n_different} of {n_rules} voting "
        f"rules {'has' if n_different == 1 else 'have'} another first place{instead}."
    )


def _describe_leaders(leaders: RulesByLeaders) -> str:
    """Which rules put which models first; nothing if all agree."""
    if len(leaders) == 1:
        return ""
    groups = [f"{_format_leaders(names)} by {', '.join(rules)}" for names, rules in leaders]
    return f"First place: {join_names(groups, MAX_GROUPS, separator='; ', noun='more groups')}."


def _format_leaders(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{len(names)} tied models ({join_names(names)})"


def _describe_agreement(agreements: Sequence[RuleAgreement]) -> str:
    """How far rules agree."""
    if not agreements:
        return ""
    least = min(agreements, key=lambda pair: pair.agreement)
    mean = float(np.mean([pair.agreement for pair in agreements]))
    return (
        f"Two rules order {mean:.1%} of the pairs of models equally on average, and at least {least.agreement:.1%} "
        f"({RULE_LABELS[least.rule]} and {RULE_LABELS[least.other_rule]})."
    )


def _describe_duels(duels: PairwiseDuels, models: Sequence[str]) -> str:
    """The Condorcet winner, or the Smith set."""
    if duels.condorcet_winner is not None:
        return f"Condorcet winner: {models[duels.condorcet_winner]} wins its duel with every other model."
    weak_winners = [models[model] for model in duels.weak_condorcet_winners]
    smith_set = [models[model] for model in duels.smith_set]
    sentence = "No Condorcet winner"
    if weak_winners:
        sentence += f"; {join_names(weak_winners)} {'loses' if len(weak_winners) == 1 else 'lose'} no duel"
    if len(smith_set) == len(models):
        return f"{sentence}. The Smith set has all {len(models):,} models: cycles and draws connect them."
    return f"{sentence}. Smith set of {len(smith_set):,} models: {join_names(smith_set, MAX_NAMES)}."


def _describe_kemeny_order(consensus: KemenyOrder, n_compared: int) -> str:
    """How many comparisons Kemeny's order contradicts, and what is proven."""
    if not n_compared:
        return "Every task ties all models, so no order contradicts any."
    share = f"{consensus.distance:,} of {n_compared:,} comparisons ({consensus.distance / n_compared:.1%})"
    if not consensus.is_exact:
        return (
            f"Best order found: it contradicts {share}. Not proven to be Kemeny's: the lower bound is "
            f"{consensus.lower_bound:,}."
        )
    uniqueness = {True: "; every other order contradicts more", False: "; other orders contradict as few", None: ""}
    return f"Kemeny's order contradicts {share}, proven to be the fewest{uniqueness[consensus.is_unique]}."


def _describe_pareto(violations: Mapping[VotingRule, int], n_pairs: int) -> str:
    """Which rules violate Pareto dominance; nothing if none does."""
    violated = {RULE_LABELS[rule]: count for rule, count in violations.items() if count}
    if not violated:
        return ""
    rules = [f"{label} {count:,}" for label, count in sorted(violated.items(), key=lambda item: -item[1])]
    return (
        f"Pareto violations (a model that is never worse and somewhere better is not ranked ahead), of {n_pairs:,} "
        f"pair{'s' * (n_pairs != 1)}: {', '.join(rules)}."
    )


def _describe_pivotal_set(kind: str, pivotal_set: PivotalSet | str, rule: VotingRule) -> str:
    """Which tasks or models the first place depends on."""
    if isinstance(pivotal_set, str):
        return f"Removing {kind}: unknown ({pivotal_set})."
    by_rule, bound = f"by {RULE_LABELS[rule]}", pivotal_set.lower_bound
    if bound is None:
        removable = "other models" if kind == "models" else kind
        return f"No removal of {removable} changes the first place {by_rule}."
    if pivotal_set.removed is None:
        return f"Removing fewer than {bound} {kind} cannot change the first place {by_rule}."
    n_removed, new_leaders = len(pivotal_set.removed), pivotal_set.new_leaders
    noun = kind.removesuffix("s") if n_removed == 1 else kind
    lead = f"{_format_leaders(new_leaders)} first" if new_leaders else "others first"
    proven = "the fewest" if pivotal_set.is_exact else f"at least {bound} needed"
    removed = join_names(pivotal_set.removed)
    return f"Removing {n_removed} {noun} ({removed}) puts {lead} {by_rule} ({proven})."
