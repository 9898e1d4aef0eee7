from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from null_draws import draw_tables
from plain_reference import similarities
from plain_weights import weighted_distances, weighted_pairs, weighted_percentile, weighted_statistics
from strategies import binary_tables, binary_tables_with_gaps, continuous_tables, continuous_tables_with_gaps

from analyses.numerics.similarity import binary as binary_similarity
from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.continuous import compare_continuous
from analyses.numerics.similarity.cosines import cosine_passes, expected_bins
from analyses.numerics.similarity.pairs import pair_counter
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import BY_NAME, SIMILARITIES
from analyses.numerics.similarity.weighted_distributions import describe_masses

RNG = np.random.default_rng(21)
ANY_BINARY = st.one_of(binary_tables(), binary_tables_with_gaps())
ANY_CONTINUOUS = st.one_of(continuous_tables(), continuous_tables_with_gaps())


def some_weights(table: np.ndarray, seed: int) -> np.ndarray:
    """Weights between a tenth and ten, of mean 1."""
    weights = np.exp(np.random.default_rng(seed).uniform(-2.3, 2.3, len(table)))
    return weights / weights.mean()


def by_name(result) -> dict:
    return {test.name: test for test in result.tests}


def every_array(result) -> list[np.ndarray]:
    arrays = [
        array for t in result.tests for array in (t.observed, t.pooled, *(c.null for c in t.comparisons.values()))
    ]
    counted = [np.array([(c.n_greater, c.n_equal) for c in t.comparisons.values()]) for t in result.tests]
    return [*arrays, *counted, *result.mean_to_others.values()]


def same_bytes(first, second) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(every_array(first), every_array(second), strict=True))


class TestAgainstReference:
    @pytest.mark.parametrize("null", ["columns", "margins"])
    @settings(max_examples=30)
    @given(table=ANY_BINARY, seed=st.integers(0, 99))
    def test_binary_statistics_of_all_draws_are_those_of_the_loops(self, null, table, seed):
        weights = some_weights(table, seed)
        result = compare_binary(ScoreTable(table, weights), n_permutations=8, null=null, seed=seed)
        drawn = draw_tables(table, null, 8, seed)
        for test in result.tests:
            samples = [weighted_pairs(t, weights, test.name) for t in (table, *drawn)]
            assert test.observed.sum() == pytest.approx(samples[0][1].sum(), rel=1e-12)
            assert test.pooled.sum() == pytest.approx(sum(masses.sum() for _, masses in samples[1:]), rel=1e-12)
            if not all(values.size for values, _ in samples):
                continue
            expected = [weighted_statistics(*sample) for sample in samples]
            for first, distance in zip(expected, weighted_distances(samples), strict=True):
                first["ks_d"] = distance
            for name, comparison in test.comparisons.items():
                actual, null_values = expected[0][name], np.array([first[name] for first in expected[1:]])
                assert comparison.observed == pytest.approx(actual, abs=1e-11)
                assert comparison.null == pytest.approx(null_values, abs=1e-11)
                assert comparison.n_equal == (np.abs(null_values - actual) < 1e-10).sum()
                assert comparison.n_greater == (null_values > actual + 1e-10).sum()

    @settings(max_examples=40)
    @given(table=ANY_CONTINUOUS, seed=st.integers(0, 99))
    def test_continuous_statistics_are_those_of_the_loops(self, table, seed):
        weights = some_weights(table, seed)
        for test in compare_continuous(ScoreTable(table, weights), n_permutations=1, seed=0).tests:
            values, masses = weighted_pairs(table, weights, test.name)
            assert test.observed.sum() == pytest.approx(masses.sum(), rel=1e-12)
            if values.size:
                values = np.round(values, 13)
                for name, value in weighted_statistics(values, masses).items():
                    assert test.comparisons[name].observed == pytest.approx(value, abs=1e-9)

    def test_continuous_draws_are_shuffled_columns_under_the_same_weights(self):
        table = np.round(RNG.random((30, 5)), 3) * (RNG.random((30, 5)) < 0.6)
        weights = some_weights(table, 3)
        result = by_name(compare_continuous(ScoreTable(table, weights), n_permutations=5, seed=2))
        assert set(result) == {"cosine", "cosine_nonzero"}
        plain = by_name(compare_continuous(ScoreTable(table), n_permutations=5, seed=2))
        for name, test in result.items():
            assert test.comparisons["mean"].null != pytest.approx(plain[name].comparisons["mean"].null, abs=1e-6)
            near = np.cumsum(test.observed) / test.observed.sum()
            values, masses = weighted_pairs(table, weights, name)
            edges = test.values + test.width
            share = [masses[values < edge - 1e-9].sum() / masses.sum() for edge in edges[::997]]
            assert near[::997] == pytest.approx(share, abs=1e-9)

    @settings(max_examples=40)
    @given(
        table=st.one_of(binary_tables_with_gaps(max_prompts=20), binary_tables(max_prompts=20)), seed=st.integers(0, 9)
    )
    def test_both_weighing_kernels_agree(self, table, seed):
        counter = PairCounter.create(ScoreTable(table, some_weights(table, seed)), SIMILARITIES)
        by_pattern = counter.count(counter.packed.bits)
        pair_by_pair = counter.count_pair_by_pair(counter.packed.bits)
        for first, second in zip(by_pattern, pair_by_pair, strict=True):
            assert first == pytest.approx(second, rel=1e-12, abs=0)

    @pytest.mark.parametrize("k", [3, 14, 70, 130])
    def test_both_weighing_kernels_agree_on_wide_tables_with_gaps(self, k):
        table = (RNG.random((90, k)) < RNG.random((90, 1))).astype(float)
        table[:30, 0] = np.nan
        table[20:50, -1] = np.nan
        counter = PairCounter.create(ScoreTable(table, some_weights(table, k)), SIMILARITIES)
        pair_by_pair = counter.count_pair_by_pair(counter.packed.bits)
        for first, second in zip(counter.count(counter.packed.bits), pair_by_pair, strict=True):
            assert first == pytest.approx(second, rel=1e-12, abs=0)

    @settings(max_examples=30)
    @given(table=ANY_BINARY, seed=st.integers(0, 9))
    def test_mean_to_others_weighs_the_others(self, table, seed):
        weights = some_weights(table, seed)
        means = compare_binary(ScoreTable(table, weights), n_permutations=1, seed=0).mean_to_others
        present = ~np.isnan(table)
        for i in range(len(table)):
            rest = [j for j in range(len(table)) if j != i and (present[i] & present[j]).any()]
            for name, values in means.items():
                pairs = [similarities(table[[i, j]], name)[0] for j in rest]
                expected = np.average(pairs, weights=weights[rest]) if rest else np.nan
                assert values[i] == pytest.approx(expected, abs=1e-12, nan_ok=True)

    def test_continuous_mean_to_others_weighs_the_others(self):
        table = np.round(RNG.random((12, 4)), 2)
        table[3] = 0
        weights = some_weights(table, 5)
        means = compare_continuous(ScoreTable(table, weights), n_permutations=1, seed=0).mean_to_others["cosine"]
        for i in range(12):
            rest = [j for j in range(12) if j != i]
            pairs = [similarities(table[[i, j]], "cosine")[0] for j in rest]
            assert means[i] == pytest.approx(np.average(pairs, weights=weights[rest]), abs=1e-12)


class TestLaws:
    @settings(max_examples=30)
    @given(data=st.data())
    def test_whole_weights_are_prompts_repeated_without_pairs_of_a_prompt_and_itself(self, data):
        table = data.draw(ANY_BINARY)
        times = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(table), max_size=len(table))))
        copies = np.repeat(np.arange(len(table)), times)
        repeated, present = table[copies], ~np.isnan(table[copies])
        separate = [
            (i, j)
            for i, j in combinations(range(len(repeated)), 2)
            if copies[i] != copies[j] and (present[i] & present[j]).any()
        ]
        for test in compare_binary(ScoreTable(table, times / times.mean()), n_permutations=1, seed=0).tests:
            if test.name == "cosine_nonzero" or not separate:
                continue
            values = np.array([similarities(repeated[[i, j]], test.name)[0] for i, j in separate])
            result = test.comparisons
            assert result["mean"].observed == pytest.approx(values.mean(), abs=1e-12)
            assert result["variance"].observed == pytest.approx(values.var(), abs=1e-12)
            for name, share in (("p75", 75), ("p95", 95)):
                expected = np.percentile(values, share, method="inverted_cdf")
                assert result[name].observed == pytest.approx(expected, abs=1e-12)

    @settings(max_examples=30)
    @given(table=ANY_BINARY, seed=st.integers(0, 9), factor=st.floats(1e-3, 1e3))
    def test_the_unit_of_weights_does_not_matter(self, table, seed, factor):
        weights = some_weights(table, seed)
        first = compare_binary(ScoreTable(table, weights), n_permutations=10, seed=0)
        second = compare_binary(ScoreTable(table, weights * factor), n_permutations=10, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            for name in a.comparisons:
                assert a.comparisons[name].observed == pytest.approx(
                    b.comparisons[name].observed, abs=1e-11, nan_ok=True
                )
                assert a.comparisons[name].pvalue == b.comparisons[name].pvalue

    @settings(max_examples=30)
    @given(table=ANY_CONTINUOUS, seed=st.integers(0, 9))
    def test_a_power_of_two_as_unit_changes_no_bit_of_a_continuous_statistic(self, table, seed):
        weights = some_weights(table, seed)
        first = compare_continuous(ScoreTable(table, weights), n_permutations=5, seed=0)
        second = compare_continuous(ScoreTable(table, 4 * weights), n_permutations=5, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            for name in a.comparisons:
                assert a.comparisons[name].null.tobytes() == b.comparisons[name].null.tobytes()

    @settings(max_examples=30)
    @given(table=ANY_BINARY, seed=st.integers(0, 9), random=st.randoms(use_true_random=False))
    def test_order_of_prompts_and_models_does_not_matter(self, table, seed, random):
        rows, columns = list(range(table.shape[0])), list(range(table.shape[1]))
        random.shuffle(rows)
        random.shuffle(columns)
        weights = some_weights(table, seed)
        first = compare_binary(ScoreTable(table, weights), n_permutations=1, seed=0)
        second = compare_binary(ScoreTable(table[rows][:, columns], weights[rows]), n_permutations=1, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            assert a.observed == pytest.approx(b.observed, rel=1e-12, abs=0)
        for name, means in first.mean_to_others.items():
            assert means[rows] == pytest.approx(second.mean_to_others[name], abs=1e-12, nan_ok=True)

    @settings(max_examples=30)
    @given(table=ANY_CONTINUOUS, seed=st.integers(0, 9), random=st.randoms(use_true_random=False))
    def test_order_does_not_matter_to_continuous_tables(self, table, seed, random):
        rows = list(range(table.shape[0]))
        random.shuffle(rows)
        weights = some_weights(table, seed)
        first = compare_continuous(ScoreTable(table, weights), n_permutations=1, seed=0)
        second = compare_continuous(ScoreTable(table[rows], weights[rows]), n_permutations=1, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            for name in ("mean", "p75", "p95", "variance"):
                actual, expected = a.comparisons[name].observed, b.comparisons[name].observed
                assert actual == pytest.approx(expected, abs=1e-12, nan_ok=True)

    @pytest.mark.parametrize("n_jobs", [2, 5])
    def test_any_number_of_workers_gives_the_same_bytes(self, n_jobs):
        table = (RNG.random((60, 9)) < 0.5).astype(float)
        table[:9, 2] = np.nan
        weights = some_weights(table, 1)
        runs = (
            lambda: compare_binary(ScoreTable(table, weights), n_permutations=120, seed=3),
            lambda: compare_continuous(ScoreTable(table * 0.7, weights), n_permutations=45, seed=3),
        )
        for run in runs:
            alone = run()
            with parallel_config(n_jobs=n_jobs, backend="threading"):
                assert same_bytes(alone, run())

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("null", ["columns", "margins"])
    def test_counting_draws_again_gives_the_bytes_of_keeping_them(self, monkeypatch, weighted, null):
        table = (RNG.random((60, 9)) < 0.5).astype(float)
        scores = ScoreTable(table, some_weights(table, 1) if weighted else None)
        monkeypatch.setattr(binary_similarity, "MAX_BLOCKS", 2)
        kept = compare_binary(scores, n_permutations=170, null=null, seed=3)
        monkeypatch.setattr(binary_similarity, "MAX_KEPT", 0)
        assert same_bytes(kept, compare_binary(scores, n_permutations=170, null=null, seed=3))

    def test_blocks_without_counts_keep_no_counts_in_memory(self):
        counts = np.arange(40, dtype=np.int64).reshape(4, 10)
        arrays = counts, counts, counts[0], np.zeros((4, 1, 4)), np.zeros((4, 1, 4), np.int8), counts[:, 0]
        block = binary_similarity.DrawBlock(np.arange(10, dtype=np.int32), *arrays, differs=True).without_counts()
        assert block.sides is counts
        for part in (block.used, block.counts, block.total):
            assert part.size == 0
            assert part.base is None

    @pytest.mark.parametrize("is_weighted", [False, True])
    @pytest.mark.parametrize("n_rows", [7, 40, 150])
    def test_collecting_percentiles_in_the_first_pass_gives_the_bytes_of_a_second_pass(
        self, monkeypatch, n_rows, is_weighted
    ):
        rng = np.random.default_rng(n_rows)
        table = rng.beta(0.5, 1, (n_rows, 9))
        table[rng.random(table.shape) < 0.2] = 0
        weights = rng.gamma(2, 1, n_rows) if is_weighted else None
        passes = []
        for kernel in ("bin_cosines", "bin_rounded"):
            count = getattr(cosine_passes, kernel)
            monkeypatch.setattr(cosine_passes, kernel, lambda *a, count=count: passes.append(1) or count(*a))
        first = compare_continuous(ScoreTable(table, weights), n_permutations=200, seed=1)
        n_passes = len(passes)
        for name, value in (("MARGIN", 0), ("MIN_ROOM", 1)):
            monkeypatch.setattr(expected_bins, name, value)
        assert same_bytes(first, compare_continuous(ScoreTable(table, weights), n_permutations=200, seed=1))
        monkeypatch.setattr(expected_bins.ExpectedBins, "_holds", lambda *_: False)
        passes.clear()
        assert same_bytes(first, compare_continuous(ScoreTable(table, weights), n_permutations=200, seed=1))
        assert n_passes < len(passes) == 2 * 201 + 1

    def test_many_patterns_of_missing_cells_give_the_same_test(self, monkeypatch):
        table = (RNG.random((60, 9)) < 0.5).astype(float)
        table[RNG.random(table.shape) < 0.05] = np.nan
        weights = some_weights(table, 4)
        first = compare_binary(ScoreTable(table, weights), n_permutations=30, seed=3)
        monkeypatch.setattr(pair_counter, "MAX_PATTERNS", 0)
        second = compare_binary(ScoreTable(table, weights), n_permutations=30, seed=3)
        for a, b in zip(first.tests, second.tests, strict=True):
            for name in a.comparisons:
                assert a.comparisons[name].null == pytest.approx(b.comparisons[name].null, abs=1e-12)
                assert a.comparisons[name].pvalue == b.comparisons[name].pvalue

    def test_the_mean_hamming_similarity_is_a_function_of_weighted_shares_right(self):
        """What the statistics page says of it: it looks at each model by itself."""
        table = (RNG.random((25, 6)) < 0.5).astype(float)
        w = some_weights(table, 2)
        result = by_name(compare_binary(ScoreTable(table, w), n_permutations=20, seed=0))["hamming"].comparisons["mean"]
        right = w @ table
        expected = 1 - 2 * (right * (w.sum() - right)).mean() / (w.sum() ** 2 - (w**2).sum())
        assert result.observed == pytest.approx(expected, abs=1e-12)
        assert not result.reason
        assert np.ptp(result.null) > 1e-4

    def test_the_variance_of_row_sums_is_weighted(self):
        table = (RNG.random((25, 6)) < 0.5).astype(float)
        w, sums = some_weights(table, 2), table.sum(axis=1)
        expected = np.average((sums - np.average(sums, weights=w)) ** 2, weights=w)
        for null in ("columns", "margins"):
            result = compare_binary(ScoreTable(table, w), n_permutations=20, null=null, seed=0).row_sums
            assert result.observed == pytest.approx(expected, rel=1e-12)
            assert bool(result.reason) == (null == "margins")

    def test_one_model_that_varies_is_no_test(self):
        table = np.column_stack([np.arange(20.0) % 2, np.ones(20)])
        w = some_weights(table, 2)
        for scale, run in ((1.0, compare_binary), (0.5, compare_continuous)):
            for test in run(ScoreTable(table * scale, w), n_permutations=20, seed=0).tests:
                assert all("heavy and light" in c.reason for c in test.comparisons.values())

    def test_percentiles_reach_their_share_in_spite_of_rounding(self):
        """Three quarters of the weight lie at or below the second value, though the sum of tenths falls short."""
        masses = np.array([[0.1 + 0.2 + 0.3, 0.15, 0.25]])
        assert describe_masses(masses, np.array([0.2, 0.4, 0.9]))[0, 1] == 0.4
        assert weighted_percentile(np.array([0.2, 0.4, 0.9]), masses[0], 0.75) == 0.4

    def test_nothing_to_weigh_has_no_statistics(self):
        assert np.isnan(describe_masses(np.zeros((1, 3)), np.array([0.0, 0.5, 1.0]))).all()

    def test_similarities_are_those_without_weights_where_all_weigh_the_same(self):
        """Up to rounding, and up to the rule for percentiles."""
        table = (RNG.random((40, 7)) < 0.5).astype(float)
        first = by_name(compare_binary(ScoreTable(table, np.ones(40)), n_permutations=20, seed=0))
        second = by_name(compare_binary(ScoreTable(table), n_permutations=20, seed=0))
        for name in BY_NAME:
            for statistic in ("mean", "variance", "ks_d"):
                a, b = first[name].comparisons[statistic], second[name].comparisons[statistic]
                assert a.null == pytest.approx(b.null, abs=1e-12)
