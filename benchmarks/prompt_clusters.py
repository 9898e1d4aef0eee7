"""Silhouettes and sweeps over numbers of clusters, beside scikit-learn.

The peer's silhouette uses all pairs of rows. Its sweep runs `KMeans` on unit rows with as many starts, then
`silhouette_score`, at each number of clusters. It does not project its centres back on the sphere, so the algorithm
differs slightly. The peer runs with its default threads and with one thread; the table shows the faster. Suffrage uses
one thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples, silhouette_score
from threadpoolctl import threadpool_limits

from analyses.numerics.clustering.best_clustering import find_best_clustering
from analyses.numerics.clustering.directions import group_directions
from analyses.numerics.clustering.silhouette import row_silhouettes
from analyses.numerics.null_tables import shuffle_table
from benchmarks._costs import seconds
from benchmarks._tables import binary_table, continuous_table
from tracker.statistics.rng_streams import stream_key

KEY = stream_key(0)


def _run_ours(run: Any, repeats: int) -> tuple[float, Any]:
    """Least seconds of a few runs, after one that compiles, and what that one gave."""
    result = run()
    return seconds(run, repeats), result


def _silhouette(n_prompts: int, n_models: int, n_clusters: int) -> dict[str, Any]:
    table = binary_table(n_prompts, n_models)
    grouped = group_directions(table)
    of_direction = np.random.default_rng(0).integers(0, n_clusters, grouped.n_distinct)
    has_direction = grouped.of_row >= 0
    labels = of_direction[grouped.of_row[has_direction]]
    seconds_ours, samples = _run_ours(lambda: row_silhouettes(group_directions(table), of_direction, n_clusters), 3)
    started = time.perf_counter()
    expected = silhouette_samples(table[has_direction], labels, metric="cosine")
    peer = time.perf_counter() - started
    return {
        "name": f"silhouette {n_prompts}x{n_models}, {n_clusters} clusters",
        "ours_s": round(seconds_ours, 4),
        "peer_s": round(peer, 2),
        "ratio": round(peer / seconds_ours, 1),
        "note": f"largest difference {np.abs(samples[has_direction] - expected).max():.1e}; "
        "ours with finding equal rows",
    }


def _sweep(name: str, table: np.ndarray, max_clusters: int, n_restarts: int) -> dict[str, Any]:
    seconds_ours, clustering = _run_ours(
        lambda: find_best_clustering(table, max_clusters=max_clusters, n_restarts=n_restarts, key=KEY),
        5,
    )
    rows = table[(table != 0).any(axis=1)]
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def sweep() -> float:
        best = -1.0
        for number in range(2, max_clusters + 1):
            labels = KMeans(number, n_init=n_restarts, random_state=0).fit_predict(units)
            best = max(best, float(silhouette_score(units, labels, metric="cosine")))
        return best

    started = time.perf_counter()
    best = sweep()
    peer = time.perf_counter() - started
    with threadpool_limits(1):
        started = time.perf_counter()
        sweep()
        alone = time.perf_counter() - started
    return {
        "name": f"sweep of 2 to {max_clusters} clusters, {n_restarts} restarts, {name}",
        "ours_s": round(seconds_ours, 4),
        "peer_s": round(peer, 2),
        "ratio": round(peer / seconds_ours, 1),
        "peer_one_thread_s": round(alone, 2),
        "ratio_one_thread": round(alone / seconds_ours, 1),
        "note": f"largest silhouette ours {clustering.silhouette:.3f}, the peer's {best:.3f}",
    }


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each task."""
    table = binary_table(1200, 14)
    yield _silhouette(14_042, 100, 10)
    yield _sweep("1200x14", table, 50, 5)
    yield _sweep("1200x14 with columns shuffled", shuffle_table(table, KEY, 1), 50, 5)
    yield _sweep("805x58 continuous", continuous_table(805, 58), 50, 5)
    large = shuffle_table(binary_table(10_326, 29), KEY, 1)
    seconds_ours, _ = _run_ours(lambda: find_best_clustering(large, key=KEY), 1)
    yield {
        "name": "sweep of 2 to 50 clusters, 5 restarts, 10326x29 with columns shuffled",
        "ours_s": round(seconds_ours, 2),
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
