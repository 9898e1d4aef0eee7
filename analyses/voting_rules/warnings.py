"""Warnings about missing scores and about undefined and redundant rules."""

from __future__ import annotations

import numpy as np

from analyses.numerics.elections.voting.rules import COMPLETE_TASK_RULES, VOTING_RULES
from analyses.voting_rules.method import VotingRules
from analyses.voting_rules.summary import MAX_NAMES, RULE_LABELS
from tracker.name_lists import join_names


def collect_warnings(finding: VotingRules, *, is_truncated: bool) -> list[str]:
    """Warnings on missing scores, undefined and redundant rules.

    Args:
        finding: the result.
        is_truncated: whether the table of pairs holds not all.
    """
    undefined, n_tasks, n_complete = finding.undefined, len(finding.tasks), finding.n_complete
    messages = []
    if n_complete < n_tasks:
        complete_rules = join_names(
            [RULE_LABELS[rule] for rule in VOTING_RULES if rule in COMPLETE_TASK_RULES], MAX_NAMES
        )
        pairwise_rules = [rule for rule in VOTING_RULES if rule not in COMPLETE_TASK_RULES]
        pairwise = join_names([RULE_LABELS[rule] for rule in pairwise_rules if rule != "win-rate-per-task"], MAX_NAMES)
        complete_tasks = f"only the {n_complete} of {n_tasks} tasks" if n_complete else "tasks"
        messages.append(
            f"Scores are missing, so rules use different scores, which is part of their disagreement. {complete_rules} "
            f"use {complete_tasks} that every model has. {pairwise} compare two models on the tasks that both have."
        )
    n_unshared = int(np.triu(finding.duels.shared == 0, 1).sum())
    if n_unshared:
        messages.append(f"{n_unshared:,} pairs of models have no task in common: their duels are draws.")
    for reason in dict.fromkeys(undefined.values()):
        labels = [RULE_LABELS[rule] for rule in VOTING_RULES if undefined.get(rule) == reason]
        messages.append(f"Rules left out: {join_names(labels, len(VOTING_RULES))} ({reason}).")
    if finding.rule in undefined:
        messages.append(f"The rule {RULE_LABELS[finding.rule]} cannot be applied. Choose another one with --rule.")
    redundant = [RULE_LABELS[rule] for rule in VOTING_RULES if rule in finding.redundant and rule not in undefined]
    if redundant:
        names, verb = " and ".join(redundant), "equals" if len(redundant) == 1 else "equal"
        messages.append(
            f"{names[0].upper()}{names[1:]} {verb} Borda here by definition. The mean agreement excludes them."
        )
    if is_truncated:
        messages.append("The table `pareto` has the first 10,000 pairs; the metrics count all.")
    return messages
