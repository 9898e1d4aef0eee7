"""Steps from run to run, beside a plain reckoning of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from analyses.numerics.comparing.run_steps import compare_runs, score_changes
from tracker.statistics.grouping import group_rows
from tracker.statistics.paired_differences import estimate_clustered_mean

NAN = float("nan")
NONE = np.array([""] * 60)
TASKS = np.array([f"t{i % 7}" for i in range(60)])


def scores(seed: int, k: int = 3, missing: float = 0.0, binary: bool = True) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    Q = (rng.random((60, k)) < 0.6).astype(float) if binary else rng.random((60, k))
    Q[rng.random(Q.shape) < missing] = NAN
    return Q


class TestAgainstReference:
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_clustered_steps_are_those_of_statsmodels(self, missing: float) -> None:
        from statsmodels.regression.linear_model import OLS

        Q = scores(1, missing=missing, binary=False)
        for step in compare_runs(Q, [[0, 1, 2]], group_rows(TASKS)):
            d = Q[:, step.after] - Q[:, step.before]
            shared = ~np.isnan(d)
            codes = np.unique(TASKS[shared], return_inverse=True)[1]
            fit = OLS(d[shared], np.ones(shared.sum())).fit(
                cov_type="cluster", cov_kwds={"groups": codes, "use_correction": True}, use_t=True
            )
            assert step.n == shared.sum()
            assert step.n_clusters == len(set(codes))
            assert step.change == pytest.approx(fit.params[0], abs=1e-12)
            assert step.stderr == pytest.approx(fit.bse[0], rel=1e-10)
            assert step.pvalue == pytest.approx(fit.pvalues[0], rel=1e-9)
            assert (step.low, step.high) == pytest.approx(tuple(fit.conf_int(0.05)[0]), abs=1e-10)

    def test_clusters_of_very_unequal_sizes_have_the_errors_for_them(self) -> None:
        Q, uneven = scores(5), group_rows(np.array(["large"] * 45 + [f"t{i % 5}" for i in range(15)]))
        (step,) = compare_runs(Q, [[0, 1]], uneven)
        expected = estimate_clustered_mean(Q[:, 1] - Q[:, 0], uneven, scale=1.0, correction="CR2")
        assert not uneven.is_even
        assert (step.stderr, step.low, step.pvalue) == (expected.stderr, expected.low, expected.pvalue)

    def test_intervals_of_few_prompts_stay_within_the_range_of_a_change(self) -> None:
        rose = np.column_stack([np.zeros(5), [1.0, 1, 1, 1, 0]])
        [free], [step] = (
            compare_runs(rose, [[0, 1]], group_rows(np.array([""] * 5)), **options)
            for options in ({}, {"largest": 1.0})
        )
        assert (step.low, step.high) == (free.low, 1.0)
        assert free.high > 1
        [all_rose] = compare_runs(
            np.column_stack([np.zeros(5), np.ones(5)]), [[0, 1]], group_rows(np.array([""] * 5)), largest=1.0
        )
        assert all_rose.low < all_rose.high == 1

    def test_what_is_only_rounding_is_no_change(self) -> None:
        Q = np.column_stack([np.full(20, 0.1 + 0.2), np.full(20, 0.3)])
        (step,) = compare_runs(Q, [[0, 1]], group_rows(np.array(["a", "b"] * 10)))
        assert (step.n_better, step.n_worse, step.change) == (0, 0, 0)
        assert not score_changes(Q, step).any()

    def test_without_clusters_right_and_wrong_are_tested_by_mcnemar(self) -> None:
        Q = scores(2)
        for step in compare_runs(Q, [[0, 1, 2]], group_rows(NONE)):
            better = int(((Q[:, step.after] == 1) & (Q[:, step.before] == 0)).sum())
            worse = int(((Q[:, step.after] == 0) & (Q[:, step.before] == 1)).sum())
            assert (step.n_better, step.n_worse) == (better, worse)
            assert step.pvalue == pytest.approx(scipy.stats.binomtest(better, better + worse).pvalue, rel=1e-12)

    def test_without_clusters_other_scores_are_tested_by_paired_t(self) -> None:
        Q = scores(3, binary=False)
        for step in compare_runs(Q, [[0, 1, 2]], group_rows(NONE)):
            assert step.pvalue == pytest.approx(
                scipy.stats.ttest_rel(Q[:, step.after], Q[:, step.before]).pvalue, rel=1e-9
            )

    def test_pvalues_of_all_series_are_adjusted_together(self) -> None:
        Q = scores(4, k=6)
        result = compare_runs(Q, [[0, 1, 2], [3, 4, 5]], group_rows(TASKS))
        assert [(step.before, step.after) for step in result] == [(0, 1), (1, 2), (3, 4), (4, 5)]
        adjusted = multipletests([step.pvalue for step in result], method="holm")[1]
        assert [step.holm for step in result] == pytest.approx(adjusted, rel=1e-12)


class TestLaws:
    @given(Q=hnp.arrays(np.float64, (9, 2), elements=st.sampled_from([0.0, 1.0, 0.5, NAN])))
    def test_turned_round_a_step_has_the_other_sign(self, Q: NDArray[np.float64]) -> None:
        groups = group_rows(np.array(list("aabbccdde")))
        [present], [back] = compare_runs(Q, [[0, 1]], groups), compare_runs(Q, [[1, 0]], groups)
        assert present.n == back.n
        assert (present.n_only_before, present.n_only_after) == (back.n_only_after, back.n_only_before)
        assert (present.n_better, present.n_worse) == (back.n_worse, back.n_better)
        assert present.change == pytest.approx(-back.change, nan_ok=True)
        assert present.pvalue == pytest.approx(back.pvalue, nan_ok=True)

    def test_where_lower_is_better_a_fall_is_a_gain(self) -> None:
        Q = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
        [step] = compare_runs(Q, [[0, 1]], group_rows(np.array([""] * 3)), higher_is_better=False)
        assert step.change == pytest.approx(2 / 3)
        assert (step.n_better, step.n_worse) == (2, 0)
        assert score_changes(Q, step, higher_is_better=False).tolist() == [1.0, 0.0, 1.0]


class TestDegenerate:
    def test_runs_that_share_nothing_have_no_numbers(self) -> None:
        Q = np.array([[1.0, NAN], [NAN, 0.0]])
        [step] = compare_runs(Q, [[0, 1]], group_rows(np.array(["a", "b"])))
        assert (step.n, step.n_only_before, step.n_only_after) == (0, 1, 1)
        assert math.isnan(step.change)
        assert math.isnan(step.holm)
        assert math.isnan(step.share_changed)

    def test_one_shared_prompt_has_a_change_and_no_error(self) -> None:
        [step] = compare_runs(np.array([[0.2, 0.7]]), [[0, 1]], group_rows(np.array(["a"])))
        assert step.change == pytest.approx(0.5)
        assert math.isnan(step.stderr)
        assert math.isnan(step.pvalue)

    def test_equal_runs_have_no_change_and_p_is_one(self) -> None:
        Q = np.repeat(scores(5, k=1), 2, axis=1)
        [step] = compare_runs(Q, [[0, 1]], group_rows(TASKS))
        assert (step.change, step.stderr, step.holm, step.share_changed) == (0.0, 0.0, 1.0, 0.0)

    def test_single_runs_make_no_step(self) -> None:
        assert compare_runs(scores(6), [[0], [1], [2]], group_rows(TASKS)) == ()
