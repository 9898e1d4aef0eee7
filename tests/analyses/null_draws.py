from __future__ import annotations

import numpy as np

from analyses.numerics.null_tables import draw_fixed_margins, find_common_ancestor, shuffle_columns
from analyses.numerics.similarity.bit_tables import BitTable, unpack_bits
from tracker.statistics.rng_streams import stream_key


def unpack_table(bits: BitTable, rows: np.ndarray) -> np.ndarray:
    """Packed rows as a table in the original order, NaN where missing."""
    table = np.empty((rows.shape[0], bits.n_columns))
    table[bits.order] = np.where(unpack_bits(bits.masks, bits.n_columns), unpack_bits(rows, bits.n_columns), np.nan)
    return table


def draw_tables(table: np.ndarray, null: str, n: int, seed: int = 0) -> list[np.ndarray]:
    bits, key = BitTable.from_scores(table), stream_key(seed)
    if null == "columns":
        return [unpack_table(bits, shuffle_columns(bits, key, b)) for b in range(n)]
    ancestor = find_common_ancestor(bits, key)
    return [unpack_table(bits, draw_fixed_margins(bits, ancestor, key, b)) for b in range(n)]
