from __future__ import annotations

import math

import numpy as np
import pytest
from drawn_vectors import all_distances, topics, whole_numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

from analyses.numerics.filtering.similar_prompts.cosine_distances import LANES, NormalizedVectors, iterate_products
from analyses.numerics.filtering.similar_prompts.neighbour_candidates import STEP, find_candidates
from analyses.numerics.filtering.similar_prompts.neighbours import Neighbours, find_nearest_neighbours


def in_lanes(a: np.ndarray, b: np.ndarray) -> float:
    sums = [0.0] * LANES
    for t, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        sums[t % LANES] += x * y
    four = [0.0] * 4
    for lane, part in enumerate(sums):
        four[lane % 4] += part
    return (four[0] + four[1]) + (four[2] + four[3])


def sorted_in_full(distances: np.ndarray, k: int) -> Neighbours:
    """The whole table, each row put in order."""
    n = len(distances)
    rest = [np.delete(np.arange(n), i) for i in range(n)]
    order = [o[np.argsort(distances[i, o], kind="stable")][:k] for i, o in enumerate(rest)]
    indices = np.array(order, np.int32).reshape(n, min(k, n - 1))
    return Neighbours(indices=indices, distances=np.take_along_axis(distances, indices.astype(np.intp), axis=1))


def same(a: Neighbours, b: Neighbours) -> bool:
    return a.indices.tobytes() == b.indices.tobytes() and a.distances.tobytes() == b.distances.tobytes()


class TestAgainstReference:
    @settings(max_examples=60)
    @given(
        n=st.integers(1, 90),
        d=st.sampled_from([1, 2, 3, 70]),
        largest=st.integers(1, 4),
        k=st.integers(1, 100),
        seed=st.integers(0, 999),
    )
    def test_ties_repeats_and_opposites_are_ordered_as_in_the_full_table(self, n, d, largest, k, seed):
        E = whole_numbers(n, d, largest, seed)
        assert same(find_nearest_neighbours(E, k), sorted_in_full(all_distances(E), k))

    @settings(max_examples=15)
    @given(
        n=st.integers(320, 560),
        d=st.sampled_from([2, 3, 6]),
        largest=st.integers(1, 4),
        k=st.integers(1, 2),
        seed=st.integers(0, 999),
    )
    def test_ties_among_many_prompts_are_ordered_as_in_the_full_table(self, n, d, largest, k, seed):
        E = whole_numbers(n, d, largest, seed)
        assert same(find_nearest_neighbours(E, k), sorted_in_full(all_distances(E), k))

    def test_prompts_with_too_few_and_too_many_candidates_have_the_neighbours_of_the_full_table(self):
        E = np.concatenate([topics(400, 6, seed=0), whole_numbers(400, 6, 1, seed=0)])
        E[:, 0] += 8 * (np.arange(800) % STEP == 0)  # those looked at first are alike, and unlike the rest
        E[400:480] = E[401]
        E = np.round(E * 16)  # exact products
        result = find_candidates(NormalizedVectors.of(E), 10)
        assert result is not None
        many, few = result.counts > result.places.shape[1], result.counts < 10
        assert many.any()
        assert few.any()
        assert not (many | few).all()
        assert same(find_nearest_neighbours(E, 10), sorted_in_full(all_distances(E), 10))

    @pytest.mark.parametrize(("n", "d", "k"), [(2500, 24, 20), (1100, 384, 100), (700, 5, 1)])
    def test_many_prompts_in_several_blocks_have_the_neighbours_of_the_full_table(self, n, d, k):
        E = topics(n, d, seed=n)
        result, reference = find_nearest_neighbours(E, k), sorted_in_full(all_distances(E), k)
        np.testing.assert_array_equal(result.indices, reference.indices)
        np.testing.assert_allclose(result.distances, reference.distances, atol=2e-15, rtol=0)
        assert result.indices.dtype == np.int32
        assert result.distances.dtype == np.float64

    @pytest.mark.parametrize("spread", [1e-2, 1e-3, 1e-6])
    def test_differences_that_single_precision_cannot_see_decide(self, spread):
        rng = np.random.default_rng(1)
        E = (rng.normal(size=70) + spread * rng.normal(size=(300, 70))).astype(np.float32)
        squares = [in_lanes(e, e) for e in E]
        distances = np.array(
            [
                [min(max(1 - in_lanes(a, b) / math.sqrt(s * t), 0), 2) for b, t in zip(E[:60], squares, strict=False)]
                for a, s in zip(E[:60], squares, strict=False)
            ]
        )
        assert same(find_nearest_neighbours(E[:60], 7), sorted_in_full(distances, 7))

    @pytest.mark.parametrize("k", [1, 2])
    def test_nor_do_they_mislead_the_choice_of_candidates(self, k):
        rng = np.random.default_rng(2)
        E = (64 * rng.integers(-9, 10, 70) + rng.integers(-1, 2, (500, 70))).astype(np.float32)  # exact products
        assert find_candidates(NormalizedVectors.of(E), k) is not None
        reference = sorted_in_full(all_distances(E), k)
        assert same(find_nearest_neighbours(E, k), reference)
        unit = NormalizedVectors.of(E).unit
        by_products = sorted_in_full(-np.asarray(unit @ unit.T, np.float64), k)
        assert (by_products.indices != reference.indices).any()


class TestLaws:
    def test_any_number_of_workers_finds_the_same_bytes(self):
        E = topics(4500, 16, seed=3)
        alone = find_nearest_neighbours(E, 30)
        for n_jobs in (2, 3):
            with parallel_config(n_jobs=n_jobs, backend="threading"):
                assert same(find_nearest_neighbours(E, 30), alone)

    @settings(max_examples=15)
    @given(seed=st.integers(0, 999), power=st.integers(-40, 40))
    def test_the_length_of_vectors_and_the_order_of_prompts_change_nothing(self, seed, power):
        rng, E = np.random.default_rng(seed), topics(80, 12, seed)
        result = find_nearest_neighbours(E, 9)
        assert same(find_nearest_neighbours(E * np.float32(2.0**power), 9), result)
        order = rng.permutation(80)
        moved = find_nearest_neighbours(E[order], 9)
        assert moved.distances.tobytes() == result.distances[order].tobytes()
        np.testing.assert_array_equal(order[moved.indices], result.indices[order])

    @settings(max_examples=15)
    @given(seed=st.integers(0, 999), k=st.integers(1, 30))
    def test_fewer_neighbours_are_the_first_of_more(self, seed, k):
        E = whole_numbers(60, 3, 2, seed)
        few, many = find_nearest_neighbours(E, k), find_nearest_neighbours(E, 59)
        np.testing.assert_array_equal(few.indices, many.indices[:, :k])
        np.testing.assert_array_equal(few.distances, many.distances[:, :k])

    @settings(max_examples=15)
    @given(seed=st.integers(0, 999), scale=st.sampled_from([1e-30, 1.0, 1e30]))
    def test_products_are_off_by_no_more_than_the_slack(self, seed, scale):
        E = (topics(60, 384, seed) * np.float32(scale)).astype(np.float32)
        directions = NormalizedVectors.of(E)
        (_, near), *_ = iterate_products(directions.unit, directions.unit)
        off = np.abs(1 - near.astype(np.float64) - all_distances(E / np.float32(scale)))
        assert off.max() <= directions.slack


class TestDegenerateInput:
    def test_more_equal_vectors_than_neighbours_are_neighbours_by_number_at_distance_exactly_0(self):
        E = np.tile(topics(1, 384, seed=5), (50, 1))
        E[::10] *= -1
        result = find_nearest_neighbours(E, 6)
        same_sign = [i for i in range(50) if i % 10]
        for i in same_sign:
            assert result.indices[i].tolist() == [j for j in same_sign if j != i][:6]
        assert (result.distances[same_sign] == 0).all()
        assert result.distances[0].tolist() == [0.0] * 4 + [2.0] * 2
        assert result.indices[0].tolist() == [10, 20, 30, 40, 1, 2]

    @pytest.mark.parametrize("n", [0, 1])
    def test_without_other_prompts_there_are_no_neighbours(self, n):
        result = find_nearest_neighbours(np.ones((n, 4), np.float32), 100)
        assert result.indices.shape == result.distances.shape == (n, 0)

    def test_there_are_no_more_neighbours_than_other_prompts(self):
        assert find_nearest_neighbours(topics(7, 3, seed=0), 100).indices.shape == (7, 6)

    def test_vectors_as_long_or_short_as_they_can_be_have_their_distances(self):
        E = np.array([[3e38, 3e38, 0], [1e-44, 0, 0], [0, 0, 2e38], [-2e38, 0, 1e-40]], np.float32)
        result = find_nearest_neighbours(E, 3)
        assert result.indices.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [2, 0, 1]]
        half = 1 - math.sqrt(0.5)
        assert result.distances == pytest.approx(
            np.array([[half, 1, 2 - half], [half, 1, 2], [1, 1, 1], [1, 2 - half, 2]]), abs=1e-15
        )


class TestErrors:
    @pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")])
    def test_vectors_without_a_direction_are_refused(self, bad):
        E = topics(20, 3, seed=0)
        E[7] = bad
        with pytest.raises(ValueError, match="zero or not finite"):
            find_nearest_neighbours(E)
