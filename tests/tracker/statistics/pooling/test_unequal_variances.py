"""Student's t under unequal variances: against simulation and SciPy, and its level in null tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tracker.statistics.pooling.random_effects import pool_differences
from tracker.statistics.pooling.unequal_variances import (
    hypothesized_variances,
    pool_interval,
    pool_pvalues,
    student_pvalues,
)

DESIGNS = {
    "equal": lambda k: np.ones(k),
    "1 to 5": lambda k: np.geomspace(1, 5, k),
    "one 1, others 5": lambda k: np.array([1.0, *[5.0] * (k - 1)]),
    "one 5, others 1": lambda k: np.array([5.0, *[1.0] * (k - 1)]),
    "half 1, half 5": lambda k: np.repeat([1.0, 5.0], [k // 2, k - k // 2]),
}
"""Standard errors of k benchmarks, relative to the smallest."""
SPREADS = {"none": 0.0, "moderate": 2.0, "large": 15.0}
"""Standard deviation of the true differences, relative to the smallest error."""

positive = st.lists(st.floats(0.1, 10), min_size=3, max_size=8)


def draw_normal(rng, n_tables: int, errors: np.ndarray, tau: float) -> tuple[np.ndarray, np.ndarray]:
    shape = n_tables, len(errors)
    return rng.normal(0, np.sqrt(errors**2 + tau**2), shape), np.broadcast_to(errors**2, shape)


def draw_proportions(rng, n_tables: int, errors: np.ndarray, tau: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences of two proportions on 2,500 to 100 shared prompts, with estimated errors; the smallest is .01."""
    n = np.rint(2500 / errors**2).astype(int)
    true = np.clip(rng.normal(0, 0.01 * tau, (n_tables, len(n))), -0.2, 0.2)
    chances = np.stack([(0.25 + true) / 2, (0.25 - true) / 2, np.full(true.shape, 0.75)], axis=-1)
    counts = rng.multinomial(n, chances)
    d, discordant = (counts[..., 0] - counts[..., 1]) / n, (counts[..., 0] + counts[..., 1]) / n
    return d, np.maximum(discordant - d**2, 1 / n) / (n - 1)


def weighted_pvalues(values: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Hartung and Knapp's test with weights 1 / (v + tau²), Paule and Mandel's tau², of each row."""
    low, high = np.zeros((len(values), 1)), np.ptp(values, axis=1, keepdims=True) ** 2
    for _ in range(60):
        tau2 = (low + high) / 2
        weights = 1 / (variances + tau2)
        means = (weights * values).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
        squares = (weights * (values - means) ** 2).sum(axis=1, keepdims=True)
        is_above = squares > values.shape[1] - 1
        low, high = np.where(is_above, tau2, low), np.where(is_above, high, tau2)
    error = np.sqrt(squares / weights.sum(axis=1, keepdims=True) / (values.shape[1] - 1))
    return 2 * stats.t.sf(np.abs(means / error), values.shape[1] - 1)[:, 0]


class TestAgainstReference:
    @pytest.mark.parametrize("k", [3, 4, 10])
    def test_with_equal_variances_it_is_students_distribution(self, k):
        t = np.array([0.01, 0.5, 1, 2, 5, 1e3, 1e6])
        assert student_pvalues(t, np.ones((7, k))) == pytest.approx(2 * stats.t.sf(t, k - 1), rel=1e-6)

    @pytest.mark.parametrize("variances", [[1.0, 4, 25, 1], [1.0, 1, 100], [0.1, 1, 2, 3, 4, 50]])
    def test_tails_are_those_of_simulated_tables(self, variances):
        values = np.random.default_rng(0).normal(0, np.sqrt(variances), (200_000, len(variances)))
        t = np.abs(stats.ttest_1samp(values, 0, axis=1).statistic)
        for limit in (0.5, 1.5, 3.0):
            expected = student_pvalues(np.array([limit]), np.array([variances]))[0]
            assert (t >= limit).mean() == pytest.approx(expected, abs=0.004)

    @pytest.mark.parametrize("draw", [draw_normal, draw_proportions])
    def test_the_weighted_test_of_many_tables_is_that_of_each(self, draw):
        values, variances = draw(np.random.default_rng(2), 20, DESIGNS["1 to 5"](4), 2.0)
        for d, v, pvalue in zip(values, variances, weighted_pvalues(values, variances), strict=True):
            result = pool_differences(d, np.sqrt(v))
            assert (result.weighted_low > 0 or result.weighted_high < 0) == (pvalue < 0.05)


class TestLaws:
    def test_a_mean_at_the_hypothesis_has_p_value_1(self):
        variances = np.array([[2.6, 2.5, 2.6], [1.0, 1.0, 1.0]])
        assert student_pvalues(np.zeros(2), variances).tolist() == [1.0, 1.0]

    @given(positive, st.floats(2.2, 20))
    def test_unequal_variances_make_large_values_rarer(self, variances, t):
        reach = max(t, stats.t.isf(0.025, len(variances) - 1))
        result = student_pvalues(np.array([reach]), np.array([variances]))[0]
        assert result <= 2 * stats.t.sf(reach, len(variances) - 1) * (1 + 1e-9)

    @given(positive, st.floats(0.01, 100))
    def test_the_hypothesized_variance_solves_its_equation(self, variances, size):
        v, residuals = np.array([variances]), size * np.resize([1.0, -0.7, 0.3], len(variances))[None]
        tau2 = hypothesized_variances(residuals, v)
        total = (residuals**2 / (v + tau2)).sum()
        if tau2[0] > 0:
            assert total == pytest.approx(len(variances) - 1)
        else:
            assert total <= len(variances) - 1 + 1e-9

    @given(positive)
    def test_the_interval_ends_where_the_test_rejects(self, variances):
        values, v = np.resize([0.5, 2.0, -0.3, 1.1], len(variances)), np.array(variances)
        low, high = pool_interval(values, v, level=0.9)
        assert low < values.mean() < high
        for end in (low, high):
            assert pool_pvalues(values[None], v[None], end)[0] == pytest.approx(0.1, abs=1e-6)


class TestLevel:
    def test_few_null_tables_have_an_overall_difference(self):
        values, variances = draw_normal(np.random.default_rng(1), 500, DESIGNS["one 5, others 1"](4), 0.0)
        assert 0.02 <= (pool_pvalues(values, variances) <= 0.05).mean() <= 0.08


@pytest.mark.soak
@pytest.mark.parametrize("k", [3, 4, 6, 10])
@pytest.mark.parametrize("draw", [draw_normal, draw_proportions])
def test_the_level_lies_between_3_2_and_7_percent_whatever_the_errors(draw, k):
    """10,000 null tables for each design of errors and each spread of true differences."""
    rng, n_tables, levels = np.random.default_rng(11), 10_000, {}
    for design, errors in DESIGNS.items():
        for spread, tau in SPREADS.items():
            values, variances = draw(rng, n_tables, errors(k), tau)
            pvalues = pool_pvalues(values, variances)
            with np.errstate(divide="ignore", invalid="ignore"):  # equal differences
                t = stats.ttest_1samp(values, 0, axis=1).pvalue
                weighted = weighted_pvalues(values, variances)
            levels[design, spread] = tuple((p <= 0.05).sum() / n_tables for p in (pvalues, t, weighted))
    print(f"\nlevel at 5 % with {k} benchmarks, {draw.__name__}: here, Student's t, weighted Hartung-Knapp")
    for (design, spread), row in levels.items():
        print(f"  errors {design}, spread {spread}: " + ", ".join(f"{level:.2%}" for level in row))
    assert max(level for level, *_ in levels.values()) <= 0.07
    assert min(level for level, *_ in levels.values()) >= 0.032
