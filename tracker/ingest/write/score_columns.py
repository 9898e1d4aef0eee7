"""Scores of one run and metric as sorted columns: joining, deduplication, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TRIAL_BITS = 31


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """Scores of one run for one metric, in the order of the primary key.

    Attributes:
        metric_id: key of the metric.
        keys: ``(n,)`` int64, prompt and trial packed; strictly increasing.
        values: ``(n,)`` float64, finite.
    """

    metric_id: int
    keys: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.keys)

    def where(self, chosen: NDArray[np.bool_]) -> ScoreColumn:
        """Return the scores where ``chosen`` is true."""
        return ScoreColumn(self.metric_id, self.keys[chosen], self.values[chosen])


@dataclass(frozen=True, eq=False)
class ScoreChunk:
    """Scores that one block adds to a column, in the file's order.

    Attributes:
        block: number of the block among the file's measurements.
        prompt_ids: ``(n,)`` int64, aligned with the block's prompts.
        values: ``(n,)`` float64; NaN = missing.
        trials: ``(n,)`` int64, or one number for all.
    """

    block: int
    prompt_ids: NDArray[np.int64]
    values: NDArray[np.float64]
    trials: NDArray[np.int64] | int


def pack(prompt_ids: NDArray[np.int64], trials: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Return prompt and trial as one number with the same order."""
    return (prompt_ids.astype(np.int64) << TRIAL_BITS) | trials


def unpack(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return prompts and trials of packed keys."""
    return keys >> TRIAL_BITS, keys & ((1 << TRIAL_BITS) - 1)


def assemble_scores(metric_id: int, pieces: Sequence[ScoreChunk]) -> tuple[ScoreColumn, NDArray[np.int64]]:
    """Join chunks to a column; duplicate equal scores count once.

    Returns:
        The column with the first score of each prompt and trial, and the keys ``(m,)`` of those with
        contradictory scores.
    """
    keys = np.concatenate([pack(p.prompt_ids, p.trials) for p in pieces])
    values = np.concatenate([np.asarray(p.values, dtype=np.float64) for p in pieces]) + 0.0  # -0.0 becomes 0.0
    measured = ~np.isnan(values)
    if not measured.all():
        keys, values = keys[measured], values[measured]
    if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    again = keys[1:] == keys[:-1]
    if not again.any():
        return ScoreColumn(metric_id, keys, values), np.empty(0, dtype=np.int64)
    different = np.flatnonzero(again & (values[1:] != values[:-1]))
    first = np.concatenate([[True], ~again])
    return ScoreColumn(metric_id, keys[first], values[first]), np.unique(keys[different + 1])


def find_out_of_bounds(values: NDArray[np.float64], lower: float | None, upper: float | None) -> NDArray[np.bool_]:
    """Return whether each score is outside a metric's bounds, ``(n,)``; infinity always is."""
    wrong = np.isinf(values)
    if lower is not None:
        wrong |= values < lower
    if upper is not None:
        wrong |= values > upper
    return wrong


@dataclass(frozen=True, eq=False)
class ScoreComparison:
    """Comparison of a new column with the stored one.

    Attributes:
        new: ``(n,)`` whether no score is stored.
        different: ``(n,)`` whether a different score is stored.
        stored: ``(n,)`` float64, the stored scores; NaN if there is none.
    """

    new: NDArray[np.bool_]
    different: NDArray[np.bool_]
    stored: NDArray[np.float64]


def compare_scores(column: ScoreColumn, stored: ScoreColumn | None) -> ScoreComparison:
    """Compare a column with the stored one."""
    stored_values = np.full(len(column), np.nan)
    if stored is not None and len(stored):
        at = np.minimum(np.searchsorted(stored.keys, column.keys), len(stored) - 1)
        known = stored.keys[at] == column.keys
        stored_values[known] = stored.values[at[known]]
    new = np.isnan(stored_values)
    return ScoreComparison(new=new, different=~new & (stored_values != column.values), stored=stored_values)
