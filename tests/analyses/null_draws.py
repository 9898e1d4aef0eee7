from __future__ import annotations

import numpy as np

from analyses.numerics.null_tables import draw_fixed_margins, find_common_ancestor, shuffle_columns
from analyses.numerics.similarity.score_table import PackedScores, unpack_bits
from tracker.statistics.rng_streams import stream_key


def unpack_table(packed: PackedScores, bits: np.ndarray) -> np.ndarray:
    """Packed rows as a table in the original order, NaN where missing."""
    table = np.empty((bits.shape[0], packed.n_columns))
    scores, measured = (unpack_bits(words, packed.n_columns) for words in (bits, packed.masks))
    table[packed.order] = np.where(measured, scores, np.nan)
    return table


def draw_tables(table: np.ndarray, null: str, n: int, seed: int = 0) -> list[np.ndarray]:
    packed, key = PackedScores.from_scores(table), stream_key(seed)
    if null == "columns":
        return [unpack_table(packed, shuffle_columns(packed, key, b)) for b in range(n)]
    ancestor = find_common_ancestor(packed, key)
    return [unpack_table(packed, draw_fixed_margins(packed, ancestor, key, b)) for b in range(n)]
