"""Cliques of rows of which at most one holds in a box: how many there are bounds how many rows hold at once.

Rows p and q conflict in a box if λ d_p·w + (1 − λ) d_q·w > 0 in all of it for some λ in [0, 1]; by duality, just then
no weights in the box make both at most 0. The left side has its least value at a corner of the box, and that least
value is concave in λ. Each corner is a tangent: two tangents, rising and falling, enclose the λ that are left, and the
next λ is where they cross. Rows that are both negative at a corner do not conflict.

Rows are 32-bit floats with Σ|slopes| = 1 in the box's coordinates; a conflict counts only beyond what rounding can do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.boxes.rows_in_box import MAX_ERROR, RowsInBox
from tracker.statistics.jit import INT, jit, popcount, sum_kernel

N_CORNERS = 512
"""Corners at which the signs of all rows are compared before any two rows are."""

MAX_CLIQUE = 12
"""Rows of a clique."""

MAX_TANGENTS = 8
"""Values of λ between the ends that are tried for two rows."""

ROUNDING = 2.0**-23
"""For each weight, of a sum of size 1 in 32-bit floats."""

UNIT, ZERO, LOWEST_BIT = np.float32(1), np.float32(0), np.uint64(1)


@sum_kernel
def _fall_at_corner(slopes: Any, p: Any, q: Any) -> Any:
    """How far row ``q`` is below its value at the centre where row ``p`` is least."""
    fall = ZERO
    for j in range(slopes.shape[1]):
        fall += slopes[q, j] * np.copysign(UNIT, slopes[p, j])
    return fall


@sum_kernel
def _falls_at_mixed_corner(slopes: Any, p: Any, q: Any, share: Any) -> Any:
    """How far two rows are below their values at the centre where ``share`` p + (1 − share) q is least."""
    fall_p, fall_q, rest = ZERO, ZERO, UNIT - share
    for j in range(slopes.shape[1]):
        a, b = slopes[p, j], slopes[q, j]
        sign = np.copysign(UNIT, share * a + rest * b)
        fall_p += a * sign
        fall_q += b * sign
    return fall_p, fall_q


@jit
def _conflict(slopes: Any, centre: Any, p: Any, q: Any, margin: Any) -> Any:
    """Whether two rows are proven not to hold both."""
    # Tangents as the values of p and of q at a corner: falling at the corner of p, rising at that of q.
    falling_p, falling_q = centre[p] - UNIT, centre[q] - _fall_at_corner(slopes, p, q)
    if falling_q <= 0:
        return False
    rising_p, rising_q = centre[p] - _fall_at_corner(slopes, q, p), centre[q] - UNIT
    if rising_p <= 0:
        return False
    for _ in range(MAX_TANGENTS):
        if rising_q * falling_p > rising_p * falling_q:
            return False  # no share is left between the tangents' zeros
        up = falling_q - rising_q
        share = up / (up + (rising_p - falling_p))
        fall_p, fall_q = _falls_at_mixed_corner(slopes, p, q, share)
        value_p, value_q = centre[p] - fall_p, centre[q] - fall_q
        if share * value_p + (UNIT - share) * value_q > margin:
            return True
        if value_p > 0 and value_q < 0:
            rising_p, rising_q = value_p, value_q
        elif value_p < 0 and value_q > 0:
            falling_p, falling_q = value_p, value_q
        else:
            return False
    return False


@jit
def _exclude(is_negative: Any, columns: Any, row: Any, candidates: Any, first_word: Any) -> None:
    """Remove from ``candidates`` the rows that are negative at a corner at which ``row`` is."""
    for corner in range(is_negative.shape[1]):
        if is_negative[row, corner]:
            for word in range(first_word, len(candidates)):
                candidates[word] &= ~columns[corner, word]


@jit
def _cover(slopes: Any, centre: Any, is_negative: Any, columns: Any, margin: Any, clique_of: Any) -> None:
    """Fill ``clique_of`` with the clique of each row.

    The first free row begins a clique; each free row after it joins that conflicts with all of its members.
    """
    n_rows, n_words = len(centre), columns.shape[1]
    free, candidates = np.zeros(n_words, np.uint64), np.empty(n_words, np.uint64)
    members = np.empty(MAX_CLIQUE, np.int64)
    for index in range(n_rows):
        free[index >> 6] |= LOWEST_BIT << np.uint64(index & 63)
    n_cliques = INT(0)
    for leader in range(n_rows):
        first_word = leader >> 6
        bit = LOWEST_BIT << np.uint64(leader & 63)
        if not free[first_word] & bit:
            continue
        free[first_word] &= ~bit
        clique_of[leader], members[0], size = n_cliques, leader, 1
        for word in range(first_word, n_words):
            candidates[word] = free[word]
        _exclude(is_negative, columns, leader, candidates, first_word)
        for word in range(first_word, n_words):
            while candidates[word] and size < MAX_CLIQUE:
                bit = candidates[word] & (~candidates[word] + LOWEST_BIT)
                candidates[word] &= ~bit
                row: Any = word * 64 + INT(popcount(bit - LOWEST_BIT))
                fits = True
                for member in range(size):
                    if not _conflict(slopes, centre, members[member], row, margin):
                        fits = False
                        break
                if fits:
                    free[word] &= ~bit
                    clique_of[row], members[size] = n_cliques, row
                    size += 1
                    _exclude(is_negative, columns, row, candidates, word)
        n_cliques += 1


def cover_with_cliques(rows: RowsInBox) -> NDArray[np.int64]:
    """``(n_rows,)`` the clique of each row, counted from 0; a row without conflict has its own.

    Args:
        rows: those that can be reversed most easily first.
    """
    n_rows, n_weights = rows.slopes.shape
    slopes = np.zeros((n_rows, -(-n_weights // 8) * 8), np.float32)
    slopes[:, :n_weights] = rows.slopes
    centre = rows.centre.astype(np.float32)
    chosen = np.linspace(0, n_rows - 1, min(N_CORNERS, n_rows)).astype(np.int64)
    is_negative = centre[:, None] - slopes @ np.sign(slopes[chosen]).T < 0
    packed = np.packbits(is_negative.T, axis=1, bitorder="little")
    columns = np.zeros((len(chosen), -(-n_rows // 64) * 8), np.uint8)
    columns[:, : packed.shape[1]] = packed
    clique_of = np.empty(n_rows, np.int64)
    margin = np.float32((n_weights + 16) * ROUNDING + 2 * MAX_ERROR)
    _cover(slopes, centre, is_negative, columns.view("<u8"), margin, clique_of)
    return clique_of
