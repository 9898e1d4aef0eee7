"""Bounds of missing scores, against every completion of small tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from tracker.statistics.grouping import group_rows
from tracker.statistics.pairwise_differences import compare_all_pairs, compare_worst_cases
from tracker.statistics.rank_intervals import fill_bounds, rank_intervals
from tracker.statistics.ranking import mean_ranks

RNG = np.random.default_rng(17)
MAX_GAPS = 6
Table = NDArray[np.float64]


def independent(n: int):
    return group_rows(np.full(n, ""))


@st.composite
def tables_with_gaps(draw: st.DrawFn, scores: tuple[float, ...]) -> Table:
    """Tables of at least two rows in which each column has a score, and at most a few are missing."""
    shape = (draw(st.integers(2, 5)), draw(st.integers(2, 3)))
    Q = draw(arrays(np.float64, shape, elements=st.sampled_from(scores)))
    gaps = draw(st.lists(st.integers(0, Q.size - 1), max_size=MAX_GAPS, unique=True))
    Q.ravel()[gaps] = np.nan
    assume(not np.isnan(Q).all(axis=0).any())
    return Q


def completions(Q: Table, values: tuple[float, ...]) -> Iterator[Table]:
    gaps = np.argwhere(np.isnan(Q))
    for fill in itertools.product(values, repeat=len(gaps)):
        whole = Q.copy()
        whole[tuple(gaps.T)] = fill
        yield whole


KINDS = pytest.mark.parametrize(
    ("scores", "bounds", "fills"),
    [((0.0, 1.0), (0.0, 1.0), (0.0, 1.0)), ((-2.0, 0.5, 1.0, 3.0), (3.0, -2.0), (-2.0, 0.7, 3.0))],
    ids=["0/1", "bounded, smaller is better"],
)


class TestEveryCompletion:
    @KINDS
    @given(data=st.data())
    @settings(max_examples=25, deadline=None)
    def test_means_differences_and_ranks_stay_within_bounds_that_are_reached(self, scores, bounds, fills, data):
        Q = data.draw(tables_with_gaps(scores))
        sign = 1.0 if bounds[1] > bounds[0] else -1.0
        worst, best = (sign * filled.mean(axis=0) for filled in fill_bounds(Q, bounds))
        pairs = compare_worst_cases(Q, worst=bounds[0], best=bounds[1])
        least = sign * pairs.difference
        tables = list(completions(Q, fills))
        means = np.array([sign * whole.mean(axis=0) for whole in tables])
        differences = means[:, :, None] - means[:, None, :]
        assert means.min(axis=0) == pytest.approx(worst)
        assert means.max(axis=0) == pytest.approx(best)
        assert differences.min(axis=0) == pytest.approx(least)
        assert differences.max(axis=0) == pytest.approx(-least.T)
        ranks = np.array([mean_ranks(row) for row in means])
        surely_better = least > 1e-9
        assert (ranks.min(axis=0) >= 1 + surely_better.sum(axis=0)).all()
        assert (ranks.max(axis=0) <= Q.shape[1] - surely_better.sum(axis=1)).all()
        for i, j in itertools.permutations(range(Q.shape[1]), 2):
            assert bool((differences[:, i, j] > 1e-9).all()) == bool(surely_better[i, j])

    @KINDS
    @given(data=st.data())
    @settings(max_examples=15, deadline=None)
    def test_the_mean_and_rank_of_a_resample_stay_within_the_bootstrap_interval(self, scores, bounds, fills, data):
        Q = data.draw(tables_with_gaps(scores))
        options = {"higher_is_better": bounds[1] > bounds[0], "n_resamples": 15}
        result = rank_intervals(Q, independent(len(Q)), bounds=bounds, **options)
        for whole in itertools.islice(completions(Q, fills), 40):
            drawn = rank_intervals(whole, independent(len(Q)), **options)
            assert (result.bootstrap_low <= drawn.bootstrap_low).all()
            assert (result.bootstrap_high >= drawn.bootstrap_high).all()


class TestAgainstReference:
    @pytest.mark.parametrize("seed", range(4))
    def test_a_model_outranks_another_if_its_worst_case_is_significant(self, seed):
        rng = np.random.default_rng(seed)
        Q = (rng.random((90, 6)) < np.linspace(0.15, 0.95, 6)).astype(float)
        Q[rng.random(Q.shape) < np.array([0, 0.05, 0, 0.1, 0.02, 0])] = np.nan
        result = rank_intervals(Q, independent(90), bounds=(0, 1), n_resamples=0)
        worst, best = np.where(np.isnan(Q), 0, Q), np.where(np.isnan(Q), 1, Q)
        pairs = list(itertools.combinations(range(6), 2))
        p, first = [], []
        for pair in pairs:
            ahead = [(i, j) for i, j in (pair, pair[::-1]) if worst[:, i].mean() > best[:, j].mean()]
            first.append(ahead[0] if ahead else None)
            p.append(scipy.stats.ttest_rel(worst[:, ahead[0][0]], best[:, ahead[0][1]]).pvalue if ahead else 1.0)
        better = np.zeros((6, 6), dtype=bool)
        for order, rejected in zip(first, multipletests(p, 0.05, method="holm")[0], strict=True):
            if rejected and order is not None:
                better[order] = True
        assert result.better.any()
        assert (result.better == better).all()
        assert (result.rank_low, result.rank_high) == (
            pytest.approx(1 + better.sum(axis=0)),
            pytest.approx(6 - better.sum(axis=1)),
        )
        assert (result.rank_low <= result.rank).all()
        assert (result.rank <= result.rank_high).all()

    def test_a_model_that_leads_whatever_it_lacks_is_first(self):
        Q = (RNG.random((400, 3)) < [0.9, 0.5, 0.5]).astype(float)
        Q[:8, 0] = np.nan
        result = rank_intervals(Q, independent(400), bounds=(0, 1), n_resamples=50)
        assert (result.rank_low[0], result.rank_high[0]) == (1, 1)
        assert (result.bootstrap_low[0], result.bootstrap_high[0]) == (1, 1)

    def test_the_interval_of_a_mean_unites_both_completions(self):
        Q = (RNG.random((60, 2)) < 0.6).astype(float)
        Q[:7, 0] = np.nan
        groups = group_rows(RNG.integers(0, 6, 60).astype(str))
        result = rank_intervals(Q, groups, bounds=(0, 1), n_resamples=0)
        worst, best = (rank_intervals(whole, groups, n_resamples=0) for whole in fill_bounds(Q, (0, 1)))
        assert result.low.tolist() == np.minimum(worst.low, best.low).tolist()
        assert result.high.tolist() == np.maximum(worst.high, best.high).tolist()


class TestLaws:
    def test_tables_without_gaps_are_compared_as_without_bounds(self):
        Q, groups = RNG.random((40, 4)), group_rows(RNG.integers(0, 5, 40).astype(str))
        assert compare_worst_cases(Q, groups, worst=0, best=1).difference.tolist() == (
            compare_all_pairs(Q, groups).difference.tolist()
        )
        bounded, plain = (rank_intervals(Q, groups, bounds=bounds, n_resamples=20) for bounds in ((0, 1), None))
        assert bounded.holm == pytest.approx(plain.holm, nan_ok=True)
        assert bounded.bootstrap_high.tolist() == plain.bootstrap_high.tolist()

    @given(data=st.data())
    @settings(max_examples=25, deadline=None)
    def test_one_score_more_never_widens_a_point_bound(self, data):
        Q = data.draw(tables_with_gaps((0.0, 1.0)))
        gaps = np.argwhere(np.isnan(Q))
        assume(len(gaps) > 0)
        known = Q.copy()
        known[tuple(gaps[0])] = data.draw(st.sampled_from((0.0, 1.0)))
        wide, narrow = (compare_worst_cases(table, worst=0, best=1).difference for table in (Q, known))
        assert (narrow >= wide - 1e-12).all()
