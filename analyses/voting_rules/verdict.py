"""Lines of voting rules in the verdict on a benchmark: other rules, and other tasks."""

from __future__ import annotations

from analyses.numerics.elections.voting.removals import PivotalSet
from analyses.voting_rules.method import VotingRules
from analyses.voting_rules.summary import RULE_LABELS
from tracker.name_lists import join_names
from tracker.recording.finding import VerdictLine

MAX_NAMES = 3


def describe_verdict(finding: VotingRules) -> list[VerdictLine]:
    """Return which voting rules, and which removed tasks, change the first place by the chosen rule."""
    if finding.rule not in finding.outcomes:
        return []
    lines = [_compare_rules(finding)]
    if len(finding.tasks) > 1:
        lines.append(_remove_tasks(finding.pivotal_sets["tasks"], len(finding.tasks)))
    return lines


def _compare_rules(finding: VotingRules) -> VerdictLine:
    leaders = set(finding.leaders(finding.rule))
    different = [rule for rule in finding.outcomes if set(finding.leaders(rule)) != leaders]
    n_rules, topic = len(finding.outcomes), "voting rule"
    if not different:
        text = f"All {n_rules} voting rules over the tasks have the same first place."
        return VerdictLine(topic=topic, text=text, leader_changes="no")
    cases = [f"{join_names(finding.leaders(rule), MAX_NAMES)} by {RULE_LABELS[rule]}" for rule in different]
    text = f"{len(different)} of {n_rules} voting rules have another first place: {join_names(cases, MAX_NAMES)}."
    return VerdictLine(topic=topic, text=text, leader_changes="yes")


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
