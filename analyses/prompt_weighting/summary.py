"""The summary of prompt weighting, and warnings about its clusters."""

from __future__ import annotations

from collections.abc import Sequence

from analyses.numerics.weighting.cluster_reweighting import BY_CLUSTER, MEDOIDS, ClusterSchemes
from analyses.numerics.weighting.reweighting import Reweighting
from analyses.prompt_weighting.method import PromptWeighting
from tracker.queries.findings.summary import Summary

MIN_REPRESENTATIVES = 30
"""With fewer representatives than this, the summary says that no ranking can rest on them."""


def summarize(finding: PromptWeighting) -> Summary:
    """The result with its numbers, under the first seed's clustering."""
    schemes, by_seed = finding.schemes, finding.by_seed
    labels, n_clusters = by_seed[0].clustering.labels, by_seed[0].clustering.n_clusters
    n_models, n_zero = schemes[MEDOIDS].means.size, int((labels < 0).sum())
    whole = {name: scheme for name, scheme in schemes.items() if name != MEDOIDS}
    most = max(scheme.largest_rank_change for scheme in whole.values())
    moved = f"move a model by up to {_places(most)}" if most else "change no rank"
    changes = "; ".join(
        f"{name} {_places(scheme.largest_rank_change)}, means by up to {scheme.largest_shift:.3g}, effective "
        f"number {scheme.n_effective:,.0f}"
        for name, scheme in whole.items()
    )
    leaders = [name for name, scheme in whole.items() if scheme.leader_changes]
    outside = f", beside {n_zero:,} prompts that no model got right" if n_zero else ""
    clusters = f"{n_clusters} cluster{'s' * (n_clusters != 1)}"
    sentences = [
        f"On {labels.size:,} prompts and {n_models} models, other weights {moved} ({changes}).",
        f"Another model leads under {', '.join(leaders)}." if leaders else "None of them changes the leader.",
        _representatives(schemes[MEDOIDS]),
        f"The weights come from {clusters}{outside}.",
    ]
    if len(by_seed) > 1:
        sentences.append(_seeds(by_seed))
    sentences.append("This is no test: it shows what other weights would do, not which weights are right.")
    return Summary.from_sentences(sentences)


def _representatives(alone: Reweighting) -> str:
    n = f"{alone.n_weighted} representative{'s' * (alone.n_weighted != 1)}"
    text = f"The {n} alone move a model by up to {_places(alone.largest_rank_change)}"
    if alone.leader_changes:
        text += " and change the leader"
    return f"{text}{', but no ranking can rest on so few' if alone.n_weighted < MIN_REPRESENTATIVES else ''}."


def _seeds(by_seed: Sequence[ClusterSchemes]) -> str:
    changes = {name: [clusters.schemes[name].largest_rank_change for clusters in by_seed] for name in BY_CLUSTER}
    ranges = ", ".join(f"{name} {_range(values)}" for name, values in changes.items())
    numbers = _range([clusters.clustering.n_clusters for clusters in by_seed])
    return f"With {len(by_seed)} seeds, the clusters number {numbers} and the largest changes of rank are: {ranges}."


def _range(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _places(n: float) -> str:
    return f"{n:g} place{'s' * (n != 1)}"


def list_cap_warnings(finding: PromptWeighting, max_clusters: int) -> list[str]:
    """A warning where the number of clusters reaches the largest that is tried."""
    if all(clusters.clustering.n_clusters < max_clusters for clusters in finding.by_seed):
        return []
    return [
        f"The number of clusters reaches max_clusters, {max_clusters}: a larger one may find more and smaller clusters."
    ]
