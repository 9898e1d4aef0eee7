from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.weightstats import CompareMeans

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.means import estimate_means
from tracker.statistics.paired_differences import estimate_clustered_mean, estimate_mean, unpaired_stderr
from tracker.statistics.student_t import t_pvalues, t_quantile

RNG = np.random.default_rng(5)
NAN = float("nan")


def statsmodels_cluster(d: np.ndarray, codes: np.ndarray, *, corrected: bool):
    """The regression on a constant, with errors clustered."""
    return OLS(d, np.ones(len(d))).fit(
        cov_type="cluster", cov_kwds={"groups": codes, "use_correction": corrected}, use_t=True
    )


def some(names: str) -> Grouping:
    return group_rows(np.array([name if name != "." else "" for name in names]))


class TestAgainstReference:
    @pytest.mark.parametrize("scores", [lambda n: (RNG.random(n) < 0.6).astype(float), RNG.random, RNG.standard_cauchy])
    @pytest.mark.parametrize("n", [2, 3, 40, 700])
    def test_the_plain_estimate_is_that_of_a_paired_t_test(self, scores, n):
        a, b = scores(n), scores(n)
        if (a - b).std() == 0:
            b[0] += 1
        result = estimate_mean(a - b, scale=float(np.abs([a, b]).max()), level=0.9)
        expected = scipy.stats.ttest_rel(a, b)
        low, high = expected.confidence_interval(0.9)
        assert result.stderr == pytest.approx(scipy.stats.sem(a - b), rel=1e-10)
        assert (result.low, result.high) == pytest.approx((low, high), rel=1e-10, abs=1e-10)
        assert result.pvalue == pytest.approx(expected.pvalue, rel=1e-10)
        assert result.degrees == n - 1

    @pytest.mark.parametrize("n_groups", [2, 3, 14, 200])
    def test_the_clustered_estimate_is_that_of_statsmodels_with_its_correction(self, n_groups):
        d = RNG.normal(0.1, 1, 300)
        codes = np.concatenate([np.arange(n_groups), RNG.integers(0, n_groups, 300 - n_groups)])
        d += RNG.normal(size=n_groups)[codes]
        result = estimate_clustered_mean(d, group_rows(codes.astype(str)), scale=3.0)
        corrected = statsmodels_cluster(d, codes, corrected=True)
        low, high = corrected.conf_int()[0]
        assert result.stderr == pytest.approx(corrected.bse[0], rel=1e-10)
        assert (result.low, result.high) == pytest.approx((low, high), rel=1e-10, abs=1e-10)
        assert result.pvalue == pytest.approx(corrected.pvalues[0], rel=1e-10)
        plain = statsmodels_cluster(d, codes, corrected=False)
        assert result.stderr == pytest.approx(plain.bse[0] * np.sqrt(n_groups / (n_groups - 1)), rel=1e-10)

    def test_the_unpaired_error_is_that_of_statsmodels(self):
        a, b = RNG.random(50), RNG.random(80) ** 2
        assert unpaired_stderr(a, b) == pytest.approx(CompareMeans.from_data(a, b).std_meandiff_separatevar, rel=1e-12)

    @pytest.mark.parametrize("degrees", [1, 2, 13, 12_031])
    def test_quantiles_are_those_of_scipy(self, degrees):
        assert t_quantile(0.95, degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=1e-10)

    def test_the_error_is_that_of_the_leaderboard(self):
        x, tasks = RNG.random(60) * 2, np.array(list("abcdef") * 10)
        for groups in (group_rows(tasks), group_rows(np.full(60, ""), tasks)):
            result = estimate_clustered_mean(x, groups, scale=1.0, correction="CR2")
            expected = estimate_means(x[:, None], groups)
            assert result.stderr == pytest.approx(expected.stderr_design[0], rel=1e-12)
            assert (result.low, result.high) == pytest.approx((expected.low[0], expected.high[0]), rel=1e-10)
        assert estimate_mean(x, scale=1.0).stderr == pytest.approx(expected.stderr[0], rel=1e-12)


class TestLaws:
    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(2, 30), elements=st.floats(-3, 3).map(lambda x: round(x, 2))))
    def test_clusters_of_one_prompt_change_nothing(self, d):
        item, second = estimate_mean(d, scale=3.0), estimate_clustered_mean(d, some("." * len(d)), scale=3.0)
        assert (item.mean, item.stderr, item.pvalue) == pytest.approx(
            (second.mean, second.stderr, second.pvalue), rel=1e-9
        )

    @settings(max_examples=40)
    @given(arrays(np.float64, st.integers(2, 12), elements=st.sampled_from([-1.0, 0.0, 0.5, 1.0])), st.randoms())
    def test_the_other_method_round_is_the_same_with_another_sign(self, d, random):
        names = "".join(random.choice("abc.") for _ in d)
        item, second = (estimate_clustered_mean(x, some(names), scale=1.0) for x in (d, -d))
        assert (item.mean, item.low, item.high) == pytest.approx((-second.mean, -second.high, -second.low), nan_ok=True)
        assert (item.stderr, item.pvalue) == pytest.approx((second.stderr, second.pvalue), nan_ok=True)

    def test_prompts_without_a_name_are_clusters_of_their_own(self):
        groups = some("b.a.ba")
        assert groups.codes.tolist() == [1, 2, 0, 3, 1, 0]
        assert (groups.sizes.tolist(), groups.n_groups, groups.n_alone) == ([2, 2, 1, 1], 4, 2)
        fewer = groups.rows(np.array([True, True, False, False, True, False]))
        assert (fewer.codes.tolist(), fewer.n_alone) == ([0, 1, 0], 1)

    @pytest.mark.parametrize(
        ("names", "problem"),
        [("aaa", "all prompts are in one cluster"), ("...", "no prompt has a cluster"), ("ab.", ""), ("a..", "")],
    )
    def test_why_there_are_no_clusters_is_reported(self, names, problem):
        assert some(names).problem == problem


class TestDegenerate:
    def test_one_prompt_has_no_error(self):
        result = estimate_mean(np.array([0.5]), scale=1.0)
        assert (result.mean, result.n_units) == (0.5, 1)
        assert np.isnan([result.stderr, result.low, result.high, result.pvalue]).all()

    def test_one_cluster_has_no_error(self):
        result = estimate_clustered_mean(np.array([0.5, 1.0]), some("aa"), scale=1.0)
        assert np.isnan([result.stderr, result.low, result.high, result.pvalue]).all()

    def test_equal_differences_have_the_pvalue_of_flipped_signs(self):
        d = np.array([0.3, 0.8, 0.6]) - np.array([0.2, 0.7, 0.5])  # not equal but for rounding
        assert d.std() > 0
        result = estimate_mean(d, scale=0.8)
        assert result.stderr == 0
        assert np.isnan([result.low, result.high]).all()
        assert result.pvalue == 2 / 2**3

    @pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
    def test_the_interval_of_equal_differences_holds_for_the_share_that_differs(self, share):
        n, worst = 20, 0.1 * (1 - share) - share  # the others have the difference -1
        result = estimate_mean(np.full(n, 0.1), scale=1.0, largest=1.0)
        probability = (1 - share) ** n  # of drawing only equal differences
        assert -1 <= result.low < result.mean < result.high <= 1
        assert result.low <= worst or probability <= 0.05

    def test_intervals_end_at_the_largest_possible_difference(self):
        d = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
        assert estimate_mean(d, scale=1.0).high > 1
        assert estimate_mean(d, scale=1.0, largest=1.0).high == 1
        assert estimate_clustered_mean(d, some("abcde"), scale=1.0, largest=1.0).high == 1

    def test_no_difference_has_p_1(self):
        assert estimate_mean(np.zeros(4), scale=1.0).pvalue == 1
        assert estimate_clustered_mean(np.array([1.0, -1.0, 1.0, -1.0]), some("aabb"), scale=1.0).pvalue == 1

    def test_clusters_that_report_the_same_have_the_pvalue_of_flipped_clusters(self):
        result = estimate_clustered_mean(np.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.5]), some("aabbcc"), scale=1.0)
        assert result.stderr == 0
        assert result.pvalue == 2 / 2**3

    def test_pvalues_have_no_nan_where_there_is_an_error(self):
        p = t_pvalues([0.1, 0.1, 0.0, 0.1], [0.1, 0.0, 0.0, NAN], [5, 5, 5, 5], 1.0)
        assert p[:3] == pytest.approx([2 * scipy.stats.t.sf(1, 4), 2 / 2**5, 1], rel=1e-10)
        assert np.isnan(p[3])

    def test_constant_scores_have_no_unpaired_error(self):
        assert unpaired_stderr(np.ones(3), np.zeros(3)) == 0
        assert np.isnan(unpaired_stderr(np.ones(1), np.zeros(3)))
