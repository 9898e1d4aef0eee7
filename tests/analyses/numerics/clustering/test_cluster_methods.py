from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import HDBSCAN
from sklearn.metrics import silhouette_samples
from strategies import binary_tables, continuous_tables

from analyses.numerics.clustering.agglomerative import find_agglomerative_clustering
from analyses.numerics.clustering.best_clustering import Clustering
from analyses.numerics.clustering.cluster_methods import ClusterOptions, find_clusters
from analyses.numerics.clustering.density import find_dense_clustering
from analyses.numerics.clustering.silhouette_test import silhouette_test
from tracker.statistics.rng_streams import stream_key

KEY = stream_key(0)
RNG = np.random.default_rng(17)
CONTINUOUS = RNG.normal(size=(40, 4))
GROUPS = np.repeat(np.arange(3), 25)
GROUPED = (RNG.random((75, 12)) < 0.05 + 0.9 * np.repeat(np.eye(3), 4, axis=1)[GROUPS]).astype(float)
METHODS = [ClusterOptions(method="agglomerative", max_clusters=6), ClusterOptions(method="hdbscan", min_cluster_size=4)]
tables = st.one_of(binary_tables(), continuous_tables())


def plain_ward(X: np.ndarray, n_clusters: int) -> set[frozenset[int]]:
    """Merge the two clusters that raise the sum of squares least, from all pairs each time."""
    units = X / np.linalg.norm(X, axis=1)[:, None]
    clusters = [[i] for i in range(len(X))]

    def rise(a, b):
        return len(a) * len(b) / (len(a) + len(b)) * ((units[a].mean(axis=0) - units[b].mean(axis=0)) ** 2).sum()

    while len(clusters) > n_clusters:
        pairs = [(rise(a, b), i, j) for i, a in enumerate(clusters) for j, b in enumerate(clusters) if i < j]
        _, i, j = min(pairs)
        clusters[i] = clusters[i] + clusters.pop(j)
    return {frozenset(cluster) for cluster in clusters}


def members(clustering: Clustering) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(clustering.labels == c).tolist()) for c in range(clustering.n_clusters)}


class TestAgainstReference:
    @pytest.mark.parametrize("number", [2, 3, 7])
    def test_clusters_are_those_of_plain_ward(self, number):
        table = np.abs(CONTINUOUS[:20])
        result = find_agglomerative_clustering(table, max_clusters=number)
        assert members(result) == plain_ward(table, result.n_clusters)
        silhouettes = silhouette_samples(table, result.labels, metric="cosine")
        assert result.samples == pytest.approx(silhouettes)
        assert result.silhouette == pytest.approx(result.by_number.max())
        for place in range(number - 1):
            labels = np.empty(20)
            for c, cluster in enumerate(plain_ward(table, place + 2)):
                labels[list(cluster)] = c
            assert result.by_number[place] == pytest.approx(silhouette_samples(table, labels, metric="cosine").mean())

    def test_dense_clusters_are_those_of_scikit_learn_with_noise_at_zero(self):
        table = GROUPED + RNG.normal(0, 0.05, GROUPED.shape)  # continuous, so that no distances tie
        units = table / np.linalg.norm(table, axis=1)[:, None]
        labels = HDBSCAN(min_cluster_size=5, copy=True).fit(units).labels_
        result = find_dense_clustering(table, min_cluster_size=5)
        assert members(result) == {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(labels.max() + 1)}
        assert 0 < result.is_noise.sum() == (labels < 0).sum()
        kept = labels >= 0
        assert result.samples[kept] == pytest.approx(silhouette_samples(table[kept], labels[kept], metric="cosine"))
        assert (result.samples[~kept] == 0).all()
        assert result.silhouette == pytest.approx(result.samples.mean())
        assert result.noise_share == (~kept).mean()


class TestLaws:
    @settings(max_examples=15)
    @given(tables, st.sampled_from(METHODS), st.randoms(use_true_random=False))
    def test_order_of_rows_does_not_matter_and_equal_rows_stay_together(self, table, options, random):
        order = np.arange(len(table))
        random.shuffle(order)
        first, second = find_clusters(table, options, key=KEY), find_clusters(table[order], options, key=KEY)
        for values, reordered in ((first.samples, second.samples), (first.is_noise, second.is_noise)):
            assert np.array_equal(values[order], reordered, equal_nan=True)
        assert first.n_clusters == second.n_clusters
        for row in range(len(table)):
            same = (table == table[row]).all(axis=1)
            assert np.unique(first.labels[same]).size == 1
        assert np.array_equal(np.isnan(first.samples), ~table.any(axis=1)) or np.isnan(first.silhouette)

    @pytest.mark.parametrize("options", METHODS)
    @pytest.mark.parametrize("null", ["columns", "margins"])
    def test_draws_are_clustered_by_the_method_of_the_data(self, options, null):
        test = silhouette_test(GROUPED, options, n_permutations=39, null=null)
        assert test.observed.silhouette == find_clusters(GROUPED, options, key=KEY).silhouette
        assert test.best.observed == pytest.approx(test.observed.silhouette)
        assert test.best.pvalue == 1 / 40
        assert (test.null_noise > 0).any() == options.has_noise
        assert bool(test.caps) != options.has_noise


class TestDegenerateTables:
    @pytest.mark.parametrize("options", METHODS)
    def test_tables_without_two_directions_have_no_clusters_to_compare(self, options):
        for table in (np.zeros((3, 2)), np.ones((12, 2)), np.zeros((0, 4)), np.array([[0.0, 0.0], [0.2, 0.6]])):
            result = find_clusters(table, options, key=KEY)
            assert result.n_clusters == (0 if options.has_noise else int(table.any()))
            assert result.is_noise.sum() == (table.any(axis=1).sum() if options.has_noise else 0)

    def test_too_few_rows_for_a_cluster_are_noise(self):
        result = find_dense_clustering(CONTINUOUS[:5], min_cluster_size=6)
        assert result.is_noise.all()
        assert result.silhouette == 0

    @pytest.mark.parametrize("options", METHODS)
    def test_methods_without_weights_reject_them(self, options):
        with pytest.raises(ValueError, match="has no weights"):
            find_clusters(CONTINUOUS, options, weights=np.ones(40), key=KEY)
