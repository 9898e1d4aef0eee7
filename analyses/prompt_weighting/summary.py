"""The summary of prompt weighting, and warnings about its clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyses.numerics.weighting.cluster_reweighting import BY_CLUSTER, MEDOIDS, ClusterSchemes
from analyses.numerics.weighting.reweighting import Reweighting
from analyses.presentation.name_lists import list_leaders
from analyses.prompt_weighting.method import PromptWeighting
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary

MIN_REPRESENTATIVES = 30
"""With fewer representatives than this, the summary warns that they are too few for a ranking."""


def summarize(finding: PromptWeighting, models: Sequence[str]) -> Summary:
    """Summarize how other weights change the ranking, with the clusters of the first seed.

    Args:
        finding: the result.
        models: names of the models, in the order of the columns.
    """
    schemes = {name: scheme for name, scheme in finding.schemes.items() if name != MEDOIDS}
    return Summary(
        _headline(schemes, models),
        (*_list_evidence(finding, schemes), _describe_data(finding)),
        ("Descriptive: it shows what other weights would do, not which weights are right.",),
    )


def _headline(schemes: Mapping[str, Reweighting], models: Sequence[str]) -> str:
    first = next(iter(schemes.values()))
    leaders = list_leaders(first.ranks + first.changes, models)
    largest = max(scheme.largest_rank_change for scheme in schemes.values())
    changed = [name for name, scheme in schemes.items() if scheme.leader_changes]
    if not largest:
        return "The ranking does not depend on the weights of the prompts: no scheme changes a rank."
    if changed:
        verb = "loses" if len(leaders) == 1 else "lose"
        return (
            f"{join_names(leaders)} {verb} first place with other weights ({join_names(changed)}); "
            f"ranks change by up to {_format_places(largest)}."
        )
    verb = "stays" if len(leaders) == 1 else "stay"
    return (
        f"{join_names(leaders)} {verb} first with all other weights; ranks further down change by up to "
        f"{_format_places(largest)}."
    )


def _list_evidence(finding: PromptWeighting, schemes: Mapping[str, Reweighting]) -> Iterator[str]:
    ranks = ", ".join(f"{name} {_format_places(scheme.largest_rank_change)}" for name, scheme in schemes.items())
    yield f"Largest rank change: {ranks}."
    means = ", ".join(f"{name} {scheme.largest_shift:.3g}" for name, scheme in schemes.items())
    effective = ", ".join(f"{name} {scheme.n_effective:,.0f}" for name, scheme in schemes.items())
    yield f"Largest change of a mean: {means}. Effective number of prompts: {effective}."
    yield _describe_representatives(finding.schemes[MEDOIDS])
    if len(finding.by_seed) > 1:
        yield _describe_seeds(finding.by_seed)


def _describe_data(finding: PromptWeighting) -> str:
    """Describe the prompts, the models and the clusters."""
    n_clusters = finding.reported.clustering.n_clusters
    zero = f" and {finding.n_zero:,} prompts that no model got right" if finding.n_zero else ""
    return (
        f"Data: {finding.n_prompts:,} prompts and {finding.n_models} models. The weights come from {n_clusters} "
        f"cluster{'s' * (n_clusters != 1)}{zero}."
    )


def _describe_representatives(alone: Reweighting) -> str:
    """Describe the ranking by the representatives of the clusters alone."""
    n = f"{alone.n_weighted} representative{'s' * (alone.n_weighted != 1)}"
    leader = " and the leader changes" if alone.leader_changes else ""
    few = "; so few prompts cannot support a ranking" if alone.n_weighted < MIN_REPRESENTATIVES else ""
    return (
        f"With the {n} alone (medoids), ranks change by up to {_format_places(alone.largest_rank_change)}{leader}{few}."
    )


def _describe_seeds(by_seed: Sequence[ClusterSchemes]) -> str:
    """Describe how much the clusters and the rank changes depend on the seed."""
    changes = {name: [clusters.schemes[name].largest_rank_change for clusters in by_seed] for name in BY_CLUSTER}
    ranges = ", ".join(f"{name} {_format_range(values)}" for name, values in changes.items())
    n_clusters = _format_range([clusters.clustering.n_clusters for clusters in by_seed])
    return f"Over {len(by_seed)} seeds: {n_clusters} clusters; largest rank change {ranges}."


def _format_range(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _format_places(n: float) -> str:
    return f"{n:g} place{'s' * (n != 1)}"


def list_cap_warnings(finding: PromptWeighting, max_clusters: int) -> list[str]:
    """Warn if the number of clusters reaches the largest that is tried."""
    if all(clusters.clustering.n_clusters < max_clusters for clusters in finding.by_seed):
        return []
    return [f"The number of clusters reaches max_clusters ({max_clusters}). A larger limit may find more clusters."]
