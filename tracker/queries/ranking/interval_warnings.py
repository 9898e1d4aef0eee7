"""Warnings about clustered errors and rank intervals, shared by the leaderboard and the analyses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracker.name_lists import join_names
from tracker.queries.clusters import NONE, TASK
from tracker.statistics.grouping import Grouping
from tracker.statistics.intervals.task_spread import MIN_CLUSTERS
from tracker.statistics.rank_intervals import RankIntervals

MAX_NAMES = 3
"""Number of names that a message lists."""


def explain_unclustered(groups: Grouping, by: str) -> str:
    """Return why errors are not clustered; '' if they are."""
    return "prompts are not in clusters" if by == NONE else groups.problem


def list_clustering_warnings(groups: Grouping, by: str) -> list[str]:
    """Return warnings about the clusters.

    Args:
        groups: clusters of the prompts.
        by: field that defines the clusters.
    """
    if by == NONE:
        return []
    if groups.problem:
        return [f"Errors are not clustered by {by}: {groups.problem}. Prompts are treated as independent."]
    warnings = []
    if groups.n_alone:
        warnings.append(
            f"{groups.n_alone:,} of {len(groups.codes):,} prompts have no {by}; each of them is a separate cluster."
        )
    if groups.n_divided:
        warnings.append(
            f"{groups.n_divided:,} clusters ({by}) have prompts in several tasks, where they are separate clusters. "
            "`--task-effects none` keeps them together."
        )
    if groups.n_effective < MIN_CLUSTERS:
        warnings.append(_describe_few(groups, by))
    return warnings


def _describe_few(groups: Grouping, by: str) -> str:
    """Return a warning about few effective clusters."""
    number = f"{groups.n_groups} clusters ({by})"
    if groups.n_effective < groups.n_groups - 0.5:
        largest = groups.sizes.max() / groups.sizes.sum()
        number += f" weigh as {groups.n_effective:.1f} of equal size (the largest has {largest:.0%} of the prompts)"
        text = f"The {number}: errors clustered by them are imprecise, and intervals wide."
    else:
        text = f"There are only {number}: errors clustered by them are imprecise, and intervals wide."
    return f"{text} `--task-effects fixed` is about these tasks alone." if by == TASK else text


def list_rank_interval_warnings(ranks: RankIntervals, models: Sequence[str], groups: Grouping, by: str) -> list[str]:
    """Return warnings about rank intervals.

    Args:
        ranks: the rank intervals.
        models: name of each column.
        groups: clusters of the prompts.
        by: field that defines the clusters.
    """
    warnings = list_clustering_warnings(groups, by)
    is_flat = (ranks.pairs.stderr if not ranks.is_clustered else ranks.pairs.stderr_clustered) == 0
    is_equal = is_flat & (ranks.pairs.difference == 0)
    i, j = np.nonzero(np.triu(is_equal, 1))
    if len(i):
        names = [f"{models[a]} = {models[b]}" for a, b in zip(i.tolist(), j.tolist(), strict=True)]
        pairs = f"{len(i)} pairs of models do" if len(i) > 1 else "1 pair of models does"
        warnings.append(f"{pairs} not differ beyond rounding: {join_names(names, MAX_NAMES)}.")
    if n_constant := int(np.triu(is_flat & ~is_equal, 1).sum()):
        units = "clusters" if ranks.is_clustered and by != NONE else "prompts"
        pairs = f"{n_constant} pairs differ" if n_constant > 1 else "1 pair differs"
        warnings.append(
            f"{pairs} by the same amount on all {units}. The p-value is that of the sign-flip test, 2 / 2^({units})."
        )
    return warnings
