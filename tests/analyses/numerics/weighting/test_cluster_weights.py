"""Weights by cluster: the slow obvious versions, and what must hold whatever the clusters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from analyses.numerics.clustering.best_clustering import find_best_clustering, medoid_distances
from analyses.numerics.weighting.cluster_reweighting import weigh_by_clusters
from analyses.numerics.weighting.cluster_weights import distance_weights, inverse_distance_weights, medoid_weights
from tracker.statistics.rng_streams import stream_key

RULES = ("floor", "limit", "drop")


def slow_weights(labels: list[int], distances: list[float], inverse: bool, rule: str) -> list[float]:
    """One prompt after the other, as the definitions read."""
    weights = [1.0] * len(labels)
    for cluster in set(labels) - {-1}:
        members = [i for i, label in enumerate(labels) if label == cluster]
        positive = [distances[i] for i in members if distances[i] > 0]
        if not positive:
            continue
        shares = {}
        for i in members:
            d = distances[i]
            if not inverse:
                shares[i] = d
            elif d > 0:
                shares[i] = 0.0 if rule == "limit" else 1 / d
            else:
                shares[i] = {"floor": 1 / min(positive), "limit": 1.0, "drop": 0.0}[rule]
        if sum(shares.values()) == 0:
            continue
        for i in members:
            weights[i] = shares[i] / sum(shares.values()) * len(members)
    return weights


def slow_medoids(X: NDArray[np.float64], labels: NDArray[np.int64]) -> list[int]:
    """Every distance within a cluster; of prompts that are equally central the first."""
    units = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    result = []
    for cluster in range(labels.max() + 1):
        members = np.flatnonzero(labels == cluster)
        sums = [sum(1 - units[i] @ units[j] for j in members) for i in members]
        result.append(int(members[np.argmax(np.array(sums) <= min(sums) + 1e-9)]))
    return result


def tables(draw: st.DrawFn) -> NDArray[np.float64]:
    shape = draw(st.tuples(st.integers(4, 25), st.integers(2, 6)))
    values = st.sampled_from([0.0, 1.0]) if draw(st.booleans()) else st.sampled_from([0.0, 0.25, 0.5, 0.9])
    return draw(hnp.arrays(np.float64, shape, elements=values))


TABLES = st.composite(tables)()
CLUSTERS = st.lists(
    st.tuples(st.integers(-1, 3), st.sampled_from([0.0, 0.0, 1e-3, 0.1, 0.25, 1.0])), min_size=1, max_size=25
)


class TestAgainstReference:
    @given(CLUSTERS, st.sampled_from(RULES))
    def test_weights_are_those_of_the_definition_one_prompt_after_the_other(
        self, prompts: list[tuple[int, float]], rule: str
    ) -> None:
        labels, distances = [label for label, _ in prompts], [d for _, d in prompts]
        arrays = np.array(labels), np.array(distances)
        assert distance_weights(*arrays).tolist() == pytest.approx(slow_weights(labels, distances, False, rule))
        result = inverse_distance_weights(*arrays, rule)
        assert result.tolist() == pytest.approx(slow_weights(labels, distances, True, rule))

    @given(TABLES)
    def test_medoids_are_those_of_all_pairs(self, X: NDArray[np.float64]) -> None:
        if not X.any():
            return
        result = find_best_clustering(X, max_clusters=5, n_restarts=2, key=stream_key(0))
        assert result.medoids.tolist() == slow_medoids(X, result.labels)

    def test_medoids_and_distances_of_real_data_are_those_of_all_pairs(self, mmlu_pro) -> None:
        Q = mmlu_pro.Q
        result = find_best_clustering(Q, max_clusters=12, n_restarts=1, key=stream_key(1))
        assert result.medoids.tolist() == slow_medoids(Q, result.labels)
        distances = medoid_distances(Q, result)
        units = Q / np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-300)
        some = result.labels >= 0
        expected = 1 - (units[some] * units[result.medoids[result.labels[some]]]).sum(axis=1)
        assert distances[some] == pytest.approx(expected, abs=1e-14)
        same = (Q[some] == Q[result.medoids[result.labels[some]]]).all(axis=1)
        assert (distances[some][same] == 0).all()
        assert (distances[some][~same] > 1e-3).all()

    def test_a_worked_example(self) -> None:
        labels = np.array([0, 0, 0, 0, 1, -1, -1])
        distances = np.array([0.0, 0.0, 0.1, 0.3, 0.0, np.nan, np.nan])
        assert distance_weights(labels, distances).tolist() == pytest.approx([0, 0, 1, 3, 1, 1, 1])
        assert inverse_distance_weights(labels, distances, "floor").tolist() == pytest.approx(
            [1.2, 1.2, 1.2, 0.4, 1, 1, 1]
        )
        assert inverse_distance_weights(labels, distances, "limit").tolist() == pytest.approx([2, 2, 0, 0, 1, 1, 1])
        assert inverse_distance_weights(labels, distances, "drop").tolist() == pytest.approx([0, 0, 3, 1, 1, 1, 1])
        assert medoid_weights(labels, np.array([1, 4])).tolist() == pytest.approx([0, 7 / 3, 0, 0, 7 / 3, 7 / 3, 0])


class TestLaws:
    @given(CLUSTERS, st.sampled_from(RULES))
    def test_weights_are_not_negative_and_each_clusters_total_is_its_size(
        self, prompts: list[tuple[int, float]], rule: str
    ) -> None:
        labels, distances = np.array([label for label, _ in prompts]), np.array([d for _, d in prompts])
        for weights in (distance_weights(labels, distances), inverse_distance_weights(labels, distances, rule)):
            assert (weights >= 0).all()
            for cluster in np.unique(labels):
                assert weights[labels == cluster].sum() == pytest.approx((labels == cluster).sum())

    @given(CLUSTERS)
    def test_farther_prompts_weigh_more_by_distance_and_less_by_its_inverse(
        self, prompts: list[tuple[int, float]]
    ) -> None:
        labels, distances = np.array([label for label, _ in prompts]), np.array([d for _, d in prompts])
        by_distance, inverse = distance_weights(labels, distances), inverse_distance_weights(labels, distances)
        for cluster in set(labels.tolist()) - {-1}:
            members = np.flatnonzero(labels == cluster)
            order = members[np.argsort(distances[members], kind="stable")]
            for near, far in pairwise(order):
                assert by_distance[near] <= by_distance[far] + 1e-12
                assert inverse[near] >= inverse[far] - 1e-12

    @given(CLUSTERS, st.sampled_from(RULES), st.sampled_from([1e-6, 3.0, 1e6]))
    def test_the_unit_of_distances_does_not_matter(
        self, prompts: list[tuple[int, float]], rule: str, unit: float
    ) -> None:
        labels, distances = np.array([label for label, _ in prompts]), np.array([d for _, d in prompts])
        for first, second in (
            (distance_weights(labels, distances), distance_weights(labels, unit * distances)),
            (
                inverse_distance_weights(labels, distances, rule),
                inverse_distance_weights(labels, unit * distances, rule),
            ),
        ):
            assert first == pytest.approx(second)

    @given(CLUSTERS, st.randoms(use_true_random=False), st.sampled_from(RULES), st.integers(1, 3))
    def test_reordered_prompts_keep_their_weights_and_copies_have_the_same(
        self, prompts: list[tuple[int, float]], random: object, rule: str, times: int
    ) -> None:
        labels, distances = np.array([label for label, _ in prompts]), np.array([d for _, d in prompts])
        order = np.repeat(np.arange(len(labels)), times)
        random.shuffle(order)
        again = labels[order], distances[order]
        assert distance_weights(*again) == pytest.approx(distance_weights(labels, distances)[order])
        inverse = inverse_distance_weights(labels, distances, rule)
        assert inverse_distance_weights(*again, rule) == pytest.approx(inverse[order])

    @given(TABLES)
    def test_reordered_models_have_the_same_weights_where_the_clusters_are_the_same(
        self, X: NDArray[np.float64]
    ) -> None:
        if not X.any():
            return
        result = find_best_clustering(X, max_clusters=4, n_restarts=2, key=stream_key(0))
        turned = np.ascontiguousarray(X[:, ::-1])
        first, second = medoid_distances(X, result), medoid_distances(turned, result)
        assert (first == 0).tolist() == (second == 0).tolist()
        for rule in RULES:
            assert inverse_distance_weights(result.labels, first, rule) == pytest.approx(
                inverse_distance_weights(result.labels, second, rule)
            )

    def test_distances_that_rounding_makes_do_not_count(self) -> None:
        labels = np.array([0, 0, 0])
        noisy = np.array([0.0, 2e-16, 0.5])
        assert inverse_distance_weights(labels, noisy).tolist() == pytest.approx([1, 1, 1])
        assert distance_weights(labels, noisy).tolist() == [0, 0, 3]
        parallel = np.array([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9], [0.9, 0.1]])
        result = weigh_by_clusters(parallel, max_clusters=2, n_restarts=1, zero_distance="floor")
        assert result.schemes["inverse-distance"].weights.tolist() == [1, 1, 1, 1]
        assert result.is_zero_distance.tolist() == [True] * 4
