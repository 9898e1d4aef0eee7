"""What the clusters of prompts and their test say, in plain words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.cluster_profile import ClusterProfile
from analyses.numerics.clustering.directions import directions
from analyses.numerics.clustering.silhouette_test import SilhouetteTest
from analyses.presentation.permutation_warnings import (
    BINARY_ONLY,
    NULL_TEXTS,
    constant_model_warnings,
    few_permutations_warnings,
)
from analyses.presentation.validation import check_finite, check_minimum, validate
from tracker.queries.performance import PerformanceMatrix
from tracker.statistics.resampling import ALPHA, PermutationTest


def summary(test: SilhouetteTest, profile: ClusterProfile, null: str) -> str:
    """What was found, with its numbers."""
    best, labels = test.best, test.observed.labels
    n_zero = int((labels < 0).sum())
    there = labels.size - n_zero
    said = [
        f"On {there:,} prompts and {profile.means.shape[1]} models, {_verdict(best)}: {test.observed.n_clusters} "
        f"clusters have a mean silhouette of {best.observed:.3f}; {best.n_permutations:,} tables with "
        f"{NULL_TEXTS[null]}, each clustered in the same way, gave {_drawn(best)}{_tail(best)}.",
        "One such table beside the observed one would be no test.",
    ]
    if null == "columns":
        margins = " The null `margins` keeps the difficulties." if profile.is_binary else ""
        said.append(
            "Shuffled columns also have no hard and easy prompts, and levels of difficulty alone can make clusters."
            + margins
        )
    elif not best.reason and best.pvalue > ALPHA:
        said.append("So abilities and difficulties alone can make clusters as clear as these.")
    said.append(_cap(test))
    if profile.n_directions.sum() < there:
        said.append(_identical(profile, there))
    if n_zero:
        said.append(
            f"Beside these, {_counted(n_zero, 'prompt')} with score 0 from every model "
            f"{'is' if n_zero == 1 else 'are'} a group apart, outside the silhouette."
        )
    return " ".join(sentence for sentence in said if sentence)


def _cap(test: SilhouetteTest) -> str:
    numbers = {cap: test.number_up_to(cap) for cap in test.caps}
    largest = test.max_clusters
    if len(numbers) == 1:
        return "The best number is the largest tried; more might be better still." * (numbers[largest] == largest)
    if len(set(numbers.values())) == 1:
        tried = " or ".join(str(cap) for cap in numbers)
        return f"That number is the best whether at most {tried} are tried."
    best_of = ", ".join(f"{number} of at most {cap} ({_shown(test, cap)})" for cap, number in numbers.items())
    said = f"The best number depends on the largest that is tried: {best_of}"
    return f"{said}; more might be better still." if numbers[largest] == largest else f"{said}."


def _identical(profile: ClusterProfile, there: int) -> str:
    perfect = int(profile.is_identical.sum())
    return (
        f"Prompts with identical rows make small perfect clusters: {there:,} prompts have "
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
    there = best.null[np.isfinite(best.null)]
    if not there.size:
        return "none"
    return f"{best.null_mean:.3f} (sd {best.null_sd:.2g}, {there.min():.3f} to {there.max():.3f})"


def _tail(best: PermutationTest) -> str:
    if best.reason:
        return ""
    floor = f", the smallest that {best.n_permutations:,} draws can give" if not best.n_greater + best.n_equal else ""
    return f", p = {best.pvalue:.3g}{floor}"


def _shown(test: SilhouetteTest, cap: int) -> str:
    found = test.up_to(cap)
    return f"{found.observed:.3f}" if found.reason else f"{found.observed:.3f}, p = {found.pvalue:.3g}"


def refuse_unusable(
    Q: NDArray[np.float64], *, max_clusters: int, n_restarts: int, n_permutations: int, null: str, seed: int
) -> None:
    """Refuse what cannot be clustered, or not with these options.

    Raises:
        SelectionError: says why, and what to do about it.
    """
    n, k = Q.shape
    is_binary = bool(((Q == 0) | (Q == 1)).all())
    validate(
        {
            f"No null {null!r}. Known: columns, margins.": null not in NULL_TEXTS,
            **check_minimum(2, max_clusters=max_clusters),
            **check_minimum(1, n_restarts=n_restarts, n_permutations=n_permutations),
            **check_minimum(0, seed=seed),
            **check_finite(Q),
            f"Prompts are compared by the models that solve them; models here: {k}. Choose at least 2.": k < 2,
            f"Clusters can be told from 3 prompts on, here: {n}. Choose more tasks or a larger benchmark.": n < 3,
            BINARY_ONLY: null == "margins" and not is_binary,
        }
    )
    n_distinct = directions(Q).n_distinct
    validate(
        {
            "Every score is 0, so no prompt has a direction. Choose another metric or other models.": n_distinct == 0,
            "All prompts with a score other than 0 have one row, up to a factor, so there is nothing to cluster. "
            "Choose another metric or other models.": n_distinct == 1,
        }
    )


def warnings(table: PerformanceMatrix, n_permutations: int) -> list[str]:
    """What the reader of the numbers should know of the table behind them."""
    said = constant_model_warnings(
        [table.models[model] for model in np.flatnonzero((table.Q[0] == table.Q).all(axis=0))]
    )
    if (table.Q < 0).any():
        said.append(
            "Some scores are below 0. Prompts are compared by their direction from 0, so two prompts with opposite "
            "signs are opposites, and another zero point would give other clusters."
        )
    return said + few_permutations_warnings(n_permutations)
