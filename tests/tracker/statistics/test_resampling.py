from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from scipy.stats import permutation_test

from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.continuous import compare_continuous
from analyses.numerics.similarity.score_table import ScoreTable
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.resampling import build_permutation_test

RNG = np.random.default_rng(7)
BINARY = (RNG.random((90, 8)) < RNG.random((90, 1))).astype(float)
GAPS = np.where(RNG.random(BINARY.shape) < 0.05, np.nan, BINARY)
CONTINUOUS = np.where(np.isnan(GAPS), np.nan, RNG.random(BINARY.shape))
ANALYSES = [
    partial(compare_binary, ScoreTable(BINARY), n_permutations=120, null="columns", seed=1),
    partial(compare_binary, ScoreTable(BINARY), n_permutations=120, null="margins", seed=1),
    partial(compare_binary, ScoreTable(GAPS), n_permutations=120, null="columns", seed=1),
    partial(compare_continuous, ScoreTable(CONTINUOUS), n_permutations=50, seed=1),
]


def everything(result) -> list[bytes]:
    comparisons = [c for test in result.tests for c in test.comparisons.values()]
    counts = [array.tobytes() for test in result.tests for array in (test.observed, test.pooled)]
    return [*counts, *(c.null.tobytes() for c in comparisons), repr([c.pvalue for c in comparisons]).encode()]


class TestAgainstReference:
    def test_pvalues_are_those_of_scipy(self):
        data = RNG.normal(size=(2, 6))

        def mean_difference(a, b, axis):
            return a.mean(axis=axis) - b.mean(axis=axis)

        peer = permutation_test(
            data, mean_difference, vectorized=True, n_resamples=500, alternative="greater", rng=np.random.default_rng(1)
        )
        observed, null = float(peer.statistic), np.asarray(peer.null_distribution)
        signs = np.where(np.abs(null - observed) < 1e-12, 0, np.sign(null - observed)).astype(np.int8)
        assert build_permutation_test(observed, null, signs).pvalue == pytest.approx(peer.pvalue)


class TestLaws:
    @given(st.lists(st.integers(-2, 2), min_size=1, max_size=40), st.integers(-2, 2))
    def test_pvalues_are_counts_over_draws_with_the_observed_among_them(self, null, observed):
        draws = np.array(null, float)
        c = build_permutation_test(observed, draws, np.sign(draws - observed).astype(np.int8))
        n = len(null) + 1
        assert c.pvalue == (1 + (draws >= observed).sum()) / n
        assert c.pvalue_lower == (1 + (draws <= observed).sum()) / n
        assert c.pvalue_mid == pytest.approx(c.pvalue - (1 + (draws == observed).sum()) / 2 / n)
        assert c.pvalue_two_sided == min(1, 2 * min(c.pvalue, c.pvalue_lower))
        assert bool(c.verdict) == (not c.reason and c.pvalue_two_sided <= 0.05)
        assert c.can_reject == (len(null) >= 39)

    def test_the_verdict_names_the_side(self):
        draws = np.arange(1.0, 100.0)
        for observed, verdict in ((200.0, 1), (98.5, 1), (96.5, 0), (3.5, 0), (1.5, -1), (0.0, -1)):
            assert build_permutation_test(observed, draws, np.sign(draws - observed).astype(np.int8)).verdict == verdict

    def test_one_value_over_and_over_is_discrete(self):
        signs = np.zeros(100, np.int8)
        assert build_permutation_test(1.0, np.ones(100), signs).is_discrete
        assert not build_permutation_test(1.0, np.arange(100.0), signs).is_discrete

    @given(st.integers(0, 200), st.integers(1, 60))
    def test_blocks_cover_every_index_once(self, n, size):
        assert [i for block in split_blocks(n, size) for i in block] == list(range(n))

    def test_results_come_in_the_order_of_the_blocks(self):
        with parallel_config(n_jobs=3, backend="threading"):
            assert map_blocks(lambda block: block * block, 20) == [b * b for b in range(20)]

    @pytest.mark.parametrize("run", ANALYSES)
    def test_any_number_of_threads_gives_the_same_bytes(self, run):
        alone = everything(run())
        for n_jobs in (2, 5):
            with parallel_config(n_jobs=n_jobs, backend="threading"):
                assert everything(run()) == alone

    def test_processes_give_the_same_bytes_as_threads(self):
        alone = [everything(run()) for run in ANALYSES]
        # So small a limit makes joblib hand over every array as a file.
        with parallel_config(n_jobs=2, backend="loky", max_nbytes=100):
            assert [everything(run()) for run in ANALYSES] == alone

    def test_another_seed_gives_other_draws(self):
        item = compare_binary(ScoreTable(BINARY), n_permutations=50, seed=1)
        second = compare_binary(ScoreTable(BINARY), n_permutations=50, seed=2)
        assert (item.tests[0].pooled != second.tests[0].pooled).any()
        assert (item.tests[0].observed == second.tests[0].observed).all()


def test_draws_that_all_agree_have_no_spread() -> None:
    null = np.full(1000, 20 / 29)
    comparison = build_permutation_test(0.7, null, np.full(1000, -1, dtype=np.int8))
    assert comparison.null_sd == 0.0
    assert comparison.null_mean == 20 / 29
