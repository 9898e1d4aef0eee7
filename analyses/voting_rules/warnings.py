"""What the reader should know of the rules behind the numbers."""

from __future__ import annotations

import numpy as np

from analyses.numerics.elections.voting.rules import COMPLETE_TASK_RULES, VOTING_RULES
from analyses.voting_rules.method import VotingRules
from analyses.voting_rules.summary import RULE_LABELS, join_names


def collect_warnings(finding: VotingRules, *, is_truncated: bool) -> list[str]:
    """Warnings on missing scores, undefined and redundant rules.

    Args:
        finding: the result.
        is_truncated: whether the table of pairs holds not all.
    """
    undefined, n_tasks, n_complete = finding.undefined, len(finding.tasks), finding.n_complete
    messages = []
    if n_complete < n_tasks:
        complete_rules = join_names([RULE_LABELS[rule] for rule in VOTING_RULES if rule in COMPLETE_TASK_RULES])
        pairwise_rules = [rule for rule in VOTING_RULES if rule not in COMPLETE_TASK_RULES]
        pairwise = join_names([RULE_LABELS[rule] for rule in pairwise_rules if rule != "win-rate-per-task"])
        complete_tasks = f"only the {n_complete} of {n_tasks} tasks" if n_complete else "tasks"
        messages.append(
            f"Scores are missing. {complete_rules} look at {complete_tasks} that every model has; {pairwise} compare "
            "two models on the tasks both have; the win rate per task is over the tasks a model has. So not all rules "
            "see the same scores, and some of their disagreement is that."
        )
    n_unshared = int(np.triu(finding.duels.shared == 0, 1).sum())
    if n_unshared:
        messages.append(f"{n_unshared:,} pairs of models have no task in common: their duels count as drawn.")
    for reason in dict.fromkeys(undefined.values()):
        labels = [RULE_LABELS[rule] for rule in VOTING_RULES if undefined.get(rule) == reason]
        messages.append(f"Left out: {join_names(labels, len(VOTING_RULES))}: {reason}.")
    if finding.rule in undefined:
        messages.append(
            f"The rule at hand, {RULE_LABELS[finding.rule]}, cannot be applied. Choose another with --rule."
        )
    redundant = [RULE_LABELS[rule] for rule in VOTING_RULES if rule in finding.redundant and rule not in undefined]
    if redundant:
        give, have, their = ("gives", "has", "its") if len(redundant) == 1 else ("give", "have", "their")
        messages.append(
            f"By definition {join_names(redundant)} {give} the ranking of Borda here, and {have} no say of {their} own "
            "in the mean agreement."
        )
    if is_truncated:
        messages.append("The table pareto holds the first 10,000 pairs; the metrics count all.")
    return messages
