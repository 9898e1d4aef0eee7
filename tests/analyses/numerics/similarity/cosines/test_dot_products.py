"""Dot products by tiles have the bytes of a plain loop in double precision, and small errors in single precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.similarity.cosines.dot_products import PANEL, TILE_BYTES, fill_dots, make_tiles

ROUNDING = 2.0**-24


def multiply_column_by_column(scores: np.ndarray, i: int) -> np.ndarray:
    """The sums of products of row ``i`` with all rows, added in the order of the columns."""
    total = np.zeros(len(scores))
    for column in range(scores.shape[1]):
        total += scores[i, column] * scores[:, column]
    return total


def some_dots(scores: np.ndarray, first: int, last: int, n_together: int) -> np.ndarray:
    """The panel of some rows."""
    tiles = make_tiles(scores)
    dots = np.full((PANEL, tiles.shape[0] * tiles.shape[2]), np.nan, scores.dtype)
    fill_dots(scores, tiles, first, last, n_together, dots)
    return dots


@settings(max_examples=60)
@given(st.integers(2, 150), st.integers(1, 70), st.integers(0, 10**6))
def test_sums_have_the_bytes_of_a_plain_loop(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-150, 150, (n, 1))
    scores[rng.random((n, k)) < 0.2] = 0
    first = int(rng.integers(n))
    last = min(n, first + int(rng.integers(1, PANEL + 1)))
    dots = some_dots(scores, first, last, k)
    for i in range(first, last):
        assert dots[i - first, i:n].tobytes() == multiply_column_by_column(scores, i)[i:].tobytes()


@settings(max_examples=60)
@given(st.integers(2, 150), st.integers(1, 70), st.sampled_from([1, 8, 16, 100]), st.integers(0, 10**6))
def test_sums_in_single_precision_err_by_a_rounding_for_each_step(n: int, k: int, n_together: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, k)).astype(np.float32)
    scores[rng.random((n, k)) < 0.2] = 0
    first = int(rng.integers(n))
    last = min(n, first + PANEL)
    dots = some_dots(scores, first, last, n_together)
    wide = scores.astype(np.float64)
    for i in range(first, last):
        error = np.abs(dots[i - first, i:n] - multiply_column_by_column(wide, i)[i:])
        n_steps = 1 + min(k, n_together) + -(-k // n_together)
        assert (error <= 1.01 * ROUNDING * n_steps * (np.abs(wide[i:]) @ np.abs(wide[i]))).all()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_tiles_hold_every_row_once(difference: int, precision: type) -> None:
    n = TILE_BYTES // np.dtype(precision).itemsize + difference
    scores = np.random.default_rng(0).random((n, 3)).astype(precision)
    tiles = make_tiles(scores)
    rows = tiles.transpose(0, 2, 1).reshape(-1, 3)
    assert np.array_equal(rows[:n], scores)
    assert not rows[n:].any()
