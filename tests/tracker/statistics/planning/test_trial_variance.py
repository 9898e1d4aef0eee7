"""Variance between and within prompts, and pass rates: plain versions, laws, simulated truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals.means import estimate_means
from tracker.statistics.planning.trials import TrialVariance, pass_at_k, pass_hat_k, split_variance


def split_table(table: np.ndarray) -> TrialVariance:
    """The parts of ``(n, K)`` trials, with the error of independent prompts."""
    means = table.mean(axis=1)
    squares = ((table - means[:, None]) ** 2).sum(axis=1)
    stderr = float(means.std(ddof=1) / np.sqrt(len(means)))
    return split_variance(means, squares, np.full(len(means), table.shape[1]), stderr)


class TestAgainstReference:
    @given(st.lists(st.integers(0, 1), min_size=1, max_size=7), st.integers(1, 7))
    def test_pass_rates_are_shares_of_all_subsets(self, trials, k):
        subsets = list(itertools.combinations(trials, k))
        passed, count = np.array([sum(trials)]), np.array([len(trials)])
        any_passes, all_pass = pass_at_k(passed, count, k)[0], pass_hat_k(passed, count, k)[0]
        if not subsets:
            assert math.isnan(any_passes)
            assert math.isnan(all_pass)
        else:
            assert any_passes == pytest.approx(np.mean([max(subset) for subset in subsets]))
            assert all_pass == pytest.approx(np.mean([min(subset) for subset in subsets]))

    def test_the_parts_are_those_of_an_analysis_of_variance(self):
        table = np.random.default_rng(3).normal(size=(30, 1)) + np.random.default_rng(4).normal(size=(30, 5))
        frame = pd.DataFrame({"score": table.ravel(), "prompt": np.repeat(np.arange(30), 5)})
        squares = anova_lm(ols("score ~ C(prompt)", frame).fit())["mean_sq"]
        result = split_table(table)
        assert result.within == pytest.approx(squares["Residual"])
        assert result.between == pytest.approx((squares["C(prompt)"] - squares["Residual"]) / 5)
        assert result.stderr_with(5) == pytest.approx(np.sqrt(squares["C(prompt)"] / 150))
        assert result.stderr_with(2) == pytest.approx(np.sqrt((result.between + result.within / 2) / 30))


class TestLaws:
    @pytest.mark.parametrize("seed", range(4))
    def test_the_stored_number_of_trials_keeps_the_observed_error(self, seed):
        result = split_table((np.random.default_rng(seed).random((40, 4)) < 0.5).astype(float))  # prompts do not differ
        assert result.stderr_with(4) == pytest.approx(result.stderr)
        assert result.stderr_with(16) < result.stderr_with(5) < result.stderr < result.stderr_with(3)

    def test_errors_fall_to_the_floor_and_as_fast_as_possible_with_new_prompts(self):
        result = split_table((np.random.default_rng(1).random((60, 4)) < 0.6).astype(float) * 0.5)
        errors = [result.stderr_with(k) for k in (1, 2, 4, 1e9)]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] == pytest.approx(result.floor, abs=1e-6)
        assert result.stderr_with(1, 4 * 60) == pytest.approx(errors[0] / 2)
        assert result.stderr_with(1, 4 * 60) <= result.stderr_with(4)

    @pytest.mark.parametrize("tolerance", [0.01, 0.05, 0.5])
    def test_sufficient_trials_are_the_fewest(self, tolerance):
        rng = np.random.default_rng(2)
        result = split_table(rng.normal(size=(50, 1)) + rng.normal(size=(50, 3)))
        trials = result.sufficient_trials(tolerance)
        assert result.stderr_with(trials) <= (1 + tolerance) * result.floor
        assert trials == 1 or result.stderr_with(trials - 1) > (1 + tolerance) * result.floor

    def test_parts_and_errors_are_unbiased(self):
        """Beta-distributed chances of a pass with 3 trials: the truth is known."""
        rng, n = np.random.default_rng(5), 40
        chance = rng.beta(2, 1, (3000, n, 1))
        tables = (rng.random((3000, n, 3)) < chance).astype(float)
        results = [split_table(table) for table in tables]
        within, between = 2 / 12, 1 / 18
        assert np.mean([result.within for result in results]) == pytest.approx(within, rel=0.02)
        assert np.mean([result.between for result in results]) == pytest.approx(between, rel=0.05)
        spread = tables[:, :, 0].mean(axis=1).std(ddof=1)
        assert np.mean([result.stderr_with(1) ** 2 for result in results]) == pytest.approx(spread**2, rel=0.08)


class TestDegenerate:
    def test_one_trial_leaves_the_parts_unknown(self):
        result = split_table(np.array([[1.0], [0.0], [1.0]]))
        assert np.isnan([result.within, result.between, result.trial_share, result.floor]).all()
        assert np.isnan([result.stderr_with(2), result.sufficient_trials(0.05)]).all()

    def test_equal_prompts_and_equal_trials(self):
        assert split_table(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).sufficient_trials(0.05) == math.inf
        assert split_table(np.array([[1.0, 1.0], [0.0, 0.0]])).sufficient_trials(0.05) == 1
        flat = split_table(np.ones((4, 2)))
        assert (flat.within, flat.between) == (0, 0)
        assert math.isnan(flat.trial_share)


@pytest.mark.soak
@pytest.mark.parametrize(("n_clusters", "size", "spread"), [(200, 1, 0.0), (14, 20, 0.6), (30, 8, 0.6)])
def test_intervals_of_pass_rates_hold_the_truth(n_clusters, size, spread):
    """Four trials of prompts whose difficulty varies between clusters; pass@2, pass^2, pass@4 and pass^4."""
    rng, n_tables = np.random.default_rng(0), 2000

    def draw_chances(n_groups):
        return expit(0.3 + np.repeat(rng.normal(0, spread, n_groups), size) + rng.normal(0, 1.2, n_groups * size))

    population = draw_chances(400_000 // size)
    truth = [share for k in (2, 4) for share in ((1 - (1 - population) ** k).mean(), (population**k).mean())]
    names = np.repeat(np.arange(n_clusters).astype(str), size) if size > 1 else np.full(n_clusters, "")
    groups, covered = group_rows(names), np.zeros(4)
    for _ in range(n_tables):
        passed = rng.binomial(4, draw_chances(n_clusters))
        count = np.full(len(passed), 4)
        rates = [function(passed, count, k) for k in (2, 4) for function in (pass_at_k, pass_hat_k)]
        result = estimate_means(np.stack(rates, axis=1), groups, None, (0.0, 1.0))
        covered += (result.low <= truth) & (truth <= result.high)
    print(f"\npass rates, {n_clusters} clusters of {size}: coverage {covered / n_tables}")
    assert (covered / n_tables >= 0.94).all()
