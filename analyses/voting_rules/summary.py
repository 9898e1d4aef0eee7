"""What several rules make of the same scores, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.voting.kemeny import KemenyOrder
from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.numerics.elections.voting.rule_rankings import RuleAgreement
from analyses.numerics.elections.voting.rules import COMPLETE_TASK_RULES, VOTING_RULES, VotingRule
from analyses.presentation.validation import ValidationErrors, check_time_limit

CALLED: Mapping[VotingRule, str] = {
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
LISTED = 6
"""Names after which a list breaks off."""


def problems(*, rule: str, time_limit: float) -> ValidationErrors:
    """Which options make no sense, and what to do about it."""
    return {
        f"No rule {rule!r}. Known: {', '.join(VOTING_RULES)}.": rule not in VOTING_RULES,
        **check_time_limit(time_limit),
    }


def warnings(
    absent: Mapping[VotingRule, str],
    rule: VotingRule,
    *,
    n_tasks: int,
    n_complete: int,
    same: AbstractSet[VotingRule],
    n_unshared: int,
    is_cut: bool,
) -> list[str]:
    """What the reader of the numbers should know of the rules behind them.

    Args:
        absent: rules left out, and why.
        rule: at hand.
        n_tasks, n_complete: all, and those with a score from every model.
        same: rules that give the ranking of another one by definition.
        n_unshared: pairs of models without a common task.
        is_cut: whether the table of pairs holds not all.
    """
    said = []
    if n_complete < n_tasks:
        whole = listed([CALLED[one] for one in VOTING_RULES if one in COMPLETE_TASK_RULES])
        pairs = listed(
            [CALLED[one] for one in VOTING_RULES if one not in COMPLETE_TASK_RULES and one != "win-rate-per-task"]
        )
        on = f"only the {n_complete} of {n_tasks} tasks" if n_complete else "tasks"
        said.append(
            f"Scores are missing. {whole} look at {on} that every model has; {pairs} compare two models on the tasks "
            "both have; the win rate per task is over the tasks a model has. So not all rules see the same scores, and "
            "some of their disagreement is that."
        )
    if n_unshared:
        said.append(f"{n_unshared:,} pairs of models have no task in common: their duels count as drawn.")
    for why in dict.fromkeys(absent.values()):
        without = listed([CALLED[one] for one in VOTING_RULES if absent.get(one) == why], len(VOTING_RULES))
        said.append(f"Left out: {without}: {why}.")
    if rule in absent:
        said.append(f"The rule at hand, {CALLED[rule]}, cannot be applied. Choose another with --rule.")
    names = [CALLED[one] for one in VOTING_RULES if one in same and one not in absent]
    if names:
        give, have, their = ("gives", "has", "its") if len(names) == 1 else ("give", "have", "their")
        said.append(
            f"By definition {listed(names)} {give} the ranking of Borda here, and {have} no say of {their} own in the "
            "mean agreement."
        )
    if is_cut:
        said.append("The table pareto holds the first 10,000 pairs; the metrics count all.")
    return said


def who_leads(rule: VotingRule, led: Mapping[VotingRule, Sequence[str]], *, n_tasks: int, n_models: int) -> str:
    """Who leads, by which rules; the rule at hand comes first."""
    field = f"{n_models:,} models are ranked by {n_tasks} task{'s' * (n_tasks != 1)}."
    by_leader: dict[tuple[str, ...], list[str]] = {}
    for one, names in led.items():
        by_leader.setdefault(tuple(names), []).append(CALLED[one])
    if len(by_leader) == 1:
        [(names, _)] = by_leader.items()
        return f"{field} All {len(led)} rules put {_first(names)} first."
    groups = sorted(by_leader.items(), key=lambda item: (CALLED[rule] not in item[1], -len(item[1])))
    each = "; ".join(f"{_first(names)} by {listed(rules, len(VOTING_RULES))}" for names, rules in groups)
    return f"{field} The first place goes to {each}."


def _first(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{len(names)} models tied ({listed(names, 3)})"


def agreement(found: Sequence[RuleAgreement]) -> str:
    """How far rules agree."""
    if not found:
        return ""
    least = min(found, key=lambda one: one.agreement)
    mean = float(np.mean([one.agreement for one in found]))
    return (
        f"Two rules put {mean:.1%} of the pairs of models in the same order on average, and {least.agreement:.1%} at "
        f"least ({CALLED[least.rule]} and {CALLED[least.other_rule]}); a pair that only one of them ties counts half."
    )


def duels(found: PairwiseDuels, models: Sequence[str]) -> str:
    """Who wins every duel, or who is in the top cycle."""
    if found.condorcet_winner is not None:
        return f"{models[found.condorcet_winner]} wins its duel with every other model (Condorcet winner)."
    weak, smith = found.weak_condorcet_winners, found.smith_set
    names = [models[model] for model in smith]
    head = "No model wins every duel"
    if len(weak):
        loses = "loses" if len(weak) == 1 else "lose"
        head += f"; {listed([models[model] for model in weak])} {loses} none"
    if len(smith) == len(models):
        return f"{head}. Cycles and draws tie all {len(models):,} models together: no smaller set beats the rest."
    inner = f"has {len(smith):,} models: {listed(names)}"
    return f"{head}. The smallest set whose members each beat everyone outside it {inner}."


def order(found: KemenyOrder, n_compared: int) -> str:
    """What Kemeny's order contradicts, and what is proven."""
    if not n_compared:
        return "Every task ties all models, so no order contradicts any."
    share = f"{found.distance:,} of {n_compared:,} comparisons ({found.distance / n_compared:.1%})"
    if not found.is_exact:
        return (
            f"The best order found contradicts {share}. It is not proven to be Kemeny's; proven is that no order "
            f"contradicts fewer than {found.lower_bound:,}."
        )
    others = {True: ", and no other order does as well", False: "; other orders do as well", None: ""}
    return f"Kemeny's order contradicts {share}, proven to be the fewest{others[found.is_unique]}."


def pareto(counts: Mapping[VotingRule, int], n_pairs: int) -> str:
    """Which rules do not put a model ahead of one that it matches or beats everywhere."""
    if not n_pairs:
        return "No model is nowhere worse and somewhere better than another."
    broken = {CALLED[rule]: count for rule, count in counts.items() if count}
    head = f"In {n_pairs:,} pair{'s' * (n_pairs != 1)} one model is nowhere worse and somewhere better than the other"
    if not broken:
        return f"{head}; every rule puts it ahead."
    each = ", ".join(f"{name} in {count:,}" for name, count in sorted(broken.items(), key=lambda item: -item[1]))
    return f"{head}; it is tied or behind by {each}."


def removal(what: str, known: PivotalSet | str, rule: VotingRule) -> str:
    """What the first place hangs on."""
    one = what[:-1]
    if isinstance(known, str):
        return f"What {what} the first place by {CALLED[rule]} hangs on is not known: {known}."
    by = f"by {CALLED[rule]}"
    if known.lower_bound is None:
        which = "other models" if what == "models" else what
        return f"No removal of {which} leaves the first place {by} to others alone."
    if known.removed is None:
        return f"No set of {what} was found without which others alone lead {by}; {known.lower_bound} or more must go."
    n = len(known.removed)
    new_leaders = (
        f" {_first(known.new_leaders)} {'leads' if len(known.new_leaders) == 1 else 'lead'}"
        if known.new_leaders
        else " others lead"
    )
    proven = "no smaller set does it" if known.is_exact else f"at least {known.lower_bound} must go"
    kind = one if n == 1 else what
    return f"Without {n} {kind} ({listed(known.removed)}){new_leaders} {by}; {proven}."


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """Names in a sentence; long lists break off."""
    if len(names) > most:
        return f"{', '.join(names[:most])}, …"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
