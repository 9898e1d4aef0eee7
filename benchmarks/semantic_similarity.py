"""Regressions of performance similarity on semantic similarity, beside a loop over SciPy or statsmodels.

The peer computes both tables of similarities of all pairs by a matrix product, then fits a line for each prompt with
`linregress` or with `OLS`. It is timed on one table. The time of Suffrage is that of one more permutation, with all
statistics. Both run on one worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy.stats import linregress

from analyses.numerics.semantic.semantic_null import SemanticTest, semantic_test
from benchmarks._costs import seconds


def tables(n_prompts: int, n_models: int, n_dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """SIMULATED scores, all prompts solved by some model, and vectors of 30 topics."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1.2, (n_prompts, 1)) + rng.normal(0.3, 0.8, (1, n_models))
    scores = (rng.random((n_prompts, n_models)) < 1 / (1 + np.exp(-odds))).astype(np.float64)
    scores[~scores.any(axis=1), 0] = 1
    topics = rng.normal(0, 1, (30, n_dimensions))
    vectors = topics[rng.integers(0, 30, n_prompts)] + rng.normal(0, 2, (n_prompts, n_dimensions))
    return scores, vectors.astype(np.float32)


def _similarities(rows: np.ndarray) -> np.ndarray:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T, dtype=np.float64)


def _one_after_the_other(scores: np.ndarray, vectors: np.ndarray, fit: Callable[[np.ndarray, np.ndarray], Any]) -> None:
    performance, meaning = _similarities(scores), _similarities(vectors)
    for i in range(len(scores)):
        partners = np.arange(len(scores)) != i
        fit(meaning[i, partners], performance[i, partners])


def _least_squares(x: np.ndarray, y: np.ndarray) -> None:
    fitted = sm.OLS(y, sm.add_constant(x)).fit()
    fitted.params, fitted.bse, fitted.pvalues  # noqa: B018


def _run_ours(scores: np.ndarray, vectors: np.ndarray, n_permutations: int, null: str = "rows") -> SemanticTest:
    weights = np.ones(len(scores))
    return semantic_test(
        scores,
        vectors,
        weights,
        similarity="cosine",
        intercept=True,
        null=null,
        n_permutations=n_permutations,
        seed=0,
    )


def _per_permutation(scores: np.ndarray, vectors: np.ndarray, few: int, many: int, null: str) -> float:
    """Seconds for one more permutation: the difference of two runs."""
    runs = [seconds(lambda n=n: _run_ours(scores, vectors, n, null)) for n in (few, many)]
    return (runs[1] - runs[0]) / (many - few)


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each size and peer."""
    for n_dimensions in (384, 1536):
        scores, vectors = tables(1200, 14, n_dimensions)
        _run_ours(scores, vectors, 2)
        for null in ("rows", "columns"):
            seconds_ours = min(_per_permutation(scores, vectors, 50, 450, null) for _ in range(2))
            peers = {"linregress": linregress, "statsmodels OLS": _least_squares}
            for name, fit in peers.items() if null == "rows" else [("linregress", linregress)]:
                peer = seconds(partial(_one_after_the_other, scores, vectors, fit))
                yield {
                    "name": f"semantic regression 1200x14x{n_dimensions}, {null}, one permutation, beside {name}",
                    "ours_s": round(seconds_ours, 5),
                    "peer_s": round(peer, 3),
                    "ratio": round(peer / seconds_ours, 1),
                }
    scores, vectors = tables(10_326, 29, 384)
    seconds_ours = _per_permutation(scores, vectors, 20, 120, "rows")
    peer = seconds(partial(_one_after_the_other, scores, vectors, linregress))
    yield {
        "name": "semantic regression 10326x29x384, rows, one permutation, beside linregress",
        "ours_s": round(seconds_ours, 4),
        "peer_s": round(peer, 1),
        "ratio": round(peer / seconds_ours, 1),
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
