"""Lines of voting rules in the verdict on a benchmark: other rules, and other tasks."""

from __future__ import annotations

from collections.abc import Sequence

from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.voting_rules.method import VotingRules
from analyses.voting_rules.summary import RULE_LABELS
from tracker.name_lists import join_names
from tracker.recording.finding import VerdictLine, compare_leaders

MAX_NAMES = 3


def describe_verdict(finding: VotingRules, expected: Sequence[str]) -> list[VerdictLine]:
    """Return which voting rules, and which removed tasks, change the first place of the leaderboard.

    Args:
        finding: the result.
        expected: models that the leaderboard ranks first.
    """
    if finding.rule not in finding.outcomes:
        return []
    lines = [_compare_rules(finding, expected)]
    if len(finding.tasks) > 1:
        lines.append(_vary_tasks(finding, expected))
    return lines


def _compare_rules(finding: VotingRules, expected: Sequence[str]) -> VerdictLine:
    leaders = {rule: tuple(finding.leaders(rule)) for rule in finding.outcomes}
    changes = {rule: compare_leaders(names, expected) for rule, names in leaders.items()}
    different = [rule for rule, change in changes.items() if change != "no"]
    n_rules, topic = len(leaders), "voting rule"
    if not different:
        text = f"All {n_rules} voting rules over the tasks have the same first place."
        return VerdictLine(topic=topic, text=text, leader_changes="no")
    cases = [f"{join_names(leaders[rule], MAX_NAMES)} by {RULE_LABELS[rule]}" for rule in different]
    verb = "has" if len(different) == 1 else "have"
    text = f"{len(different)} of {n_rules} voting rules {verb} another first place: {join_names(cases, MAX_NAMES)}."
    if len({frozenset(names) for names in leaders.values()}) == 1:
        text = f"All {n_rules} voting rules over the tasks put {join_names(leaders[finding.rule], MAX_NAMES)} first."
    return VerdictLine(topic=topic, text=text, leader_changes="yes" if "yes" in changes.values() else "maybe")


def _vary_tasks(finding: VotingRules, expected: Sequence[str]) -> VerdictLine:
    """Describe the fewest tasks to remove, if the rule has the first place of the leaderboard."""
    leaders = finding.leaders(finding.rule)
    change = compare_leaders(leaders, expected)
    if change == "no":
        return _remove_tasks(finding.pivotal_sets["tasks"], len(finding.tasks))
    label, verb = RULE_LABELS[finding.rule], "is" if len(leaders) == 1 else "are"
    text = f"By {label} over the tasks {join_names(leaders, MAX_NAMES)} {verb} first, even with all tasks."
    return VerdictLine(topic="tasks", text=text, leader_changes=change)


def _remove_tasks(pivotal: PivotalSet | str, n_tasks: int) -> VerdictLine:
    """Describe the fewest tasks to remove; more than half of them do not count as a change of the first place."""
    topic = "tasks"
    if isinstance(pivotal, str):
        text = f"Whether removing tasks changes the first place is not known: {pivotal}."
        return VerdictLine(topic=topic, text=text, leader_changes="unknown")
    if pivotal.lower_bound is None:
        text = f"No removal of tasks, of {n_tasks}, changes the first place."
        return VerdictLine(topic=topic, text=text, leader_changes="no")
    if pivotal.removed is None:
        text = f"Removing fewer than {pivotal.lower_bound} of {n_tasks} tasks does not change the first place."
        return VerdictLine(topic=topic, text=text, leader_changes="unknown")
    n_removed, removed = len(pivotal.removed), join_names(pivotal.removed, MAX_NAMES)
    change = f"{join_names(pivotal.new_leaders, MAX_NAMES)} is first" if pivotal.new_leaders else "the first changes"
    fewer = "" if pivotal.is_exact else "; fewer may be enough"
    is_few = 2 * n_removed <= n_tasks
    text = f"{'Without' if is_few else 'Only without'} {n_removed} of {n_tasks} tasks ({removed}) {change}{fewer}."
    return VerdictLine(topic=topic, text=text, leader_changes="yes" if is_few else "no")
