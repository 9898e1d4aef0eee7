"""Rankings of all models together under random weights, by drawing the weights.

No closed form gives the chance of a place among many models, so weights are drawn: gamma variables, which need not be
divided by their sum to rank. Draws are made in blocks of a fixed size with a separate stream, and summed in a
fixed order without BLAS, so the counts are the same integers on any number of workers and threads. Sums are in double
precision: two models that differ on a single prompt differ in every draw.

Source: Ailem et al. 2024, section 3.3; Smith & Tromble 2004, "Sampling uniformly from the unit simplex".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.exponentials import fill_exponentials
from tracker.statistics.jit import INT, jit
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.rng_streams import SIMPLEX, generator

BLOCK = 512
"""Draws that share a stream."""
ROWS = 64
"""Prompts whose weights are held at a time, for one block of draws."""
TILE, ROWS_HELD = 128, 32
"""Draws and prompts whose weights stay in the nearest cache."""
GAMMA = 12
"""From this many prompts with the same scores on, one gamma variable costs less than as many exponential ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankDraws:
    """What the draws gave.

    Attributes:
        n_draws: how many.
        places: ``(k, k)`` int64, draws in which model i (row) had place j + 1 (column); for models with the same
            scores, which share their places, the best of these.
        ahead: ``(k, k)`` int64, draws in which the row's weighted mean was above the column's.
        means: ``(k, n_draws)`` float64 weighted means of each draw, if they were kept.
    """

    n_draws: int
    places: NDArray[np.int64]
    ahead: NDArray[np.int64]
    means: NDArray[np.float64] | None


def draw_rankings(
    X: NDArray[np.float64],
    alpha: NDArray[np.float64],
    twins: NDArray[np.int64],
    *,
    n_draws: int,
    seed: int,
    keep_means: bool = False,
) -> RankDraws:
    """Rank the models under ``Dirichlet(alpha)`` weights.

    Args:
        X: ``(n, k)`` finite scores; higher is better.
        alpha: ``(n,)`` positive.
        twins: ``(k,)`` int64, the first model with the same scores as this one.
        n_draws: at least 1.
        seed: of all draws.
        keep_means: whether to keep ``8 k n_draws`` bytes of weighted means.
    """
    unique, place = np.unique(twins, return_inverse=True)
    size = np.bincount(place)
    columns, shapes = _patterns(X[:, unique], alpha)
    blocks = split_blocks(n_draws, BLOCK)
    u = len(unique)

    def drawn(block: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]:
        sums = _weighted_sums(columns, shapes, len(blocks[block]), seed, block)
        places, ahead = np.zeros((u, len(twins)), np.int64), np.zeros((u, u), np.int64)
        _count(sums, size, places, ahead)
        return places, ahead, sums[:u] / sums[u] if keep_means else None

    places, ahead = np.zeros((u, len(twins)), np.int64), np.zeros((u, u), np.int64)
    means = np.empty((len(twins), n_draws)) if keep_means else None
    for block, (some_places, some_ahead, some_means) in enumerate(map_blocks(drawn, len(blocks))):
        places += some_places
        ahead += some_ahead
        if means is not None and some_means is not None:
            means[:, blocks[block].start : blocks[block].stop] = some_means[place]
    return RankDraws(n_draws=n_draws, places=places[place], ahead=ahead[np.ix_(place, place)], means=means)


def _patterns(X: NDArray[np.float64], alpha: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct prompts, one per column, under a row of ones, and their shapes; what is cheaper apart is kept apart.

    Columns of zeros, which have no shape, fill up to a multiple of `ROWS_HELD`.
    """
    patterns, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
    shapes = np.bincount(place.ravel(), weights=alpha, minlength=len(patterns)).astype(np.float64)
    if (alpha == 1).all():
        many = shapes >= GAMMA
        separate = ~many[place.ravel()]
        together = np.zeros(len(X), bool)
        together[first[many]] = True
        kept = np.concatenate([np.flatnonzero(together), np.flatnonzero(separate)])
        shapes = np.where(separate, 1.0, shapes[place.ravel()])[kept]
        patterns = X[kept]
    padded = -len(patterns) % ROWS_HELD
    columns = np.pad(np.vstack([patterns.T, np.ones(len(patterns))]), ((0, 0), (0, padded)))
    return columns, shapes


def _weighted_sums(
    columns: NDArray[np.float64], shapes: NDArray[np.float64], n_draws: int, seed: int, block: int
) -> NDArray[np.float64]:
    """``(k + 1, n_draws)``: each model's sum in each draw, and the sum of the weights."""
    draw = generator(seed, SIMPLEX, block)
    sums = np.zeros((len(columns), n_draws))
    weights = np.zeros((ROWS, n_draws), np.float32)
    for some in split_blocks(columns.shape[1], ROWS):
        shape = shapes[some.start : some.stop]
        drawn, padding = weights[: len(shape)], weights[len(shape) : len(some)]
        padding[:] = 0
        gammas = int(np.flatnonzero(shape != 1).max(initial=-1)) + 1
        for row, of in zip(drawn[:gammas], shape.tolist(), strict=False):
            draw.standard_gamma(of, out=row, dtype=np.float32)
        exponentials = drawn[gammas:].reshape(-1)
        words = draw.bit_generator.random_raw(-(-exponentials.size // 2)).view(np.uint32)
        fill_exponentials(words, exponentials)
        _add(sums, weights[: len(some)], columns[:, some.start : some.stop])
    return sums


@jit
def _add(sums: Any, weights: Any, columns: Any) -> None:
    """Add ``columns @ weights`` to the sums, prompts in their order; their number is a multiple of `ROWS_HELD`."""
    buffer = np.empty((ROWS_HELD, TILE))
    for tile in range(0, sums.shape[1], TILE):
        width = min(TILE, sums.shape[1] - tile)
        for start in range(0, columns.shape[1], ROWS_HELD):
            for r in range(ROWS_HELD):
                source, target = weights[start + r, tile : tile + width], buffer[r]
                for t in range(width):
                    target[t] = source[t]
            for j in range(columns.shape[0]):
                for r in range(0, ROWS_HELD, 8):
                    _add_eight(sums[j, tile : tile + width], buffer[r : r + 8], columns[j, start + r : start + r + 8])


@jit
def _add_eight(sums: Any, weights: Any, scores: Any) -> None:
    """Add eight prompts to one model's sums, in few passes over memory."""
    a, b, c, d = weights[0], weights[1], weights[2], weights[3]
    e, f, g, h = weights[4], weights[5], weights[6], weights[7]
    x0, x1, x2, x3, x4, x5, x6, x7 = (
        scores[0], scores[1], scores[2], scores[3], scores[4], scores[5], scores[6], scores[7],
    )  # fmt: skip
    for t in range(sums.size):
        few = (a[t] * x0 + b[t] * x1) + (c[t] * x2 + d[t] * x3)
        sums[t] += few + ((e[t] * x4 + f[t] * x5) + (g[t] * x6 + h[t] * x7))


@jit
def _count(sums: Any, size: Any, places: Any, ahead: Any) -> None:
    """Count the place of each model in each draw; ``size`` models share the scores of each."""
    k, n_draws = size.size, sums.shape[1]
    better = np.zeros((k, n_draws), np.int32)
    for i in range(k):
        for j in range(i + 1, k):
            weight_i, weight_j = np.int32(size[i]), np.int32(size[j])
            first: Any = INT(0)
            for t in range(n_draws):
                wins = np.int32(sums[i, t] >= sums[j, t])
                better[j, t] += weight_i * wins
                better[i, t] += weight_j * (np.int32(1) - wins)
                first += wins
            ahead[i, j] += first
            ahead[j, i] += n_draws - first
    for i in range(k):
        for t in range(n_draws):
            places[i, better[i, t]] += 1
