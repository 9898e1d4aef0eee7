"""The same scores counted by several rules, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.kemeny import KemenyOrder
from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.numerics.elections.voting.rule_rankings import RuleAgreement
from analyses.numerics.elections.voting.rules import VOTING_RULES, VotingRule
from analyses.voting_rules.method import VotingRules
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
"""Names after which a list breaks off."""


def summarize(finding: VotingRules) -> Summary:
    """The result in one paragraph."""
    duels = finding.duels
    violations = {rule: int(finding.pareto_violations(rule).sum()) for rule in finding.outcomes}
    sentences = [
        _describe_leaders(finding),
        _describe_agreement(finding.independent_agreements),
        _describe_duels(duels, finding.models),
        _describe_kemeny_order(finding.consensus, int(duels.wins.sum())),
        _describe_pareto(violations, int(duels.pareto_dominates.sum())),
        *(_describe_pivotal_set(kind, pivotal, finding.rule) for kind, pivotal in finding.pivotal_sets.items()),
        "Nothing here is a test.",
    ]
    return Summary.from_sentences(sentence for sentence in sentences if sentence)


def _describe_leaders(finding: VotingRules) -> str:
    """Who leads, by which rules; the chosen rule comes first."""
    n_tasks = len(finding.tasks)
    field = f"{len(finding.models):,} models are ranked by {n_tasks} task{'s' * (n_tasks != 1)}."
    rules_by_leaders: dict[tuple[str, ...], list[str]] = {}
    for rule in finding.outcomes:
        rules_by_leaders.setdefault(finding.leaders(rule), []).append(RULE_LABELS[rule])
    if len(rules_by_leaders) == 1:
        [leaders] = rules_by_leaders
        return f"{field} All {len(finding.outcomes)} rules put {_format_leaders(leaders)} first."
    groups = sorted(
        rules_by_leaders.items(), key=lambda item: (RULE_LABELS[finding.rule] not in item[1], -len(item[1]))
    )
    clauses = [f"{_format_leaders(names)} by {join_names(rules, len(VOTING_RULES))}" for names, rules in groups]
    return f"{field} The first place goes to {'; '.join(clauses)}."


def _format_leaders(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{len(names)} models tied ({join_names(names, 3)})"


def _describe_agreement(agreements: Sequence[RuleAgreement]) -> str:
    """How far rules agree."""
    if not agreements:
        return ""
    least = min(agreements, key=lambda pair: pair.agreement)
    mean = float(np.mean([pair.agreement for pair in agreements]))
    return (
        f"Two rules put {mean:.1%} of the pairs of models in the same order on average, and {least.agreement:.1%} at "
        f"least ({RULE_LABELS[least.rule]} and {RULE_LABELS[least.other_rule]}); a pair that only one of them ties "
        "counts half."
    )


def _describe_duels(duels: PairwiseDuels, models: Sequence[str]) -> str:
    """Who wins every duel, or who is in the top cycle."""
    if duels.condorcet_winner is not None:
        return f"{models[duels.condorcet_winner]} wins its duel with every other model (Condorcet winner)."
    weak_winners = [models[model] for model in duels.weak_condorcet_winners]
    smith_set = [models[model] for model in duels.smith_set]
    sentence = "No model wins every duel"
    if weak_winners:
        sentence += f"; {join_names(weak_winners)} {'loses' if len(weak_winners) == 1 else 'lose'} none"
    if len(smith_set) == len(models):
        return f"{sentence}. Cycles and draws tie all {len(models):,} models together: no smaller set beats the rest."
    members = f"has {len(smith_set):,} models: {join_names(smith_set)}"
    return f"{sentence}. The smallest set whose members each beat everyone outside it {members}."


def _describe_kemeny_order(consensus: KemenyOrder, n_compared: int) -> str:
    """What Kemeny's order contradicts, and what is proven."""
    if not n_compared:
        return "Every task ties all models, so no order contradicts any."
    share = f"{consensus.distance:,} of {n_compared:,} comparisons ({consensus.distance / n_compared:.1%})"
    if not consensus.is_exact:
        return (
            f"The best order found contradicts {share}. It is not proven to be Kemeny's; proven is that no order "
            f"contradicts fewer than {consensus.lower_bound:,}."
        )
    uniqueness = {True: ", and no other order does as well", False: "; other orders do as well", None: ""}
    return f"Kemeny's order contradicts {share}, proven to be the fewest{uniqueness[consensus.is_unique]}."


def _describe_pareto(violations: Mapping[VotingRule, int], n_pairs: int) -> str:
    """Which rules do not put a model ahead of one that it matches or beats everywhere."""
    if not n_pairs:
        return "No model is nowhere worse and somewhere better than another."
    violated = {RULE_LABELS[rule]: count for rule, count in violations.items() if count}
    sentence = (
        f"In {n_pairs:,} pair{'s' * (n_pairs != 1)} one model is nowhere worse and somewhere better than the other"
    )
    if not violated:
        return f"{sentence}; every rule puts it ahead."
    clauses = [f"{label} in {count:,}" for label, count in sorted(violated.items(), key=lambda item: -item[1])]
    return f"{sentence}; it is tied or behind by {', '.join(clauses)}."


def _describe_pivotal_set(kind: str, pivotal_set: PivotalSet | str, rule: VotingRule) -> str:
    """On which tasks or models the first place depends."""
    if isinstance(pivotal_set, str):
        return f"What {kind} the first place by {RULE_LABELS[rule]} hangs on is not known: {pivotal_set}."
    by_rule, bound = f"by {RULE_LABELS[rule]}", pivotal_set.lower_bound
    if bound is None:
        removable = "other models" if kind == "models" else kind
        return f"No removal of {removable} leaves the first place {by_rule} to others alone."
    if pivotal_set.removed is None:
        return f"No set of {kind} was found without which others alone lead {by_rule}; {bound} or more must go."
    n_removed, new_leaders = len(pivotal_set.removed), pivotal_set.new_leaders
    lead = " others lead"
    if new_leaders:
        lead = f" {_format_leaders(new_leaders)} {'leads' if len(new_leaders) == 1 else 'lead'}"
    proven = "no smaller set does it" if pivotal_set.is_exact else f"at least {bound} must go"
    noun = kind.removesuffix("s") if n_removed == 1 else kind
    return f"Without {n_removed} {noun} ({join_names(pivotal_set.removed)}){lead} {by_rule}; {proven}."


def join_names(names: Sequence[str], max_names: int = MAX_NAMES) -> str:
    """Names in a sentence; long lists break off."""
    if len(names) > max_names:
        return f"{', '.join(names[:max_names])}, …"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
