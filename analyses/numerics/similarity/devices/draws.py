"""Shuffled columns on a device: the tables of `analyses.numerics.null_tables.shuffle_columns`, bit by bit.

The kernel takes the words of a stream one by one. Here all columns of a block, and all draws of a column, are computed
at once in integers:

- A word of a stream is a function of its number (Philox), so that all of them are computed in parallel.
- A rejected word shifts the words of all later draws of its column by one. A pass finds the first rejected word of each
  column; passes repeat until none is left. A word is rejected with probability ``n / 2**33`` on average, so that 10^5
  rows need a few passes.
- Floyd's algorithm replaces a row that is selected already by the last row of its range. Whether a draw is replaced
  depends on at most one earlier draw, and `find_replaced` follows these references by doubling.

Source: as for the kernels, `tracker.statistics.rng_kernels` and `analyses.numerics.null_tables`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from analyses.numerics.null_tables import shuffle_columns
from analyses.numerics.similarity.devices.packed_bits import Tensor, pack_on_device
from analyses.numerics.similarity.score_table import WORD, PackedScores
from tracker.statistics.rng_kernels import BATCH
from tracker.statistics.rng_streams import COLUMNS

MAX_ROWS = 1 << 18
"""Rows up to which columns are shuffled on the device; the passes for rejected words grow with their square."""
MAX_CELLS = 1 << 23
"""Cells of the columns that are shuffled at once."""
SPARE = 64
"""Words that are computed beyond the number of draws, for rejected ones; more where these do not suffice."""

_MASK = 0xFFFFFFFF
_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def compute_words(key: NDArray[np.uint64], purpose: int, permutation: int, columns: Tensor, n_words: int) -> Tensor:
    """The first words of the streams of some columns, ``(n_columns, n)`` int64 with ``n >= n_words``.

    Products of 32-bit words wrap around in int64; their upper and lower halves are those of unsigned numbers.
    """
    n_batches = -(-n_words // (4 * BATCH))
    c0: Any = torch.arange(n_batches * BATCH, device=columns.device).unsqueeze(0) & _MASK
    c1: Any = columns.unsqueeze(1)
    c2: Any = torch.tensor(permutation, device=columns.device)
    c3: Any = torch.tensor(purpose, device=columns.device)
    k0, k1 = (int(word) for word in key)
    for _ in range(_ROUNDS):
        left, right = c0 * _MULTIPLY[0], c2 * _MULTIPLY[1]
        c0, c1 = ((right >> 32) & _MASK) ^ c1 ^ k0, right & _MASK
        c2, c3 = ((left >> 32) & _MASK) ^ c3 ^ k1, left & _MASK
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    words = torch.stack(torch.broadcast_tensors(c0, c1, c2, c3), dim=1)
    return words.view(len(columns), 4, n_batches, BATCH).transpose(1, 2).reshape(len(columns), -1)


def draw_below(words: Tensor, bounds: Tensor, is_draw: Tensor, n_spare: int) -> Tensor | None:
    """Draw unbiased integers below bounds, as `tracker.statistics.rng_kernels.fill_below` does.

    Args:
        words: ``(n_columns, n)`` int64, of the streams.
        bounds: ``(n_columns, m)`` int64, in ``[1, 2**32)``.
        is_draw: ``(n_columns, m)`` bool; False after the last draw of a column.
        n_spare: at most ``n - m``.

    Returns:
        ``(n_columns, m)`` int64; None if more than ``n_spare`` words of a column are rejected.
    """
    number = torch.arange(bounds.shape[1], device=bounds.device)
    thresholds = ((1 << 32) - bounds) % bounds
    place = number.expand_as(bounds)
    for _ in range(n_spare + 1):
        product = words.gather(1, place) * bounds
        is_rejected = ((product & _MASK) < thresholds) & is_draw
        if not is_rejected.any():
            return (product >> 32) & _MASK
        first = torch.where(is_rejected, number, bounds.shape[1]).amin(dim=1, keepdim=True)
        place = place + (number >= first)
    return None


def find_replaced(drawn: Tensor, n_cells: Tensor, n_drawn: Tensor, is_draw: Tensor) -> Tensor:
    """Whether the number of each draw of Floyd's algorithm is selected already.

    It is if an earlier draw has the same number, or if the number is the last of the range of an earlier draw that was
    replaced by it.

    Args:
        drawn: ``(n_columns, m)`` int64; draw ``i`` is at most ``n_cells - n_drawn + i``.
        n_cells, n_drawn: ``(n_columns, 1)`` int64, cells of a column and draws from them.
        is_draw: ``(n_columns, m)`` bool; False after the last draw of a column.
    """
    number = torch.arange(drawn.shape[1], device=drawn.device).expand_as(drawn)
    size = int(n_cells.max()) + 1  # the last place collects what is no draw
    places = torch.where(is_draw, drawn, size - 1)
    first = torch.full((len(drawn), size), drawn.shape[1], device=drawn.device)
    first.scatter_reduce_(1, places, number, "amin")
    is_repeated = (first.gather(1, places) < number) & is_draw
    referred = drawn - (n_cells - n_drawn)
    reference = torch.where(is_draw & ~is_repeated & (referred >= 0), referred, number)
    while True:
        further = reference.gather(1, reference)
        if torch.equal(further, reference):
            return is_repeated.gather(1, reference)
        reference = further


def shuffle_on_device(packed: PackedScores, key: NDArray[np.uint64], permutation: int, *, device: str) -> Any:
    """The table of `shuffle_columns`, ``(n, n_words)`` uint64; it is computed on the CPU above `MAX_ROWS` rows."""
    n, n_words = packed.bits.shape
    if n > MAX_ROWS:
        return shuffle_columns(packed, key, permutation)
    cells, starts, ones = (torch.from_numpy(a).to(device) for a in (packed.cells, packed.cell_starts, packed.ones))
    bits = torch.zeros((n, n_words * WORD), dtype=torch.uint8, device=device)
    size = max(1, MAX_CELLS // n)
    for begin in range(0, packed.n_columns, size):
        columns = torch.arange(begin, min(begin + size, packed.n_columns), device=device)
        start, n_cells = starts[columns].unsqueeze(1), (starts[columns + 1] - starts[columns]).unsqueeze(1)
        n_ones = ones[columns].unsqueeze(1)
        n_drawn = torch.minimum(n_ones, n_cells - n_ones)
        number = torch.arange(int(n_drawn.max()), device=device)
        is_draw = number < n_drawn
        # the last of the range of each draw; 0 after the last draw
        last = torch.where(is_draw, n_cells - n_drawn + number, 0)
        drawn, n_spare = None, SPARE
        while drawn is None:
            words = compute_words(key, COLUMNS, permutation, columns, len(number) + n_spare)
            drawn, n_spare = draw_below(words, last + 1, is_draw, n_spare), 2 * n_spare + 1
        selected = torch.where(find_replaced(drawn, n_cells, n_drawn, is_draw), last, drawn)
        column = columns.unsqueeze(1).expand_as(selected)[is_draw]
        bits[cells[(start + selected)[is_draw]], column] = 1
        _invert(bits, cells, columns[(n_drawn != n_ones).squeeze(1)], starts)
    return pack_on_device(bits)


def _invert(bits: Tensor, cells: Tensor, columns: Tensor, starts: Tensor) -> None:
    """Turn over every measured cell of some columns, of which the zeros were drawn."""
    n_cells = starts[columns + 1] - starts[columns]
    column = torch.repeat_interleave(columns, n_cells)
    before = torch.repeat_interleave(n_cells.cumsum(0) - n_cells, n_cells)
    place = torch.repeat_interleave(starts[columns], n_cells) + torch.arange(len(column), device=bits.device) - before
    bits[cells[place], column] ^= 1
