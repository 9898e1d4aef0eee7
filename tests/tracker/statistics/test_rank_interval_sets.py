from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from joblib import parallel_config
from statsmodels.stats.multitest import multipletests

from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals.means import estimate_means
from tracker.statistics.rank_intervals import rank_intervals, rank_rows, tie_groups
from tracker.statistics.ranking import mean_ranks

RNG = np.random.default_rng(10)


def independent(n: int):
    return group_rows(np.full(n, ""))


def tables(most_rows: int, most_columns: int, scores: list[float]) -> st.SearchStrategy[np.ndarray]:
    shape = st.tuples(st.integers(1, most_rows), st.integers(1, most_columns))
    return arrays(np.float64, shape, elements=st.sampled_from(scores))


def slow_groups(rank: np.ndarray, better: np.ndarray) -> list[tuple[int, ...]]:
    """Every run of two models or more without a separable pair, less those inside another one."""
    order = np.argsort(rank, kind="stable").tolist()
    runs = [
        tuple(order[start:end])
        for start, end in itertools.combinations(range(len(order) + 1), 2)
        if end - start > 1 and not better[np.ix_(order[start:end], order[start:end])].any()
    ]
    return [run for run in runs if not any(set(run) < set(second) for second in runs)]


def slow_intervals(Q: np.ndarray, alpha: float) -> tuple[list[int], list[int]]:
    """Pair by pair through SciPy and statsmodels."""
    k = Q.shape[1]
    pairs = list(itertools.combinations(range(k), 2))
    p = [scipy.stats.ttest_rel(Q[:, i], Q[:, j]).pvalue for i, j in pairs]
    low, high = [1] * k, [k] * k
    for (i, j), separate in zip(pairs, multipletests(p, alpha, method="holm")[0].tolist(), strict=True):
        if separate:
            first, second = (i, j) if Q[:, i].mean() > Q[:, j].mean() else (j, i)
            low[second] += 1
            high[first] -= 1
    return low, high


class TestAgainstReference:
    @pytest.mark.parametrize("seed", range(6))
    def test_intervals_are_those_of_every_pair_tested_alone(self, seed):
        rng = np.random.default_rng(seed)
        Q = (rng.random((150, 7)) < np.linspace(0.3, 0.8, 7) ** (1 + seed % 2)).astype(float)
        result = rank_intervals(Q, independent(150), n_resamples=0)
        assert (result.rank_low.tolist(), result.rank_high.tolist()) == slow_intervals(Q, 0.05)
        assert result.n_separable_pairs == sum(low - 1 for low in result.rank_low.tolist())

    @settings(max_examples=60)
    @given(
        arrays(
            np.float64, st.tuples(st.just(12), st.integers(2, 4)), elements=st.sampled_from([0.0, 0.5, 1.0, np.nan])
        ),
        st.booleans(),
        st.booleans(),
    )
    def test_no_p_value_is_smaller_than_that_of_the_prompts_that_differ(self, scores, is_stratified, has_bounds):
        Q = scores if has_bounds else np.nan_to_num(scores)
        groups = group_rows(np.full(12, ""), np.array(list("aaabbbcccddd"))) if is_stratified else independent(12)
        result = rank_intervals(Q, groups, bounds=(0, 1) if has_bounds else None, n_resamples=0)
        for i, j in np.argwhere(result.better):
            worst, best = np.where(np.isnan(Q[:, i]), 0, Q[:, i]), np.where(np.isnan(Q[:, j]), 1, Q[:, j])
            assert result.pvalues[i, j] >= 2.0 ** (1 - (worst != best).sum())
            assert worst.mean() > best.mean()

    def test_five_prompts_that_differ_decide_nothing_whatever_the_strata(self):
        strata = np.array(list("aaaaabbbbbcccccddddd"))
        Q = np.column_stack([strata == "a", np.zeros(20)]).astype(float)
        for scores in (Q, 0.5 * Q):
            result = rank_intervals(scores, group_rows(np.full(20, ""), strata), bounds=(0, 1), n_resamples=0)
            assert result.first_holm == pytest.approx(2 / 2**5)

    @settings(max_examples=60)
    @given(st.integers(1, 8).flatmap(lambda k: arrays(np.bool_, (k, k))), st.randoms())
    def test_groups_are_the_maximal_runs(self, marks, random):
        k = len(marks)
        rank = np.array(random.sample(range(1, k + 1), k), dtype=float)
        better = marks & (rank[:, None] < rank[None, :])
        assert list(tie_groups(rank, better)) == slow_groups(rank, better)

    @settings(max_examples=40)
    @given(
        arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.sampled_from([0.1, 0.2, 0.3]))
    )
    def test_ranks_of_many_rows_are_those_of_each(self, scores):
        assert rank_rows(scores, 1e-12).tolist() == [mean_ranks(row).tolist() for row in scores]

    def test_bootstrap_ranks_are_those_of_slow_resamples(self):
        Q = (RNG.random((80, 5)) < [0.4, 0.5, 0.55, 0.6, 0.9]).astype(float)
        result = rank_intervals(Q, independent(80), n_resamples=4000)
        slow = [mean_ranks(Q[RNG.integers(0, 80, 80)].mean(axis=0)) for _ in range(4000)]
        ends = np.quantile(slow, [0.025, 0.975], axis=0, method="inverted_cdf")
        assert np.abs(result.bootstrap_low - ends[0]).max() <= 0.5
        assert np.abs(result.bootstrap_high - ends[1]).max() <= 0.5

    def test_intervals_of_means_are_those_of_the_leaderboard(self):
        Q, tasks = RNG.random((60, 3)), np.array(list("abcdef") * 10)
        for groups in (group_rows(tasks), independent(60), group_rows(np.full(60, ""), tasks)):
            result = rank_intervals(Q, groups, bounds=(0, 1), n_resamples=0)
            expected = estimate_means(Q, groups, bounds=(0, 1))
            assert (result.low == expected.low).all()
            assert (result.high == expected.high).all()


class TestLaws:
    @settings(max_examples=30)
    @given(
        arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.sampled_from([0.0, 1.0])),
        st.randoms(),
    )
    def test_every_rank_lies_in_its_interval_and_the_order_of_models_does_not_matter(self, Q, random):
        names = np.array([random.choice(["a", "b", ""]) for _ in Q])
        result = rank_intervals(Q, group_rows(names), n_resamples=20)
        assert (result.rank_low <= result.rank).all()
        assert (result.rank <= result.rank_high).all()
        order = np.array(random.sample(range(Q.shape[1]), Q.shape[1]))
        turned = rank_intervals(Q[:, order], group_rows(names), n_resamples=20)
        assert turned.rank_low.tolist() == result.rank_low[order].tolist()
        assert turned.rank_high.tolist() == result.rank_high[order].tolist()
        assert turned.bootstrap_low.tolist() == result.bootstrap_low[order].tolist()
        lower = rank_intervals(-Q, group_rows(names), higher_is_better=False, n_resamples=20)
        assert lower.rank_low.tolist() == result.rank_low.tolist()
        assert lower.bootstrap_high.tolist() == result.bootstrap_high.tolist()

    def test_identical_models_are_never_distinguished(self):
        item = (RNG.random(300) < 0.3).astype(float)
        Q = np.stack([item, (RNG.random(300) < 0.9).astype(float), item], axis=1)
        result = rank_intervals(Q, independent(300))
        assert result.groups == ((0, 2),)
        assert result.rank_low.tolist() == [2, 1, 2]
        assert result.bootstrap_low.tolist() == [2.5, 1.0, 2.5]

    def test_the_same_seed_gives_the_same_bytes_for_any_number_of_workers(self):
        Q = RNG.random((50, 4))
        result = rank_intervals(Q, independent(50), seed=3)
        with parallel_config(n_jobs=2):
            again = rank_intervals(Q, independent(50), seed=3)
        assert again.bootstrap_low.tobytes() == result.bootstrap_low.tobytes()
        assert again.bootstrap_high.tobytes() == result.bootstrap_high.tobytes()

    def test_a_stricter_level_never_narrows_an_interval(self):
        Q = (RNG.random((200, 6)) < np.linspace(0.4, 0.6, 6)).astype(float)
        width = [
            result.rank_high - result.rank_low
            for result in (
                rank_intervals(Q, independent(200), level=level, n_resamples=0) for level in (0.5, 0.9, 0.999)
            )
        ]
        assert (width[0] <= width[1]).all()
        assert (width[1] <= width[2]).all()


class TestDegenerate:
    def test_one_prompt_reports_nothing_separate(self):
        result = rank_intervals(np.array([[0.0, 1.0, 0.5]]), independent(1))
        assert result.rank_low.tolist() == [1, 1, 1]
        assert result.rank_high.tolist() == [3, 3, 3]
        assert np.isnan(result.low).all()

    def test_one_model_has_rank_1(self):
        result = rank_intervals(np.array([[0.0], [1.0]]), independent(2))
        assert (result.rank_low.tolist(), result.rank_high.tolist(), result.groups) == ([1], [1], ())
        assert result.n_pairs == 0

    def test_models_that_differ_by_the_same_on_all_of_many_prompts_are_distinguished(self):
        Q = np.column_stack([np.ones(20), np.zeros(20)])
        assert rank_intervals(Q, independent(20), n_resamples=0).n_separable_pairs == 1
        assert rank_intervals(Q[:4], independent(4), n_resamples=0).n_separable_pairs == 0  # 2 / 2**4 is 0.125


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_bootstrap_ranks_are_percentiles_of_ranks_in_resampled_clusters(level):
    rng = np.random.default_rng(4)
    sizes = rng.integers(3, 9, 12)
    codes = np.repeat(np.arange(12), sizes)
    Q = rng.normal(size=(12, 5))[codes] + rng.normal(size=(len(codes), 5)) + np.array([0, 0.3, 0.5, 0.9, 3])
    result = rank_intervals(Q, group_rows(codes.astype(str)), level=level, n_resamples=4000)
    sums = np.array([Q[codes == code].sum(axis=0) for code in range(12)])
    ranks = [
        scipy.stats.rankdata(-sums[drawn].sum(axis=0) / sizes[drawn].sum())
        for drawn in rng.integers(0, 12, (20000, 12))
    ]
    ends = [(1 - level) / 2, (1 + level) / 2]
    expected = np.quantile(ranks, ends, axis=0, method="inverted_cdf")
    assert result.bootstrap_low.tolist() == expected[0].tolist()
    assert result.bootstrap_high.tolist() == expected[1].tolist()
