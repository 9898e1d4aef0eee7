"""Means with errors and intervals, in clusters and strata, against slow code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.binomial import blaker_interval
from tracker.statistics.intervals.means import design_variance, estimate_means, united_intervals
from tracker.statistics.pairwise_differences import compare_all_pairs

RNG = np.random.default_rng(11)


def independent(n: int) -> Grouping:
    return group_rows(np.full(n, ""))


def naive_variance(y: np.ndarray, units: np.ndarray, strata: np.ndarray, w: np.ndarray) -> float:
    """The definition, one stratum and one cluster at a time."""
    mean, overall, total = (w * y).sum(), 0.0, 0.0
    squared_weights = dict.fromkeys(strata.tolist(), 0.0)
    for stratum, unit in set(zip(strata.tolist(), units.tolist(), strict=True)):
        members = (strata == stratum) & (units == unit)
        weight = w[members].sum()
        overall += (w * (y - mean))[members].sum() ** 2 / (1 - weight)
        squared_weights[stratum] += weight**2
    for stratum in squared_weights:
        rows = strata == stratum
        center = (w * y)[rows].sum() / w[rows].sum()
        squares, shares = 0.0, []
        for unit in np.unique(units[rows]):
            members = rows & (units == unit)
            share = w[members].sum() / w[rows].sum()
            squares += (w * (y - center))[members].sum() ** 2 / (1 - share)
            shares.append(share)
        a = np.array(shares)
        u = a**2 / (1 - a)
        degrees = 1 / ((a**2).sum() + u.sum() ** 2 - (u**2).sum())
        prior = squared_weights[stratum] / sum(squared_weights.values()) * overall
        total += squares if len(squared_weights) == 1 else (degrees * squares + prior) / (degrees + 1)
    return float(total)


class TestAgainstReference:
    @pytest.mark.parametrize("n_strata", [1, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_errors_are_those_of_slow_code(self, n_strata, weighted):
        n = 60
        strata = np.arange(n) % n_strata
        units = np.array([f"{s}-{u}" for s, u in zip(strata, RNG.integers(0, 6, n), strict=True)])
        y, w = RNG.random(n), RNG.random(n) + 0.2 if weighted else np.ones(n)
        w /= w.sum()
        for names in (units, np.array([str(i) for i in range(n)])):
            result = design_variance(y[:, None], group_rows(names, strata), w)
            assert result[0] == pytest.approx(naive_variance(y, names, strata, w), rel=1e-10)

    def test_the_errors_of_pairs_are_those_of_their_differences(self):
        n = 90
        strata = np.arange(n) % 3
        passages = np.array([f"{s}-{u}" for s, u in zip(strata, RNG.integers(0, 4, n), strict=True)])
        for names in (passages, np.full(n, "")):
            groups, Q = group_rows(names, strata), RNG.random((n, 4)).round(1)
            Q[:, 3] = Q[:, 2] + 1e-9 * RNG.random(n)  # so close that differences are taken one by one
            errors = compare_all_pairs(Q, groups, "CR2").stderr_clustered
            for i, j in ((0, 1), (2, 0), (2, 3)):
                units = names if names[0] else np.arange(n).astype(str)
                expected = naive_variance(Q[:, i] - Q[:, j], units, strata, np.full(n, 1 / n))
                assert errors[i, j] == pytest.approx(np.sqrt(expected), rel=1e-6)

    def test_independent_scores_have_the_plain_error(self):
        Q = RNG.random((40, 3))
        result = estimate_means(Q, independent(40), bounds=(0, 1))
        assert result.stderr == pytest.approx(stats.sem(Q), rel=1e-12)
        assert (result.stderr == result.stderr_design).all()
        assert result.degrees == pytest.approx(39)

    def test_scores_of_0_and_1_have_the_interval_of_blaker_in_every_unit(self):
        Q = (RNG.random((50, 3)) < 0.9).astype(float)
        expected = np.array(blaker_interval(Q.sum(axis=0).astype(int), 50))
        for scale, bounds in ((1, (0.0, 1.0)), (1, (None, None)), (100, (0.0, 100.0))):
            result = estimate_means(scale * Q, independent(50), bounds=bounds)
            assert np.array([result.low, result.high]) == pytest.approx(scale * expected, rel=1e-12)

    def test_missing_scores_leave_a_column_with_its_own_rows(self):
        Q = RNG.random((30, 3))
        Q[:7, 1] = Q[:, 2] = np.nan
        tasks = np.array(list("abc") * 10)
        for strata in (None, tasks):
            groups = group_rows(tasks if strata is None else np.full(30, ""), strata)
            result = estimate_means(Q, groups, bounds=(0, 1))
            alone = estimate_means(Q[7:, [1]], groups.rows(np.arange(30) >= 7), bounds=(0, 1))
            assert (result.low[1], result.high[1]) == (alone.low[0], alone.high[0])
            assert result.n.tolist() == [30, 23, 0]
            assert np.isnan([result.mean[2], result.low[2]]).all()


class TestLaws:
    @given(
        seed=st.integers(0, 10**6),
        n=st.integers(2, 60),
        rate=st.sampled_from([0.0, 0.03, 0.5, 0.97, 1.0]),
        n_tasks=st.integers(1, 8),
        kind=st.sampled_from(["none", "fixed", "random", "nested"]),
        trials=st.sampled_from([1, 3]),
        weighted=st.booleans(),
    )
    def test_intervals_hold_the_mean_lie_in_the_bounds_and_have_a_width(
        self, seed, n, rate, n_tasks, kind, trials, weighted
    ):
        rng = np.random.default_rng(seed)
        tasks = np.array([f"t{i}" for i in rng.integers(0, n_tasks, n)])
        passages = np.array([f"p{i}" for i in rng.integers(0, 4, n)])
        alone = np.full(n, "")
        groups = {
            "none": group_rows(alone),
            "fixed": group_rows(alone, tasks),
            "random": group_rows(tasks),
            "nested": group_rows(passages, tasks),
        }[kind]
        Q = rng.binomial(trials, rate, (n, 3)) / trials
        w = rng.random(n) + 0.1 if weighted else None
        result = estimate_means(Q, groups, w, bounds=(0, 1))
        assert (result.low >= 0).all()
        assert (result.high <= 1).all()
        assert (result.low <= result.mean + 1e-12).all()
        assert (result.mean <= result.high + 1e-12).all()
        assert (result.high - result.low > 1e-6).all()

    def test_a_missing_score_within_the_bounds_cannot_leave_the_united_interval(self):
        Q = (RNG.random((80, 1)) < 0.6).astype(float)
        Q[:6] = np.nan
        low, high = united_intervals(Q, independent(80), bounds=(0, 1))
        for value in (0.0, 0.4, 1.0):
            whole = estimate_means(np.where(np.isnan(Q), value, Q), independent(80), bounds=(0, 1))
            assert low[0] <= whole.low[0] + 1e-12
            assert whole.high[0] <= high[0] + 1e-12

    def test_strata_that_differ_narrow_the_interval(self):
        tasks = np.repeat(np.array(list("ab")), 100)
        Q = (RNG.random((200, 1)) < np.where(tasks == "a", 0.95, 0.1)[:, None]).astype(float)
        fixed, none = (estimate_means(Q, g) for g in (group_rows(np.full(200, ""), tasks), independent(200)))
        assert fixed.stderr_design[0] < 0.7 * none.stderr[0]
        assert fixed.high[0] - fixed.low[0] < 0.8 * (none.high[0] - none.low[0])

    def test_two_values_without_bounds_have_the_same_interval_in_every_unit(self):
        Q = (np.arange(40) < 9).astype(float)[:, None]
        two, three = (estimate_means(unit * Q, independent(40)) for unit in (2.0, 3.0))
        assert three.low[0] == pytest.approx(1.5 * two.low[0])
        assert three.high[0] == pytest.approx(1.5 * two.high[0])


class TestDegenerate:
    def test_two_tasks_have_an_interval_within_the_bounds(self):
        Q = np.repeat([[1.0], [0.0]], 50, axis=0)
        result = estimate_means(Q, group_rows(np.repeat(np.array(["a", "b"]), 50)))
        assert 0 <= result.low[0] < 0.01
        assert 0.99 < result.high[0] <= 1

    def test_scores_without_bounds_that_are_all_equal_have_no_interval(self):
        result = estimate_means(np.full((5, 1), 3.0), independent(5))
        assert np.isnan([result.low[0], result.high[0]]).all()

    def test_scores_too_large_to_be_squared_have_an_error(self):
        result = estimate_means(np.array([[1e200], [-1e200], [0.0]]), independent(3))
        assert result.stderr[0] == pytest.approx(1e200 / np.sqrt(3))

    def test_an_infinite_score_leaves_its_column_without_an_interval(self):
        result = estimate_means(np.array([[np.inf, 1.0], [1.0, 2.0], [3.0, 2.5]]), independent(3))
        assert result.mean[0] == np.inf
        assert np.isnan([result.stderr[0], result.low[0], result.high[0]]).all()
        assert result.low[1] < 1.8 < result.high[1]

    def test_one_score_has_no_error(self):
        result = estimate_means(np.array([[1.0]]), independent(1))
        assert np.isnan(result.stderr[0])
        assert result.low[0] == pytest.approx(0.05)

    def test_strata_of_one_prompt_are_merged(self):
        groups = group_rows(np.full(7, ""), np.array(list("aaabbcd")))
        assert groups.n_strata == 3
        assert groups.strata[5] == groups.strata[6]
        assert group_rows(np.full(4, ""), np.array(list("aaab"))).n_strata == 1
        assert group_rows(np.full(3, ""), np.array(list("abc"))).n_strata == 1

    def test_clusters_are_numbered_within_strata(self):
        groups = group_rows(np.array(["p", "p", "q", "q", "p", "p", "r", ""]), np.array(list("aaaabbbb")))
        assert groups.n_groups == 5
        assert groups.codes[0] != groups.codes[4]
        kept = groups.rows(np.arange(8) != 6)
        assert kept.n_groups == 4
        assert kept.n_strata == 2


class TestFewErrors:
    """Where scores show no variance, the intervals follow from those that show a little."""

    @pytest.mark.parametrize(("n_clusters", "size"), [(2, 250), (5, 100), (14, 20)])
    @pytest.mark.parametrize("n_strata", [1, 2])
    def test_no_wrong_answer_is_hardly_better_than_one_in_clusters(self, n_clusters, size, n_strata):
        Q = np.ones((n_clusters * size * n_strata, 2))
        Q[0, 1] = 0
        strata = None if n_strata == 1 else np.repeat(np.arange(n_strata), n_clusters * size)
        clusters = np.repeat(np.arange(n_clusters * n_strata), size).astype(str)
        result = estimate_means(Q, group_rows(clusters, strata), bounds=(0, 1))
        without, with_error = 1 - result.low
        assert with_error / 4 < without < 1.5 * with_error
        assert without > 2 / len(Q)

    @pytest.mark.parametrize("n", [20, 100, 200])
    def test_tasks_all_right_and_all_wrong_have_a_wide_interval(self, n):
        Q = np.repeat([[1.0], [0.0]], n, axis=0)
        result = estimate_means(Q, group_rows(np.full(2 * n, ""), np.repeat([0, 1], n)), bounds=(0, 1))
        assert 0.5 - result.low[0] > 1 / n
        assert result.high[0] - 0.5 > 1 / n

    def test_heavy_prompts_with_other_scores_widen_the_interval(self):
        weights = np.ones(1000)
        weights[:10] = 25
        Q = np.ones((1000, 2))
        Q[:5, 0] = Q[10:15, 1] = 0  # of the heavy prompts, of the light ones
        result = estimate_means(Q, independent(1000), weights, (0, 1))
        half = (result.high - result.low) / 2
        assert half[0] > 1.8 * result.stderr[0]
        assert half[0] > 3 * half[1]

    @pytest.mark.parametrize("value", [0.1, 0.7, -3.3, 12.34])
    @pytest.mark.parametrize("n", [3, 12, 50])
    def test_equal_scores_without_bounds_have_no_interval(self, value, n):
        for strata in (None, np.arange(n) % 2):
            result = estimate_means(np.full((n, 1), value), group_rows(np.full(n, ""), strata))
            assert np.isnan([result.low, result.high]).all()

    def test_bounds_of_a_column_do_not_depend_on_who_lacks_the_same_scores(self):
        Q = (RNG.random((30, 3)) < 0.5).astype(float)
        Q[:, 1] *= 2.5
        with_gap = Q.copy()
        with_gap[0, 0] = np.nan
        alone = estimate_means(with_gap[1:, [0, 1]], independent(29))
        assert estimate_means(with_gap, independent(30)).high[0] == pytest.approx(alone.high[0])
