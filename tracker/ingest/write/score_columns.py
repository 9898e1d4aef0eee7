"""Scores of one run under one metric as sorted columns: put together, made unique, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TRIAL_BITS = 31


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """Scores of one run under one metric, in the order of the primary key.

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
        """The scores where ``chosen`` is true."""
        return ScoreColumn(self.metric_id, self.keys[chosen], self.values[chosen])


@dataclass(frozen=True, eq=False)
class ScoreChunk:
    """What one block of a file adds to a column, in the file's order.

    Attributes:
        block: number of the block among the file's measurements.
        prompt_ids: ``(n,)`` int64, aligned with the block's prompts.
        values: ``(n,)`` float64; NaN = not measured.
        trials: ``(n,)`` int64, or one number for all.
    """

    block: int
    prompt_ids: NDArray[np.int64]
    values: NDArray[np.float64]
    trials: NDArray[np.int64] | int


def pack(prompt_ids: NDArray[np.int64], trials: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Prompt and trial as one number that sorts as they do."""
    return (prompt_ids.astype(np.int64) << TRIAL_BITS) | trials


def unpack(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Prompts and trials of packed keys."""
    return keys >> TRIAL_BITS, keys & ((1 << TRIAL_BITS) - 1)


def assemble_scores(metric_id: int, pieces: Sequence[ScoreChunk]) -> tuple[ScoreColumn, NDArray[np.int64]]:
    """One column of all pieces; what is said twice alike counts once.

    Returns:
        The column, which holds the first score of each prompt and trial, and the keys ``(m,)`` of those that were given
        different scores.
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
    """Whether a metric's bounds do not allow each score, ``(n,)``; infinity is never allowed."""
    wrong = np.isinf(values)
    if lower is not None:
        wrong |= values < lower
    if upper is not None:
        wrong |= values > upper
    return wrong


@dataclass(frozen=True, eq=False)
class ScoreComparison:
    """A new column beside the stored one.

    Attributes:
        new: ``(n,)`` whether the store holds no score there yet.
        different: ``(n,)`` whether it holds another one.
        stored: ``(n,)`` float64, the stored scores; NaN where there is none.
    """

    new: NDArray[np.bool_]
    different: NDArray[np.bool_]
    stored: NDArray[np.float64]


def compare_scores(column: ScoreColumn, stored: ScoreColumn | None) -> ScoreComparison:
    """What of a column the store holds already, and holds otherwise."""
    stored_values = np.full(len(column), np.nan)
    if stored is not None and len(stored):
        at = np.minimum(np.searchsorted(stored.keys, column.keys), len(stored) - 1)
        known = stored.keys[at] == column.keys
        stored_values[known] = stored.values[at[known]]
    new = np.isnan(stored_values)
    return ScoreComparison(new=new, different=~new & (stored_values != column.values), stored=stored_values)
