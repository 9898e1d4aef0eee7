"""The summary of prompt clusters, and warnings about their table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analyses.numerics.clustering.cluster_profile import ClusterProfile
from analyses.numerics.clustering.silhouette_test import SilhouetteTest
from analyses.presentation.one_per_family import state_verdict
from analyses.presentation.permutation_warnings import (
    NULL_TEXTS,
    list_constant_model_warnings,
    list_few_permutations_warnings,
)
from analyses.prompt_clusters.method import PromptClusters
from tracker.queries.findings.summary import Summary
from tracker.queries.performance import PerformanceMatrix
from tracker.statistics.resampling import PermutationTest


def summarize(finding: PromptClusters) -> Summary:
    """Summarize whether prompts fall into clearer clusters than chance allows."""
    test, profile = finding.test, finding.profile
    n_clustered = int((test.observed.labels >= 0).sum())
    models = finding.one_per_family
    family = models.describe(test.best) if models else ""
    evidence = [
        *(_describe_dense_clusters(finding) if finding.options.has_noise else _describe_number(finding)),
        _describe_test(test.best, finding.null),
        _describe_permuted_noise(test) if finding.options.has_noise else _describe_caps(test),
        _describe_identical(profile, n_clustered) if profile.n_directions.sum() < n_clustered and not family else "",
        family,
        f"Data: {n_clustered + int(test.observed.is_noise.sum()):,} prompts and {profile.means.shape[1]} models.",
    ]
    return Summary(
        _headline(finding),
        tuple(item for item in evidence if item),
        tuple(_list_caveats(finding, finding.n_zero)),
    )


def _headline(finding: PromptClusters) -> str:
    best, size = finding.test.best, finding.options.min_cluster_size
    if not finding.clustering.n_clusters:
        fewer = f"; permuted tables have more (p = {best.pvalue_two_sided:.3g})" if best.verdict else ""
        families = finding.one_per_family
        if families and families.test is not None and not families.reason and families.test.verdict > 0:
            fewer += f"; with one model per family there are clusters (p = {families.test.pvalue_two_sided:.3g})"
        return f"HDBSCAN finds no cluster of at least {size:,} prompts{fewer}."
    if best.reason:
        return f"Whether prompts form clusters is open: there is nothing to test ({best.reason})."
    if best.verdict:
        verdict = "clearer clusters than chance allows" if best.verdict > 0 else "less clear clusters than chance"
        evidence = f"p = {best.pvalue_two_sided:.3g}"
        return state_verdict(f"Prompts form {verdict}", evidence, best, finding.one_per_family)
    if not best.can_reject:
        return f"{best.n_permutations:,} permutations are too few to test whether prompts form clusters."
    return f"Chance can explain the clusters of prompts (p = {best.pvalue_two_sided:.3g})."


def _describe_number(finding: PromptClusters) -> Iterator[str]:
    method = "" if finding.options.method == "kmeans" else " (Ward's linkage)"
    number, silhouette = finding.clustering.n_clusters, finding.test.best.observed
    yield f"Best number of clusters{method}: {number}, with a mean silhouette of {silhouette:.3f}."


def _describe_dense_clusters(finding: PromptClusters) -> Iterator[str]:
    """Describe the clusters of a method that finds their number itself, and its noise."""
    clustering, size = finding.clustering, finding.options.min_cluster_size
    noise = f"{_counted(int(clustering.is_noise.sum()), 'prompt')} ({clustering.noise_share:.1%})"
    if not clustering.n_clusters:
        yield f"All of the {noise} are noise: too few others are like them."
        return
    yield f"HDBSCAN finds {_counted(clustering.n_clusters, 'cluster')} of at least {size:,} prompts; {noise} are noise."
    yield f"Mean silhouette with noise as 0: {clustering.silhouette:.3f}."


def _describe_permuted_noise(test: SilhouetteTest) -> str:
    """Describe the numbers of clusters and the noise of permuted tables."""
    numbers, share = test.null_numbers, float((test.null_numbers > 0).mean())
    if not share:
        return "No permuted table has a cluster."
    return (
        f"Permuted tables have {numbers.mean():.1f} clusters on average ({numbers.min()} to {numbers.max()}) and "
        f"{test.null_noise.mean():.1%} noise; {share:.0%} of them have any cluster."
    )


def _describe_test(best: PermutationTest, null: str) -> str:
    """Describe the permuted tables and the p-value."""
    tables = f"{best.n_permutations:,} tables with {NULL_TEXTS[null]}, clustered in the same way"
    defined = best.null[np.isfinite(best.null)]
    if not defined.size:
        return f"No cluster was found in {tables}."
    drawn = f"{best.null_mean:.3f} (sd {best.null_sd:.2g}, {defined.min():.3f} to {defined.max():.3f}) in {tables}"
    if best.reason:
        return f"Mean silhouette {drawn}."
    smallest = "" if best.n_greater + best.n_equal else ", the smallest possible p-value"
    return f"Mean silhouette {drawn}: two-sided p = {best.pvalue_two_sided:.3g}{smallest}."


def _describe_caps(test: SilhouetteTest) -> str:
    """Describe how the best number of clusters depends on the largest number tried."""
    numbers = {cap: test.number_up_to(cap) for cap in test.caps}
    largest = test.max_clusters
    at_cap = numbers[largest] == largest
    if len(numbers) == 1:
        return "The best number is the largest tried; a larger one may be better." * at_cap
    if len(set(numbers.values())) == 1:
        return f"The best number is the same for maxima of {' and '.join(map(str, numbers))} clusters."
    best_of = ", ".join(f"{number} of at most {cap} ({_format_cap(test, cap)})" for cap, number in numbers.items())
    text = f"The best number depends on the maximum: {best_of}"
    return f"{text}; a larger one may be better." if at_cap else f"{text}."


def _describe_identical(profile: ClusterProfile, n_clustered: int) -> str:
    """Describe prompts with identical rows, which make small perfect clusters."""
    perfect = int(profile.is_identical.sum())
    return (
        f"Identical rows: {n_clustered:,} prompts have {profile.n_directions.sum():,} distinct directions; "
        f"{profile.n_at_medoid.sum():,} equal the medoid of their cluster; {_counted(perfect, 'cluster')} "
        f"{'has' if perfect == 1 else 'have'} one direction only."
    )


def _list_caveats(finding: PromptClusters, n_zero: int) -> Iterator[str]:
    best = finding.test.best
    if finding.options.has_noise:
        yield "The number of clusters and the noise depend on --min-cluster-size."
    if finding.null == "columns":
        margins = " The null `margins` keeps the difficulties." if finding.profile.is_binary else ""
        yield f"Shuffled columns have no hard or easy prompts, and difficulty alone can form clusters.{margins}"
    elif not best.reason and best.verdict <= 0:
        yield "Abilities of models and difficulties of prompts alone can form clusters as clear as these."
    if n_zero:
        yield f"{_counted(n_zero, 'prompt')} with score 0 from every model form a separate group without a silhouette."


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _format_cap(test: SilhouetteTest, cap: int) -> str:
    capped = test.up_to(cap)
    return f"{capped.observed:.3f}" if capped.reason else f"{capped.observed:.3f}, p = {capped.pvalue_two_sided:.3g}"


def list_table_warnings(table: PerformanceMatrix, n_permutations: int) -> list[str]:
    """List warnings about constant models, negative scores and few permutations."""
    warnings = list_constant_model_warnings(
        [table.models[model] for model in np.flatnonzero((table.Q[0] == table.Q).all(axis=0))]
    )
    if (table.Q < 0).any():
        warnings.append(
            "Some scores are negative. Prompts are compared by their direction from 0, so another zero point gives "
            "other clusters."
        )
    return warnings + list_few_permutations_warnings(n_permutations)
