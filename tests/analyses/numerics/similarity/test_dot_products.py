"""Dot products by tiles have the bytes of a plain loop over the columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.similarity.dot_products import LANES, PANEL, fill_dots, make_tiles


def multiply_column_by_column(scores: np.ndarray, i: int) -> np.ndarray:
    """The sums of products of row ``i`` with all rows, added in the order of the columns."""
    total = np.zeros(len(scores))
    for column in range(scores.shape[1]):
        total += scores[i, column] * scores[:, column]
    return total


@settings(max_examples=60)
@given(st.integers(2, 150), st.integers(1, 70), st.integers(0, 10**6))
def test_sums_have_the_bytes_of_a_plain_loop(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-150, 150, (n, 1))
    scores[rng.random((n, k)) < 0.2] = 0
    first = int(rng.integers(n))
    last = min(n, first + int(rng.integers(1, PANEL + 1)))
    dots = np.full((PANEL, -(-n // LANES) * LANES), np.nan)
    fill_dots(scores, make_tiles(scores), first, last, dots)
    for i in range(first, last):
        assert dots[i - first, i:n].tobytes() == multiply_column_by_column(scores, i)[i:].tobytes()


@pytest.mark.parametrize("n", [1, LANES, LANES + 1])
def test_tiles_hold_every_row_once(n: int) -> None:
    scores = np.random.default_rng(0).random((n, 3))
    tiles = make_tiles(scores)
    rows = tiles.transpose(0, 2, 1).reshape(-1, 3)
    assert np.array_equal(rows[:n], scores)
    assert not rows[n:].any()
