"""Warnings beside clustered errors and rank intervals, the same on the leaderboard and in analyses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracker.name_lists import join_names
from tracker.queries.clusters import NONE
from tracker.statistics.grouping import Grouping
from tracker.statistics.rank_intervals import RankIntervals

MIN_CLUSTERS = 10
"""Below so many, an error clustered by them is itself hardly known."""
MAX_NAMES = 3
"""Names that a sentence lists before it counts the rest."""


def explain_unclustered(groups: Grouping, by: str) -> str:
    """Why errors are not clustered; '' where they are."""
    return "no clusters were asked for" if by == NONE else groups.problem


def list_clustering_warnings(groups: Grouping, by: str) -> list[str]:
    """What is to be said of the clusters, if anything.

    Args:
        groups: of the prompts at hand.
        by: what makes a cluster.
    """
    if by == NONE:
        return []
    if groups.problem:
        return [f"Errors are not clustered by {by}: {groups.problem}. Prompts are taken as independent."]
    warnings = []
    if groups.n_alone:
        warnings.append(
            f"{groups.n_alone:,} of {len(groups.codes):,} prompts name no {by}; each is a cluster of its own."
        )
    if not groups.is_even:
        warnings.append(
            f"Clusters ({by}) are of very unequal sizes, the largest {groups.sizes.max() / groups.sizes.sum():.0%} of "
            f"the prompts: errors of differences are CR2 with {groups.degrees:.1f} degrees of freedom, not CR1 with "
            f"{groups.n_groups - 1}, by which too much would look certain."
        )
    if groups.n_groups < MIN_CLUSTERS:
        warnings.append(
            f"There are only {groups.n_groups} clusters ({by}): errors clustered by them are rough, and intervals "
            "wide. `--cluster none` takes prompts as independent."
        )
    return warnings


def list_rank_interval_warnings(ranks: RankIntervals, models: Sequence[str], groups: Grouping, by: str) -> list[str]:
    """What the reader of rank intervals should know.

    Args:
        ranks: as computed.
        models: name of each column.
        groups: clusters of the prompts.
        by: what makes a cluster.
    """
    warnings = list_clustering_warnings(groups, by)
    if ranks.is_clustered and ranks.correction == "CR2":
        warnings.append("Intervals of single means are CR1, as on the leaderboard, and too narrow for such clusters.")
    is_flat = (ranks.pairs.stderr if not ranks.is_clustered else ranks.pairs.stderr_clustered) == 0
    i, j = np.nonzero(np.triu(is_flat, 1))
    n_equal = int((ranks.pairs.difference[i, j] == 0).sum())
    if n_equal:
        names = [f"{models[a]} = {models[b]}" for a, b in zip(i.tolist(), j.tolist(), strict=True)]
        warnings.append(
            f"{n_equal} pairs of models do not differ, or not beyond rounding: {join_names(names, MAX_NAMES)}."
        )
    if len(i) > n_equal:
        units = "clusters" if ranks.is_clustered else "prompts"
        warnings.append(
            f"{len(i) - n_equal} pairs differ by the same amount on all {units}; their p-value is that of flipped "
            f"signs, 2 / 2^({units})."
        )
    return warnings
