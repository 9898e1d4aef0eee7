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


def confounded(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, vectors and lengths: length drives difficulty, both drive the meaning, which does nothing else."""
    lengths = rng.normal(size=60)
    difficulty = 0.7 * lengths + 0.7 * rng.normal(size=60)
    meaning = rng.normal(size=(60, 6))
    meaning[:, :2] += 1.5 * np.column_stack([lengths, difficulty])
    odds = rng.normal(0, 0.7, 10) - 1.2 * difficulty[:, None]
    return (rng.random((60, 10)) < 1 / (1 + np.exp(-odds))).astype(float), meaning, lengths


def rejected(n_tables: int, null: str) -> float:
    """Share of the tables with a verdict about the mean slope."""
    rng, n = np.random.default_rng(9), 0
    for seed in range(n_tables):
        table, meaning, lengths = confounded(rng)
        options = {"similarity": "cosine", "intercept": True, "n_permutations": 199, "seed": seed}
        result = semantic_test(table, meaning, np.ones(60), null=null, lengths=lengths, **options)
        n += result.comparisons["slope.mean"].verdict != 0
    return n / n_tables


@pytest.mark.parametrize("n_tables", [30, pytest.param(N_TABLES, marks=pytest.mark.soak)])
def test_difficulty_and_length_alone_are_no_relation_within_strata(n_tables):
    rates = {"strata": rejected(n_tables, "strata"), "rows": rejected(min(n_tables, 200), "rows")}
    print(f"\ndifficulty and length drive the meaning: {rates}")
    assert rates["strata"] <= (0.07 if n_tables == N_TABLES else 0.2)
    assert rates["strata"] >= 0.032 or n_tables < N_TABLES
    assert rates["rows"] >= 0.3


def scores(rng: np.random.Generator, null: str, *, binary: bool) -> np.ndarray:
    """For `rows` easy and hard prompts, which have nothing to do with the vectors; for `columns` independent models."""
    easiness = rng.normal(0, 1, (N_PROMPTS, 1)) if null != "columns" else 0.0
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
        ("strata", "cosine", True, False, True),
        ("strata", "hamming", True, False, True),
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
