"""Permutation tests of prompt similarity, beside the same statistics from SciPy and NumPy.

The peer computes every pair with `pdist` (Hamming, Jaccard) or a matrix product (cosine), then the mean,
variance and percentiles with NumPy and the KS distance from the observed pairs with `ks_2samp`; with weights,
all of that with NumPy. It is timed on a few permutations and scaled; the note gives their number. Both run on one
worker. What weights cost is shown beside the same test without them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import ks_2samp

from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.continuous import compare_continuous
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarity_test import SimilarityTests
from benchmarks._costs import in_own_process, seconds
from benchmarks._tables import binary_table, continuous_table


def _run_binary(table: np.ndarray, weights: np.ndarray | None = None, **options: Any) -> SimilarityTests:
    """A test from the scores on, so that the time to pack them counts."""
    return compare_binary(ScoreTable(table, weights), seed=0, **options)


def _run_continuous(table: np.ndarray, weights: np.ndarray | None = None, **options: Any) -> SimilarityTests:
    return compare_continuous(ScoreTable(table, weights), seed=0, **options)


def _pairs(table: np.ndarray, similarity: str) -> np.ndarray:
    if similarity == "cosine":
        sizes = np.linalg.norm(table, axis=1, keepdims=True)
        unit = np.divide(table, sizes, out=np.zeros_like(table), where=sizes > 0)
        return (unit @ unit.T)[np.triu_indices(len(table), 1)]
    return 1 - pdist(table == 1, similarity)


def _peer(table: np.ndarray, similarities: tuple[str, ...], n_permutations: int, weights: Any = None) -> float:
    """Seconds for each permutation; with weights, a pair has the product of those of its prompts."""
    rng = np.random.default_rng(0)
    masses = None if weights is None else np.outer(weights, weights)[np.triu_indices(len(table), 1)]
    spent = 0.0
    for similarity in similarities:
        observed = _pairs(table, similarity)
        started = time.perf_counter()
        for _ in range(n_permutations):
            values = _pairs(rng.permuted(table, axis=0), similarity)
            if masses is None:
                values.mean(), values.var(), np.percentile(values, [75, 95])
                ks_2samp(values, observed, method="asymp")
            else:
                _describe_weighted(values, observed, masses)
        spent += time.perf_counter() - started
    return spent / n_permutations


def _describe_weighted(values: np.ndarray, observed: np.ndarray, masses: np.ndarray) -> None:
    mean = np.average(values, weights=masses)
    np.average((values - mean) ** 2, weights=masses)
    np.percentile(values, [75, 95], weights=masses, method="inverted_cdf")
    order = np.argsort(np.concatenate([values, observed]))
    steps = np.cumsum(np.concatenate([masses, -masses])[order])
    np.abs(steps).max() / masses.sum()


def _ours_per_permutation(n_prompts: int, n_models: int) -> float:
    """Seconds for one more permutation: between runs of 5 and of 25."""
    table = binary_table(n_prompts, n_models)
    _run_binary(table[:50], n_permutations=1)
    few = seconds(lambda: _run_binary(table, n_permutations=5))
    many = seconds(lambda: _run_binary(table, n_permutations=25))
    return (many - few) / 20


def _peer_per_permutation(n_prompts: int, n_models: int) -> float:
    return _peer(binary_table(n_prompts, n_models), ("hamming", "cosine", "jaccard"), 1)


def _whole(name: str, run: Callable[[int], Any], table: np.ndarray, similarities: tuple[str, ...]) -> dict[str, Any]:
    """A run of 1,000 permutations beside the peer's time on three."""
    run(1)
    seconds_ours, peer = min(seconds(lambda: run(1000)) for _ in range(2)), 1000 * _peer(table, similarities, 3)
    return {
        "name": name,
        "ours_s": round(seconds_ours, 3),
        "peer_s": round(peer, 1),
        "ratio": round(peer / seconds_ours, 1),
        "note": "all statistics, 1,000 permutations; the peer is scaled from 3 permutations",
    }


def _weighted(binary: np.ndarray, scores: np.ndarray) -> Iterator[dict[str, Any]]:
    """Tests with weights, beside NumPy and beside the same tests without."""
    binary_similarities = ("hamming", "cosine", "jaccard")
    for name, table, run, similarities in (
        ("1200x14 binary, columns", binary, _run_binary, binary_similarities),
        ("1200x14 binary, margins", binary, partial(_run_binary, null="margins"), binary_similarities),
        ("805x58 continuous", scores, _run_continuous, ("cosine",)),
    ):
        weights = np.random.default_rng(1).gamma(2, 1, len(table))
        plain_run, weighted_run = partial(run, table), partial(run, table, weights)
        plain_run(n_permutations=1), weighted_run(n_permutations=1)
        times: dict[Any, list[float]] = {weighted_run: [], plain_run: []}
        for each in [*times] * 2:
            times[each].append(seconds(partial(each, n_permutations=1000)))
        seconds_ours, plain = min(times[weighted_run]), min(times[plain_run])
        peer = 1000 * _peer(table, similarities, 3, weights)
        row = {"name": f"prompt correlation {name}, with weights", "ours_s": round(seconds_ours, 3)}
        yield row | {
            "peer": "SciPy `pdist`, NumPy with weights",
            "peer_s": round(peer, 1),
            "ratio": round(peer / seconds_ours, 1),
            "note": "1,000 permutations; the peer is scaled from 3 permutations",
        }
        yield row | {
            "peer": "the same test without weights",
            "peer_s": round(plain, 3),
            "ratio": round(plain / seconds_ours, 2),
            "note": "1,000 permutations: what weights cost",
        }


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each size and kind of table."""
    table = binary_table(1200, 14)
    three = ("hamming", "cosine", "jaccard")
    for null in ("columns", "margins"):
        run = partial(_run_binary, table, null=null)
        yield _whole(
            f"prompt correlation 1200x14 binary, {null}", lambda n, run=run: run(n_permutations=n), table, three
        )
    scores = continuous_table(805, 58)
    yield _whole(
        "prompt correlation 805x58 continuous",
        lambda n: _run_continuous(scores, n_permutations=n),
        scores,
        ("cosine",),
    )
    yield from _weighted(table, scores)
    gaps = binary_table(12_032, 29)
    gaps[:1700, 0] = np.nan
    seconds_ours = seconds(lambda: _run_binary(gaps, n_permutations=100))
    yield {"name": "prompt correlation 12032x29 with missing cells, 100 permutations", "ours_s": round(seconds_ours, 3)}
    seconds_ours, our_memory = in_own_process(partial(_ours_per_permutation, 14_042, 100))
    peer, peer_memory = in_own_process(partial(_peer_per_permutation, 14_042, 100))
    yield {
        "name": "prompt correlation 14042x100 binary, one permutation",
        "ours_s": round(seconds_ours, 4),
        "peer_s": round(peer, 1),
        "ratio": round(peer / seconds_ours, 1),
        "ours_mb": round(our_memory),
        "peer_mb": round(peer_memory),
        "note": "peak memory above that of the process before the run; ours for 25 permutations, the peer's for 1",
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
