"""How often meaning that has nothing to do with performance is called related to it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from analyses.numerics.semantic.semantic_null import semantic_test

N_TABLES, N_PROMPTS, N_MODELS, N_DIMENSIONS = 2000, 30, 8, 5
TESTS = ("slope.mean", "n_discoveries", "ks_slope", "ks_fdr", "max_t")


def vectors(rng: np.random.Generator) -> np.ndarray:
    """Prompts on four topics."""
    topics = rng.normal(0, 1, (4, N_DIMENSIONS))
    return topics[rng.integers(0, 4, N_PROMPTS)] + rng.normal(0, 0.7, (N_PROMPTS, N_DIMENSIONS))


def scores(rng: np.random.Generator, null: str, *, binary: bool) -> np.ndarray:
    """For `rows` easy and hard prompts, which have nothing to do with the vectors; for `columns` independent models."""
    easiness = rng.normal(0, 1, (N_PROMPTS, 1)) if null == "rows" else 0.0
    odds = easiness + rng.normal(0, 0.7, (1, N_MODELS))
    if binary:
        return (rng.random((N_PROMPTS, N_MODELS)) < 1 / (1 + np.exp(-odds))).astype(float)
    return 1 / (1 + np.exp(-odds - rng.normal(0, 1, (N_PROMPTS, N_MODELS))))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("null", "similarity", "binary", "weighted", "intercept"),
    [
        ("rows", "cosine", True, False, True),
        ("rows", "cosine", False, True, True),
        ("rows", "hamming", True, False, False),
        ("columns", "cosine", True, False, True),
        ("columns", "cosine", False, True, True),
        ("columns", "hamming", True, False, True),
    ],
)
def test_pvalues_of_at_most_five_percent_come_in_five_percent_of_null_tables(
    null, similarity, binary, weighted, intercept
):
    """Discoveries are mostly none at all, observed and drawn, so that their rate has an upper side only.

    Weights, where there are any, follow the vectors, as equal tasks do.
    """
    rng = np.random.default_rng(8)
    low: Counter[str] = Counter()
    for seed in range(N_TABLES):
        table, meaning = scores(rng, null, binary=binary), vectors(rng)
        result = semantic_test(
            table,
            meaning,
            np.exp(meaning[:, 0]) if weighted else np.ones(N_PROMPTS),
            similarity=similarity,
            intercept=intercept,
            null=null,
            n_permutations=199,
            seed=seed,
        )
        for name, comparison in result.comparisons.items():
            low[name] += not comparison.reason and comparison.pvalue <= 0.05
        low["slope.mean, two-sided"] += result.comparisons["slope.mean"].pvalue_two_sided <= 0.05
        low["family-wise"] += bool((result.familywise <= 0.05).any())
    rates = {name: low[name] / N_TABLES for name in (*TESTS, "slope.mean, two-sided", "family-wise")}
    print(f"\n{null} {similarity} binary={binary} weighted={weighted} intercept={intercept}: ", end="")
    print("  ".join(f"{name} {rate:.2%}" for name, rate in rates.items()))
    for name, rate in rates.items():
        assert rate <= 0.07, (name, rate)
        assert rate >= 0.032 or name == "n_discoveries", (name, rate)
