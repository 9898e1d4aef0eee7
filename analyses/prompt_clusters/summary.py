"""The summary of prompt clusters, and warnings about their table."""

from __future__ import annotations

import numpy as np

from analyses.numerics.clustering.cluster_profile import ClusterProfile
from analyses.numerics.clustering.silhouette_test import SilhouetteTest
from analyses.presentation.permutation_warnings import (
    NULL_TEXTS,
    list_constant_model_warnings,
    list_few_permutations_warnings,
)
from analyses.prompt_clusters.method import PromptClusters
from tracker.queries.findings.summary import Summary
from tracker.queries.performance import PerformanceMatrix
from tracker.statistics.resampling import ALPHA, PermutationTest


def summarize(finding: PromptClusters) -> Summary:
    """The result with its numbers."""
    test, profile, null = finding.test, finding.profile, finding.null
    best, labels = test.best, test.observed.labels
    n_zero = int((labels < 0).sum())
    n_clustered = labels.size - n_zero
    sentences = [
        f"On {n_clustered:,} prompts and {profile.means.shape[1]} models, {_verdict(best)}: {test.observed.n_clusters} "
        f"clusters have a mean silhouette of {best.observed:.3f}; {best.n_permutations:,} tables with "
        f"{NULL_TEXTS[null]}, each clustered in the same way, gave {_drawn(best)}{_tail(best)}.",
        "One such table beside the observed one would be no test.",
    ]
    if null == "columns":
        margins = " The null `margins` keeps the difficulties." if profile.is_binary else ""
        sentences.append(
            "Shuffled columns also have no hard and easy prompts, and levels of difficulty alone can make clusters."
            + margins
        )
    elif not best.reason and best.pvalue > ALPHA:
        sentences.append("So abilities and difficulties alone can make clusters as clear as these.")
    sentences.append(_cap(test))
    if profile.n_directions.sum() < n_clustered:
        sentences.append(_identical(profile, n_clustered))
    if n_zero:
        sentences.append(
            f"Beside these, {_counted(n_zero, 'prompt')} with score 0 from every model "
            f"{'is' if n_zero == 1 else 'are'} a group apart, outside the silhouette."
        )
    return Summary.from_sentences(sentence for sentence in sentences if sentence)


def _cap(test: SilhouetteTest) -> str:
    numbers = {cap: test.number_up_to(cap) for cap in test.caps}
    largest = test.max_clusters
    if len(numbers) == 1:
        return "The best number is the largest tried; more might be better still." * (numbers[largest] == largest)
    if len(set(numbers.values())) == 1:
        tried = " or ".join(str(cap) for cap in numbers)
        return f"That number is the best whether at most {tried} are tried."
    best_of = ", ".join(f"{number} of at most {cap} ({_format_cap(test, cap)})" for cap, number in numbers.items())
    text = f"The best number depends on the largest that is tried: {best_of}"
    return f"{text}; more might be better still." if numbers[largest] == largest else f"{text}."


def _identical(profile: ClusterProfile, n_clustered: int) -> str:
    perfect = int(profile.is_identical.sum())
    return (
        f"Prompts with identical rows make small perfect clusters: {n_clustered:,} prompts have "
        f"{profile.n_directions.sum():,} different directions, {profile.n_at_medoid.sum():,} lie exactly on the "
        f"representative of their cluster, and {_counted(perfect, 'cluster')} "
        f"{'holds' if perfect == 1 else 'hold'} one direction only."
    )


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _verdict(best: PermutationTest) -> str:
    if best.reason:
        return f"there is nothing to test ({best.reason})"
    if best.pvalue <= ALPHA:
        return "prompts fall into clearer clusters than chance allows"
    if best.pvalue_two_sided <= ALPHA:
        return "prompts fall into less clear clusters than those of chance"
    if best.smallest_pvalue > ALPHA:
        return "so few draws cannot say whether chance explains the clusters"
    return "chance can explain the clusters"


def _drawn(best: PermutationTest) -> str:
    defined = best.null[np.isfinite(best.null)]
    if not defined.size:
        return "none"
    return f"{best.null_mean:.3f} (sd {best.null_sd:.2g}, {defined.min():.3f} to {defined.max():.3f})"


def _tail(best: PermutationTest) -> str:
    if best.reason:
        return ""
    floor = f", the smallest that {best.n_permutations:,} draws can give" if not best.n_greater + best.n_equal else ""
    return f", p = {best.pvalue:.3g}{floor}"


def _format_cap(test: SilhouetteTest, cap: int) -> str:
    capped = test.up_to(cap)
    return f"{capped.observed:.3f}" if capped.reason else f"{capped.observed:.3f}, p = {capped.pvalue:.3g}"


def list_table_warnings(table: PerformanceMatrix, n_permutations: int) -> list[str]:
    """What the reader of the numbers should know of the table behind them."""
    warnings = list_constant_model_warnings(
        [table.models[model] for model in np.flatnonzero((table.Q[0] == table.Q).all(axis=0))]
    )
    if (table.Q < 0).any():
        warnings.append(
            "Some scores are below 0. Prompts are compared by their direction from 0, so two prompts with opposite "
            "signs are opposites, and another zero point would give other clusters."
        )
    return warnings + list_few_permutations_warnings(n_permutations)
