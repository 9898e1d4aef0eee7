"""What is said of clusters of prompts, wherever errors are clustered."""

from __future__ import annotations

from tracker.statistics.grouping import Grouping

FEW_CLUSTERS = 10
"""Below so many, an error clustered by them is itself hardly known."""
NONE = "none"
"""The field that makes no clusters."""


def unclustered_reason(groups: Grouping, by: str) -> str:
    """Why errors are not clustered; '' where they are."""
    return "no clusters were asked for" if by == NONE else groups.problem


def clustering_warnings(groups: Grouping, by: str) -> list[str]:
    """What is to be said of the clusters, if anything.

    Args:
        groups: of the prompts at hand.
        by: what makes a cluster.
    """
    if by == NONE:
        return []
    if groups.problem:
        return [f"Errors are not clustered by {by}: {groups.problem}. Prompts are taken as independent."]
    said = []
    if groups.n_alone:
        said.append(f"{groups.n_alone:,} of {len(groups.codes):,} prompts name no {by}; each is a cluster of its own.")
    if not groups.is_even:
        said.append(
            f"Clusters ({by}) are of very unequal sizes, the largest {groups.sizes.max() / groups.sizes.sum():.0%} of "
            f"the prompts: errors of differences are CR2 with {groups.degrees:.1f} degrees of freedom, not CR1 with "
            f"{groups.n_groups - 1}, by which too much would look certain."
        )
    if groups.n_groups < FEW_CLUSTERS:
        said.append(
            f"There are only {groups.n_groups} clusters ({by}): errors clustered by them are rough, and intervals "
            "wide. `--cluster none` takes prompts as independent."
        )
    return said
