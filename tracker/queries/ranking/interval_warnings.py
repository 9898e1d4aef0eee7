"""Warnings about clustered errors and rank intervals, shared by the leaderboard and the analyses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracker.name_lists import join_names
from tracker.queries.clusters import NONE
from tracker.statistics.grouping import Grouping
from tracker.statistics.rank_intervals import RankIntervals

MIN_CLUSTERS = 10
"""Below this number of clusters, a clustered error is itself imprecise."""
MAX_NAMES = 3
"""Number of names that a message lists."""


def explain_unclustered(groups: Grouping, by: str) -> str:
    """Return why errors are not clustered; '' if they are."""
    return "clusters are disabled" if by == NONE else groups.problem


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
    if not groups.is_even:
        warnings.append(
            f"Clusters ({by}) differ greatly in size; the largest has {groups.sizes.max() / groups.sizes.sum():.0%} "
            f"of the prompts. Errors of differences are therefore CR2 with {groups.degrees:.1f} degrees of freedom. "
            f"CR1 with {groups.n_groups - 1} would be too small."
        )
    if groups.n_groups < MIN_CLUSTERS:
        warnings.append(
            f"There are only {groups.n_groups} clusters ({by}): errors clustered by them are imprecise, and "
            "intervals wide. `--cluster none` treats prompts as independent."
        )
    return warnings


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
    i, j = np.nonzero(np.triu(is_flat, 1))
    n_equal = int((ranks.pairs.difference[i, j] == 0).sum())
    if n_equal:
        names = [f"{models[a]} = {models[b]}" for a, b in zip(i.tolist(), j.tolist(), strict=True)]
        warnings.append(f"{n_equal} pairs of models do not differ beyond rounding: {join_names(names, MAX_NAMES)}.")
    if len(i) > n_equal:
        units = "clusters" if ranks.is_clustered else "prompts"
        warnings.append(
            f"{len(i) - n_equal} pairs differ by the same amount on all {units}. Their p-value is that of the "
            f"sign-flip test, 2 / 2^({units})."
        )
    return warnings
