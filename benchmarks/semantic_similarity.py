"""Regressions of performance similarity on semantic similarity, beside NumPy, SciPy and statsmodels.

The strongest peer fits the lines of all prompts at once with NumPy: similarities by a matrix product in blocks of rows,
slopes from row sums, p-values from SciPy. It keeps the semantic similarities of all pairs, which need memory for the
square of the number of prompts, and so computes only what a permutation changes, with all statistics. The other peers
compute both tables of similarities, then fit a line for each prompt with `linregress` or `OLS`. The time of Suffrage is
that of one more permutation, with all statistics. Suffrage runs on one worker; matrix products use all processors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import stats

from analyses.numerics.semantic.semantic_null import SemanticTest, semantic_test
from benchmarks._costs import seconds

BLOCK_ROWS = 256
STRONGEST = "NumPy, all lines at once"


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


class _AllAtOnce:
    """Lines of all prompts for one permuted table after the other; semantic similarities are computed once."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.meaning = _similarities(vectors)
        np.fill_diagonal(self.meaning, 0)
        self.n_partners = len(vectors) - 1
        self.sum = self.meaning.sum(axis=1)
        self.squares = np.einsum("ij,ij->i", self.meaning, self.meaning) - self.sum**2 / self.n_partners

    def fit(self, scores: np.ndarray) -> tuple[np.ndarray, ...]:
        """Slope, standard error, t and p of each prompt's line."""
        unit = scores / np.linalg.norm(scores, axis=1, keepdims=True)
        sums, squares, products = np.empty((3, len(unit)))
        for start in range(0, len(unit), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            performance = unit[rows] @ unit.T
            performance[np.arange(len(performance)), np.arange(len(unit))[rows]] = 0
            sums[rows] = performance.sum(axis=1)
            squares[rows] = np.einsum("ij,ij->i", performance, performance)
            products[rows] = np.einsum("ij,ij->i", performance, self.meaning[rows])
        products -= self.sum * sums / self.n_partners
        squares -= sums**2 / self.n_partners
        slope = products / self.squares
        stderr = np.sqrt((squares - slope * products) / (self.n_partners - 2) / self.squares)
        t = slope / stderr
        return slope, stderr, t, 2 * stats.t.sf(np.abs(t), self.n_partners - 2)

    def statistics(self, scores: np.ndarray, observed: tuple[np.ndarray, np.ndarray]) -> tuple[float, ...]:
        """Mean slope, discoveries, largest t, and KS distances from the observed slopes and FDR."""
        slope, _, t, pvalue = self.fit(scores)
        fdr = stats.false_discovery_control(pvalue)
        distances = [_ks_distance(drawn, reference) for drawn, reference in zip((slope, fdr), observed, strict=True)]
        return float(slope.mean()), float((fdr <= 0.05).sum()), float(np.abs(t).max()), *distances


def _ks_distance(x: np.ndarray, y: np.ndarray) -> float:
    x, y = np.sort(x), np.sort(y)
    both = np.concatenate([x, y])
    shares = [np.searchsorted(side, both, side="right") / len(side) for side in (x, y)]
    return float(np.abs(shares[0] - shares[1]).max())


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


def _all_at_once(scores: np.ndarray, vectors: np.ndarray, null: str) -> float:
    """Seconds of the strongest peer for one permutation; its lines of the observed table are those of Suffrage."""
    peer, result = _AllAtOnce(vectors), _run_ours(scores, vectors, 2)
    expected = result.slope, result.stderr, result.t, result.pvalue
    for fitted, line in zip(peer.fit(scores), expected, strict=True):
        assert np.allclose(fitted, line, rtol=1e-4, atol=1e-5)
    observed, rng = (result.slope, result.fdr), np.random.default_rng(0)

    def permute() -> None:
        shuffled = rng.permutation(scores) if null == "rows" else rng.permuted(scores, axis=0)
        shuffled[~shuffled.any(axis=1), 0] = 1
        peer.statistics(shuffled, observed)

    return seconds(permute, 5)


def _measured(
    table: tuple[np.ndarray, np.ndarray], name: str, null: str, peers: tuple[str, ...], n: tuple[int, int, int]
) -> Iterator[dict[str, Any]]:
    scores, vectors = table
    few, many, turns = n
    seconds_ours = min(_per_permutation(scores, vectors, few, many, null) for _ in range(turns))
    for peer in peers:
        fit = {"linregress": stats.linregress, "statsmodels OLS": _least_squares}.get(peer)
        loop = partial(_one_after_the_other, scores, vectors, fit)
        peer_s = seconds(loop) if fit else _all_at_once(scores, vectors, null)
        yield {
            "name": f"semantic regression {name}, {null}, one permutation, beside {peer}",
            "ours_s": round(seconds_ours, 5),
            "peer_s": round(peer_s, 4),
            "ratio": round(peer_s / seconds_ours, 1),
        }


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each size and peer."""
    for n_dimensions in (384, 1536):
        table, name = tables(1200, 14, n_dimensions), f"1200x14x{n_dimensions}"
        _run_ours(*table, 2)
        yield from _measured(table, name, "rows", (STRONGEST, "linregress", "statsmodels OLS"), (50, 450, 3))
        yield from _measured(table, name, "columns", (STRONGEST, "linregress"), (50, 450, 3))
    table = tables(10_326, 29, 384)
    yield from _measured(table, "10326x29x384", "rows", (STRONGEST, "linregress"), (20, 120, 2))


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
