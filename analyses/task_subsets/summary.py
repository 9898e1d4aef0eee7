"""The summary of task subsets, and their warnings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.subsets.task_subsets import MIN_MODELS, HoldoutDistances, SubsetDistances
from analyses.task_subsets.method import TaskSubsets, quantiles
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary
from tracker.queries.task_matrix import TaskMatrix

RULES = {"mean": "mean of", "win-rate": "win rate on"}
"""How tasks are aggregated, and its name in a sentence."""
MAX_NAMES = 8
"""Names that a list has before it is cut."""


def summarize(finding: TaskSubsets) -> Summary:
    """Summarize how few tasks give nearly the same ranking."""
    names, is_proven = finding.smallest
    subsets = finding.sizes[min(len(names), len(finding.sizes)) - 1]
    evidence = [
        f"Ranking of {len(finding.models)} models by their {RULES[finding.rule]} {len(finding.tasks)} tasks; a pair "
        "changes if it is reversed, or tied in one ranking only.",
        f"Smallest set found: {join_names(names, MAX_NAMES)} ({'proven smallest' if is_proven else 'not proven'}).",
        _describe_best_and_median(subsets),
        _describe_greedy_order(finding),
    ]
    caveats = [
        "The best of many sets is chosen with all scores known: for other models, expect the median.",
        "Descriptive: no number here is a significance test.",
    ]
    if finding.holdout is not None:
        size = min(finding.greedy_size_within, len(finding.sizes))
        evidence.append(_describe_holdout(finding.holdout, size))
    return Summary(_headline(finding), tuple(evidence), tuple(caveats))


def _headline(finding: TaskSubsets) -> str:
    names, is_proven = finding.smallest
    size, n_tasks = len(names), len(finding.tasks)
    if size == n_tasks:
        some = "no" if is_proven else "no known"
        return (
            f"All {n_tasks} tasks are needed: {some} smaller set keeps {1 - finding.within:.0%} of the pairs in order."
        )
    enough = f"{size} of {n_tasks} tasks {'keeps' if size == 1 else 'keep'} at least {1 - finding.within:.0%}"
    fewest = "" if is_proven else "; fewer may be enough"
    return f"{enough} of the pairs of models in the order of all tasks{fewest}{_limit_to_chosen_models(finding)}."


def _limit_to_chosen_models(finding: TaskSubsets) -> str:
    """How many pairs of held-out models change, if more than allowed; empty otherwise."""
    if finding.holdout is None:
        return ""
    changed = finding.holdout.test[:, min(finding.greedy_size_within, len(finding.sizes)) - 1].mean()
    return f"; on held-out models, greedy tasks change {changed:.1%}" if changed > finding.within else ""


def _describe_best_and_median(subsets: SubsetDistances) -> str:
    """The best set of a size beside the median one."""
    sample, distances = subsets.sample, subsets.distances
    median_changed, median_moved = (quantiles(distances, measure)["median"] for measure in ("tau_paper", "mrc"))
    tasks = f"{sample.size} task{'s' * (sample.size != 1)}"
    drawn = f"{sample.n_examined:,} random set{'s' * (sample.n_examined != 1)} of {tasks} (of {sample.n_subsets:,})"
    examined = f"All {sample.n_subsets:,} sets of {tasks}" if sample.is_exhaustive else drawn
    return (
        f"{examined}: pairs changed {distances.tau_paper.min():.1%} at best, {median_changed:.1%} in the median; "
        f"largest move of a model {distances.mrc.min():.0%} and {median_moved:.0%} of the ranking."
    )


def _describe_greedy_order(finding: TaskSubsets) -> str:
    """The tasks that the greedy order starts with."""
    size = finding.greedy_size_within
    names = [finding.tasks[task] for task in finding.greedy.order[:size]]
    return (
        f"Greedy selection reaches {finding.within:.0%} with {size} task{'s' * (size != 1)}: "
        f"{join_names(names, MAX_NAMES, separator=' → ')}."
    )


def _describe_holdout(holdout: HoldoutDistances, size: int) -> str:
    """How the greedy selection does on held-out models."""
    selection, test, random = (
        distances[:, size - 1].mean() for distances in (holdout.selection, holdout.test, holdout.random)
    )
    n_splits = len(holdout.selection)
    verdict = "no better than random tasks" if test >= random else f"random tasks {random:.1%}"
    return (
        f"Held-out half of the models ({n_splits:,} split{'s' * (n_splits != 1)}): {size} greedy "
        f"{'task changes' if size == 1 else 'tasks change'} {test:.1%} of the pairs, {verdict}; {selection:.1%} on the "
        "selecting half."
    )


def collect_warnings(
    finding: TaskSubsets, loaded: TaskMatrix, kept: TaskMatrix, *, tied: NDArray[np.bool_]
) -> list[str]:
    """Warnings on the tasks behind the numbers.

    Args:
        finding: the result.
        loaded: every task and model with a score.
        kept: the tasks that count under the rule.
        tied: ``(n_tasks,)`` whether all models have the same score on a task.
    """
    messages = []
    excluded = [task for task in loaded.tasks if task not in set(kept.tasks)]
    if excluded:
        messages.append(
            f"Excluded, without a score of every model: {join_names(excluded)}. The full ranking uses the "
            f"{kept.n_tasks} other tasks."
        )
    if finding.rule == "win-rate" and not kept.is_complete:
        messages.append(
            "Scores are missing: two models are compared on the tasks of a set that both have. A model without a score "
            "in a set comes last."
        )
    if tied.any():
        names = [name for name, is_tied in zip(finding.tasks, tied, strict=True) if is_tied]
        messages.append(f"All models have the same score on {join_names(names)}: alone, it orders none.")
    if (finding.reference.ranks == finding.reference.ranks[0]).all():
        messages.append("All tasks together tie all models, so there is no order to reproduce.")
    if kept.n_models < MIN_MODELS:
        messages.append(f"No model is held out: this needs at least {MIN_MODELS} models.")
    return messages
