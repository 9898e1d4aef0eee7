"""Rankings by few tasks, in plain words: summary and warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.subsets.task_subsets import MIN_MODELS, HoldoutDistances, SubsetDistances
from analyses.task_subsets.method import TaskSubsets, quantiles
from tracker.queries.findings.summary import Summary
from tracker.queries.task_matrix import TaskMatrix

RULES = {"mean": "mean of", "win-rate": "win rate on"}
"""How tasks are aggregated, and its name in a sentence."""
MAX_NAMES = 8
"""Names after which a list breaks off."""


def summarize(finding: TaskSubsets) -> Summary:
    """The result in one paragraph."""
    smallest, _ = finding.smallest
    subsets = finding.sizes[min(len(smallest), len(finding.sizes)) - 1]
    sentences = [_describe_smallest(finding), _describe_best_and_median(subsets), _describe_greedy_order(finding)]
    if finding.holdout is not None:
        size = min(finding.greedy_size_within, len(finding.sizes))
        sentences.append(_describe_holdout(finding.holdout, size))
    return Summary.from_sentences([*sentences, "Nothing here is a test."])


def _describe_smallest(finding: TaskSubsets) -> str:
    """How few tasks come near the ranking."""
    names, is_proven = finding.smallest
    size, n_tasks = len(names), len(finding.tasks)
    ranked = f"{len(finding.models)} models are ranked by their {RULES[finding.rule]} {n_tasks} tasks"
    near = (
        f"no more than {finding.within:.0%} of the pairs of models changed (reversed, or tied in one of the two "
        "rankings only)"
    )
    if size == n_tasks:
        return f"{ranked}; {'no fewer are' if is_proven else 'no fewer were seen to be'} enough to leave {near}."
    bound = f"{size} of them can be" if is_proven else f"at most {size} of them are"
    return f"{ranked}; {bound} enough to leave {near}: {join_names(names)}."


def _describe_best_and_median(subsets: SubsetDistances) -> str:
    """The nearest set of a size beside the median one."""
    sample, distances = subsets.sample, subsets.distances
    median_changed, median_moved = (quantiles(distances, measure)["median"] for measure in ("tau_paper", "mrc"))
    tasks = f"{sample.size} task{'s' * (sample.size != 1)}"
    drawn = f"{sample.n_examined:,} random set{'s' * (sample.n_examined != 1)}"
    examined = f"all {sample.n_subsets:,} sets" if sample.is_exhaustive else drawn
    total = "" if sample.is_exhaustive else f" (there are {sample.n_subsets:,})"
    return (
        f"Of {examined} of {tasks}{total}, the best changes {distances.tau_paper.min():.1%} of the pairs and the "
        f"median {median_changed:.1%}; the largest move of a model is {distances.mrc.min():.0%} of the ranking at "
        f"best and {median_moved:.0%} in the median. The best of many is picked with the answer in sight: without it, "
        "expect the median."
    )


def _describe_greedy_order(finding: TaskSubsets) -> str:
    """Which tasks the greedy order begins with."""
    size = finding.greedy_size_within
    names = [finding.tasks[task] for task in finding.greedy.order[:size]]
    return (
        f"Added one by one, each time the task that helps most, {finding.within:.0%} is reached with {size}: "
        f"{join_names(names, ' → ')}."
    )


def _describe_holdout(holdout: HoldoutDistances, size: int) -> str:
    """How the greedy choice does on models that had no say in it."""
    selection, test, random = (
        distances[:, size - 1].mean() for distances in (holdout.selection, holdout.test, holdout.random)
    )
    tasks = "a task chosen so changes" if size == 1 else f"{size} tasks chosen so change"
    n_splits = len(holdout.selection)
    sentence = (
        f"On a random half of the models, {tasks} {selection:.1%} of the pairs there and {test:.1%} of those of "
        f"the other half, where {'a random one changes' if size == 1 else 'random ones change'} {random:.1%} (means "
        f"of {n_splits:,} split{'s' * (n_splits != 1)})"
    )
    if test >= random:
        return f"{sentence}: on models that had no say in it, the choice is no better than a random one."
    return f"{sentence}: the first difference is selection, what remains to the third is the worth of the choice."


def collect_warnings(
    finding: TaskSubsets, loaded: TaskMatrix, kept: TaskMatrix, *, tied: NDArray[np.bool_], max_size: int
) -> list[str]:
    """Warnings on the tasks behind the numbers.

    Args:
        finding: the result.
        loaded: every task and model with a score.
        kept: the tasks that count under the rule.
        tied: ``(n_tasks,)`` whether all models have the same score on a task.
        max_size: largest size that was chosen.
    """
    messages = []
    excluded = [task for task in loaded.tasks if task not in set(kept.tasks)]
    if excluded:
        messages.append(
            f"Left out, lacking a score of some model: {join_names(excluded)}. The ranking by all tasks is that by the "
            f"{kept.n_tasks} others."
        )
    if finding.rule == "win-rate" and not kept.is_complete:
        messages.append(
            "Scores are missing: two models are compared over the tasks of a set that both have; where they share "
            "none, neither wins, so a model without a score in a set comes last."
        )
    if tied.any():
        names = [name for name, is_tied in zip(finding.tasks, tied, strict=True) if is_tied]
        messages.append(f"All models have the same score on {join_names(names)}: alone, it orders nobody.")
    if (finding.reference.ranks == finding.reference.ranks[0]).all():
        messages.append("All tasks together tie all models, so there is no order that a few tasks could give.")
    if max_size >= kept.n_tasks:
        messages.append(f"Sets of all {kept.n_tasks} tasks give the ranking itself; sizes end at {kept.n_tasks - 1}.")
    if kept.n_models < MIN_MODELS:
        messages.append(f"No model is held out: two halves need at least {MIN_MODELS} models.")
    return messages


def join_names(names: Sequence[str], separator: str = ", ") -> str:
    """Names in a sentence; long lists break off."""
    return separator.join(names[:MAX_NAMES]) + f"{separator}…" * (len(names) > MAX_NAMES)
