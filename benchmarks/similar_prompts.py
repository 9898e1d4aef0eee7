"""Nearest neighbours of prompts beside scikit-learn, and the cost of the search for similar prompts at scale.

The peer compares all pairs too (`algorithm="brute"`): by the cosine metric, and by the Euclidean metric on vectors of
length 1, which gives the same order. The table shows the faster. The peer uses all processors, so Suffrage runs with as
many workers. With one worker, only matrix products use all processors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.neighbors import NearestNeighbors

from analyses.numerics.filtering.similar_prompts.neighbours import find_nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_groups import find_components, find_stars
from benchmarks._costs import in_own_process, seconds

N_NEIGHBOURS = 100
N_DIMENSIONS = 384
PATH = np.geomspace(0.02, 0.5, 30).tolist()


def vectors(n_prompts: int) -> np.ndarray:
    """SIMULATED: topics of very different sizes, their prompts at very different distances."""
    rng = np.random.default_rng(0)
    n_topics = n_prompts // 50
    odds = 1 / np.arange(10, n_topics + 10)
    topics = rng.standard_normal((n_topics, N_DIMENSIONS), np.float32)
    E = rng.standard_normal((n_prompts, N_DIMENSIONS), np.float32)
    E *= rng.uniform(0.1, 1.2, (n_prompts, 1)).astype(np.float32)
    E += topics[rng.choice(n_topics, n_prompts, p=odds / odds.sum())]
    return E


def _peer(E: np.ndarray, metric: str) -> None:
    NearestNeighbors(n_neighbors=N_NEIGHBOURS, algorithm="brute", metric=metric).fit(E).kneighbors()


def _neighbours(n_prompts: int) -> float:
    E = vectors(n_prompts)
    return seconds(lambda: find_nearest_neighbours(E, N_NEIGHBOURS))


def _similar_step(n_prompts: int) -> float:
    """Neighbours, components along a path of thresholds, and stars."""
    E = vectors(n_prompts)
    return seconds(partial(_all_of, E))


def _all_of(E: np.ndarray) -> None:
    neighbours = find_nearest_neighbours(E, N_NEIGHBOURS)
    find_components(E, neighbours, PATH)
    find_stars(E, neighbours, PATH[len(PATH) // 2])


def _beside_peer() -> dict[str, Any]:
    E = vectors(14_042)
    unit = E / np.linalg.norm(E, axis=1, keepdims=True)
    _all_of(E[:2000])
    spent: dict[str, list[float]] = {"ours": [], "one worker": [], "cosine": [], "euclidean": []}
    for _ in range(5):
        spent["one worker"].append(seconds(lambda: find_nearest_neighbours(E, N_NEIGHBOURS)))
        spent["cosine"].append(seconds(lambda: _peer(E, "cosine")))
        spent["euclidean"].append(seconds(lambda: _peer(unit, "euclidean")))
        with parallel_config(n_jobs=os.cpu_count(), backend="threading"):
            spent["ours"].append(seconds(lambda: find_nearest_neighbours(E, N_NEIGHBOURS)))
    least = {name: min(times) for name, times in spent.items()}
    peer = min(least["cosine"], least["euclidean"])
    _, memory = in_own_process(partial(_neighbours, 14_042))
    return {
        "name": f"{N_NEIGHBOURS} nearest neighbours 14042x384, beside scikit-learn's brute force",
        "ours_s": round(least["ours"], 2),
        "ours_one_worker_s": round(least["one worker"], 2),
        "peer_s": round(peer, 2),
        "peer_cosine_s": round(least["cosine"], 2),
        "peer_euclidean_s": round(least["euclidean"], 2),
        "ratio": round(peer / least["ours"], 2),
        "ratio_one_worker": round(peer / least["one worker"], 2),
        "ours_mb": round(memory),
        "note": "wanted: at least 1.5 times the faster of the two metrics, below 1 GB; the least of 5; memory with the "
        "vectors",
    }


def _dense() -> dict[str, Any]:
    """Thresholds so large that nearly all pairs are below."""
    E = vectors(14_042)
    neighbours, thresholds = find_nearest_neighbours(E, N_NEIGHBOURS), np.linspace(0.05, 1.4, 30).tolist()
    components = find_components(E, neighbours, thresholds)
    return {
        "name": f"components at 30 thresholds 14042x384, {components.n_pairs[-1]:,} pairs below the largest",
        "ours_s": round(seconds(lambda: find_components(E, neighbours, thresholds), 2), 2),
    }


def measurements() -> Iterator[dict[str, Any]]:
    """Beside the peer, then with nearly all pairs, then at scale."""
    yield _beside_peer()
    yield _dense()
    for n_prompts in (14_042, 100_000):
        duration, memory = in_own_process(partial(_similar_step, n_prompts))
        yield {
            "name": f"neighbours, components at 30 thresholds and stars {n_prompts}x384",
            "ours_s": round(duration, 1),
            "ours_mb": round(memory),
            "note": "wanted of 100,000: below 10 minutes and 2 GB; in a separate process, memory with the vectors",
        }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
