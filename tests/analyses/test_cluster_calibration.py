"""How often tables without groups are called clustered."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.numerics.clustering.silhouette_test import silhouette_test

N_TABLES, N_PROMPTS, N_MODELS = 2000, 40, 7
OPTIONS = {"n_permutations": 79, "max_clusters": 5, "n_restarts": 2}


def table_under(null: str, rng: np.random.Generator) -> np.ndarray:
    """Independent columns; for `margins` a table whose law, given its margins, is uniform."""
    easiness = rng.normal(0, 1, (N_PROMPTS, 1)) if null == "margins" else 0
    odds = easiness + rng.normal(0, 0.7, (1, N_MODELS))
    return (rng.random((N_PROMPTS, N_MODELS)) < 1 / (1 + np.exp(-odds))).astype(float)


def rates(tables, null: str, weights=None) -> dict[str, float]:
    """Share of the tables in which each p-value is at most 0.05."""
    low = {"pvalue": 0, "pvalue_lower": 0, "pvalue_two_sided": 0}
    for seed, table in enumerate(tables):
        best = silhouette_test(table, weights=weights, null=null, seed=seed, **OPTIONS).best
        assert not best.reason
        for name in low:
            low[name] += getattr(best, name) <= 0.05
    return {name: count / N_TABLES for name, count in low.items()}


def check(result: dict[str, float]) -> None:
    """Among 80 tables, a two-sided p of at most 0.05 has the first two and the last two."""
    print(f"\n{result}")
    for name, rate in result.items():
        assert 0.032 <= rate <= 0.07, name


@pytest.mark.soak
@pytest.mark.parametrize("null", ["columns", "margins"])
def test_silhouettes_with_p_of_at_most_five_percent_come_in_five_percent_of_null_tables(null):
    rng = np.random.default_rng(7)
    check(rates((table_under(null, rng) for _ in range(N_TABLES)), null))


@pytest.mark.soak
def test_so_they_do_with_weights_on_continuous_tables():
    rng = np.random.default_rng(9)
    weights = rng.gamma(2, 0.5, N_PROMPTS)
    tables = (rng.beta(1, 2, (N_PROMPTS, N_MODELS)) for _ in range(N_TABLES))
    check(rates(tables, "columns", weights * N_PROMPTS / weights.sum()))
