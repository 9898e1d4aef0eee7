from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analyses.numerics.growth.trajectories import MAX_SIZES, choose_sizes, draw_order, follow_order, stack_trajectories
from tracker.statistics.ranking import kendall_distance, mean_ranks
from tracker.statistics.rng_streams import stream_key

RNG = np.random.default_rng(5)


def plain(Q: np.ndarray, weights: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means at every size, and the distance of the ranking by them to the final one, each from the beginning."""
    means = np.array([np.average(Q[order[:m]], axis=0, weights=weights[order[:m]]) for m in range(1, len(Q) + 1)])
    ranks = [mean_ranks(row) for row in means]
    return means, np.array([kendall_distance(rank, ranks[-1]) for rank in ranks])


class TestAgainstReference:
    @pytest.mark.parametrize(
        ("Q", "weights"),
        [
            ((RNG.random((70, 6)) < 0.5).astype(float), np.ones(70)),
            ((RNG.random((40, 9)) < 0.5).astype(float), RNG.random(40) + 0.1),
            (RNG.random((60, 5)), np.ones(60)),
            (RNG.normal(size=(60, 5)), RNG.random(60) + 0.1),
            (RNG.integers(0, 3, (50, 7)) / 10, np.ones(50)),
            (np.zeros((10, 4)), np.ones(10)),
            (RNG.random((10, 1)), np.ones(10)),
        ],
    )
    def test_means_and_distances_are_those_computed_at_every_size(self, Q, weights):
        order, sizes = RNG.permutation(len(Q)), np.arange(1, len(Q) + 1)
        means, distances = plain(Q, weights, order)
        result = follow_order(Q, weights, order, sizes)
        assert result.means == pytest.approx(means, rel=1e-12, abs=1e-15)
        assert result.distances == pytest.approx(distances, abs=1e-12)
        few = np.array([1, 4, len(Q)])
        assert (follow_order(Q, weights, order, few).means == result.means[few - 1]).all()

    @given(st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.5]), min_size=1, max_size=30), st.sampled_from([0.0, 0.05, 0.1]))
    def test_the_size_from_which_the_ranking_stays_is_the_least_of_its_kind(self, distances, within):
        distances[-1] = 0.0
        n = len(distances)
        stays = next(m for m in range(1, n + 1) if all(first <= within for first in distances[m - 1 :]))
        result = follow_order(np.ones((n, 2)), np.ones(n), np.arange(n), np.array([n]))
        result.distances[:] = distances
        assert result.stable_size(within) == stays


class TestLaws:
    def test_models_with_equal_scores_stay_tied_in_any_order(self):
        scores = RNG.random((500, 1)) / 3
        Q = np.hstack([scores, scores, scores])
        for number in range(5):
            result = follow_order(Q, np.ones(500), draw_order(500, stream_key(0), number), np.array([500]))
            assert not result.distances.any()

    def test_models_with_the_same_scores_on_other_prompts_end_tied(self):
        scores = RNG.random(400) / 3
        Q = np.column_stack([scores, scores[RNG.permutation(400)], scores[RNG.permutation(400)]])
        for number in range(20):
            result = follow_order(Q, np.ones(400), draw_order(400, stream_key(1), number), np.array([400]))
            assert result.distances[-1] == 0
            assert result.distances[:-1].any()

    @settings(deadline=None)
    @given(st.integers(1, 20_000))
    def test_sizes_begin_at_one_end_at_all_and_are_few(self, n):
        sizes = choose_sizes(n, (50,))
        assert (sizes[0], sizes[-1]) == (1, n)
        assert (np.diff(sizes) > 0).all()
        assert len(sizes) <= MAX_SIZES + 1
        assert (50 in sizes) == (n >= 50)

    def test_random_orders_are_uniform_and_differ(self):
        key = stream_key(3)
        orders = np.array([draw_order(4, key, number) for number in range(4800)])
        assert (np.sort(orders, axis=1) == np.arange(4)).all()
        _, counts = np.unique(orders, axis=0, return_counts=True)
        assert len(counts) == 24
        assert stats.chisquare(counts).pvalue > 0.001

    def test_bands_hold_the_trajectories(self):
        Q, sizes = (RNG.random((60, 4)) < 0.5).astype(float), np.array([1, 10, 60])
        one_by_one = [follow_order(Q, np.ones(60), draw_order(60, stream_key(0), i), sizes) for i in range(41)]
        many = stack_trajectories(one_by_one, sizes, 0.2)
        low, middle, high = many.band(many.distances)
        assert middle.tolist() == np.median([first.distances[sizes - 1] for first in one_by_one], axis=0).tolist()
        assert ((many.distances >= low) & (many.distances <= high)).mean(axis=0).min() >= 0.95 - 1e-9
        assert many.share_within(0.2).tolist() == [
            np.mean([first.distances[size - 1] <= 0.2 for first in one_by_one]) for size in sizes
        ]
        assert many.stable_sizes.tolist() == [first.stable_size(0.2) for first in one_by_one]
