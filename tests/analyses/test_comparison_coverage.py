"""How often intervals hold the truth of simulated benchmarks, which is what their level says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from simulated_comparisons import MMLU_PRO_SIZES, binary_pair, clustered_binary, continuous_pair

from analyses.numerics.comparing.bootstrap import bca_interval, jackknife_means, resampled_means
from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.paired_differences import Correction, estimate_clustered_mean, estimate_mean
from tracker.statistics.rank_intervals import rank_intervals

EQUAL = (859,) * 14
"""As many clusters, and nearly as many prompts, as in MMLU-Pro."""
UNEQUAL = (6000,) + (300,) * 13
"""One cluster with 61 % of the prompts."""
Pair = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, float]]


def clusters(codes: np.ndarray) -> Grouping:
    return Grouping(codes=codes, sizes=np.bincount(codes), n_alone=0)


def naive_coverage(pair: Pair, n: int, n_benchmarks: int) -> float:
    content = []
    for seed in range(n_benchmarks):
        a, b, truth = pair(np.random.default_rng([1, seed]), n)
        result = estimate_mean(a - b, scale=1.0)
        content.append(result.low <= truth <= result.high)
    return float(np.mean(content))


def bca_coverage(pair: Pair, n: int, n_benchmarks: int, n_resamples: int) -> float:
    content, ones = [], np.ones(n)
    for seed in range(n_benchmarks):
        a, b, truth = pair(np.random.default_rng([2, seed]), n)
        drawn = resampled_means(a - b, ones, n_resamples=n_resamples, seed=seed)
        low, high = bca_interval(drawn, float((a - b).mean()), jackknife_means(a - b, ones))
        content.append(low <= truth <= high)
    return float(np.mean(content))


def clustered_coverage(
    sizes: tuple[int, ...], n_benchmarks: int, correction: Correction = "CR1", by_cluster: float = 0.25
) -> float:
    content = []
    for seed in range(n_benchmarks):
        rng = np.random.default_rng([3, seed])
        Q, codes, truth = clustered_binary(rng, sizes, np.array([0.45, 0.3]), by_cluster=by_cluster)
        result = estimate_clustered_mean(Q[:, 0] - Q[:, 1], clusters(codes), scale=1.0, correction=correction)
        content.append(result.low <= truth[0] - truth[1] <= result.high)
    return float(np.mean(content))


def rank_coverage(sizes: tuple[int, ...], n_benchmarks: int, *, clustered: bool) -> float:
    """How often all intervals at once hold every rank that the truth allows a model; models are tied in truth."""
    ability = np.array([0.1, 0.1, 0.1, 0.2, 0.35, 0.35, 0.6, 0.62, 0.9, 0.9])
    ahead = (ability[:, None] > ability).sum(axis=0)
    behind = (ability[:, None] < ability).sum(axis=0)
    content = []
    for seed in range(n_benchmarks):
        rng = np.random.default_rng([4, seed])
        Q, codes, _ = clustered_binary(rng, sizes, ability, by_cluster=0.25 if clustered else 0.0)
        groups = clusters(codes) if clustered else group_rows(np.full(len(codes), ""))
        result = rank_intervals(Q, groups, n_resamples=0)
        content.append(bool(((result.rank_low <= 1 + ahead) & (result.rank_high >= len(ability) - behind)).all()))
    return float(np.mean(content))


class TestFew:
    """A hundredth of what the soak measures: an interval that is far off is found at once."""

    @pytest.mark.parametrize("pair", [binary_pair, continuous_pair])
    def test_intervals_of_independent_prompts_hold_the_truth(self, pair):
        assert 0.9 <= naive_coverage(pair, 200, 400) <= 0.99
        assert 0.88 <= bca_coverage(pair, 100, 150, 199) <= 1

    def test_clustered_intervals_hold_the_truth_where_plain_ones_do_not(self):
        few = tuple(size // 10 for size in MMLU_PRO_SIZES)
        assert 0.9 <= clustered_coverage(few, 300, by_cluster=0.5) <= 0.99
        content = []
        for seed in range(100):
            Q, _, truth = clustered_binary(np.random.default_rng([5, seed]), few, np.array([0.45, 0.3]), by_cluster=0.5)
            result = estimate_mean(Q[:, 0] - Q[:, 1], scale=1.0)
            content.append(result.low <= truth[0] - truth[1] <= result.high)
        assert np.mean(content) < 0.6

    def test_where_one_cluster_holds_most_prompts_cr2_holds_the_truth_and_cr1_does_not(self):
        few = tuple(size // 10 for size in UNEQUAL)
        assert not clusters(np.repeat(np.arange(14), few)).is_even
        assert clustered_coverage(few, 200, "CR1", by_cluster=0.5) < 0.8
        assert clustered_coverage(few, 200, "CR2", by_cluster=0.5) >= 0.9

    @pytest.mark.parametrize("clustered", [True, False])
    def test_all_ranks_lie_in_their_intervals_at_once(self, clustered):
        assert rank_coverage(tuple(size // 10 for size in MMLU_PRO_SIZES), 150, clustered=clustered) >= 0.9


@pytest.mark.soak
class TestMany:
    @pytest.mark.parametrize("n", [60, 400])
    @pytest.mark.parametrize("pair", [binary_pair, continuous_pair])
    def test_naive_intervals_hold_the_truth_of_93_to_97_of_a_hundred_benchmarks(self, pair, n):
        result = naive_coverage(pair, n, 2000)
        print(f"\nnaive t, {pair.__name__}, {n} prompts: {result:.2%}")
        assert 0.93 <= result <= 0.97

    @pytest.mark.parametrize("n", [100, 400])
    def test_bca_intervals_do_so_for_skewed_scores(self, n):
        result = bca_coverage(continuous_pair, n, 2000, 1999)
        print(f"\nBCa, {n} prompts: {result:.2%}")
        assert 0.93 <= result <= 0.97

    @pytest.mark.parametrize("by_cluster", [0.0, 0.05, 0.25, 0.6])
    @pytest.mark.parametrize("sizes", [EQUAL, MMLU_PRO_SIZES])
    def test_clustered_intervals_do_so_with_fourteen_clusters(self, sizes, by_cluster):
        result = clustered_coverage(sizes, 2000, by_cluster=by_cluster)
        print(f"\nCR1, clusters of {min(sizes)} to {max(sizes)}, sd {by_cluster}: {result:.2%}")
        assert 0.93 <= result <= 0.97

    @pytest.mark.parametrize("by_cluster", [0.0, 0.25])
    def test_very_unequal_clusters_need_cr2(self, by_cluster):
        item, second = (clustered_coverage(UNEQUAL, 2000, by, by_cluster) for by in ("CR1", "CR2"))
        print(f"\none cluster of 61 %, sd {by_cluster}: CR1 {item:.2%}, CR2 {second:.2%}")
        assert item < 0.9
        assert second >= 0.93

    @pytest.mark.parametrize("clustered", [True, False])
    @pytest.mark.parametrize("sizes", [EQUAL, MMLU_PRO_SIZES])
    def test_all_ranks_lie_in_their_intervals_at_once_in_at_least_94_of_a_hundred(self, sizes, clustered):
        result = rank_coverage(sizes, 2000, clustered=clustered)
        print(f"\nall ranks at once, clusters of {min(sizes)} to {max(sizes)}, clustered {clustered}: {result:.2%}")
        assert result >= 0.94
