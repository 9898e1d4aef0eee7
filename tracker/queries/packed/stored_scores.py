"""Read rows of scores into a dense matrix."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.packed.gathered_scores import read_whole
from tracker.queries.packed.ordered_scores import read_ordered
from tracker.queries.packed.score_rows import read_score_rows
from tracker.queries.sql.arrow import Reading, open_reading, snapshot

MIN_PAIRED = 500_000
"""Cells of a matrix from which two connections read it."""
SPARE_KEYS = 1_000_000
"""Unused keys among those of a matrix, up to which a table by key finds their positions."""


@dataclass(frozen=True, kw_only=True)
class AveragedScores:
    """Scores of some runs and prompts under one metric, averaged over trials.

    Attributes:
        Q: ``(n_prompts, n_runs)`` float64, NaN = missing.
        counts: ``(n_prompts, n_runs)`` trials of each; None if no prompt has several.
        n_left_out: rows of the runs whose prompt is none of the matrix.
    """

    Q: NDArray[np.float64]
    counts: NDArray[np.int64] | None
    n_left_out: int


def read_stored(
    source: Session | Reading, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> AveragedScores:
    """Read the rows of some runs, averaged over trials.

    Args:
        source: the store, of which only committed data are visible; or an open connection for reading.
        metric_id: key of the metric.
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys of prompts, one per row.
    """
    grid = Grid(run_ids, prompt_ids)
    shape, size, n_scores, n_rows = (len(prompt_ids), len(run_ids)), len(prompt_ids) * len(run_ids), 0, 0
    if size == 0:
        return AveragedScores(Q=np.empty(shape), counts=None, n_left_out=0)
    with _open(source, size) as reading:
        is_one = (read_ordered if reading.is_sqlite else read_whole)(reading, metric_id, run_ids, prompt_ids)
        if is_one is not None:
            return AveragedScores(Q=is_one.astype(np.float64, order="C"), counts=None, n_left_out=0)
        Q = np.full(size, np.nan)
        for runs, prompts, values in read_score_rows(reading, metric_id, run_ids, len(prompt_ids)):
            cell, is_cell = grid.cells(runs, prompts)
            Q[cell] = values if is_cell.all() else values[is_cell]
            n_scores += len(cell)
            n_rows += len(values)
        if n_scores <= size - np.count_nonzero(np.isnan(Q)):
            return AveragedScores(Q=Q.reshape(shape), counts=None, n_left_out=n_rows - n_scores)
        # several trials: average them, in a fixed order
        sums, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
        for runs, prompts, values in read_score_rows(reading, metric_id, run_ids, len(prompt_ids), is_ordered=True):
            cell, is_cell = grid.cells(runs, prompts)
            np.add.at(sums, cell, values if is_cell.all() else values[is_cell])
            np.add.at(counts, cell, 1)
    is_averaged = counts > 1
    Q[is_averaged] = sums[is_averaged] / counts[is_averaged]
    return AveragedScores(Q=Q.reshape(shape), counts=counts.reshape(shape), n_left_out=n_rows - n_scores)


def _open(source: Session | Reading, n_cells: int) -> AbstractContextManager[Reading]:
    """Open a connection for reading a matrix: a large one is read by several queries, which see one state."""
    if isinstance(source, Reading) or n_cells < MIN_PAIRED:
        return open_reading(source)
    return snapshot(source, is_paired=True)


class Grid:
    """Flat indices of prompts and runs in a matrix.

    Args:
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys of prompts, one per row.
    """

    def __init__(self, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]) -> None:
        self._runs, self._prompts = _Positions(np.asarray(run_ids, dtype=np.int64)), _Positions(prompt_ids)

    def cells(self, runs: NDArray[np.int64], prompts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return row-major flat indices, and which of the pairs have one: those of the matrix.

        Args:
            runs, prompts: ``(m,)`` keys.

        Returns:
            ``(n_wanted,)`` int64 indices; ``(m,)`` whether the run is a column and the prompt a row.
        """
        rows, columns = self._prompts.find(prompts), self._runs.find(runs)
        is_cell = np.minimum(rows, columns) >= 0
        if not is_cell.all():
            rows, columns = rows[is_cell], columns[is_cell]
        return rows * self._runs.n + columns, is_cell


class _Positions:
    """The positions of keys in an array.

    Args:
        keys: ``(n,)`` distinct keys.
    """

    def __init__(self, keys: NDArray[np.int64]) -> None:
        self.n = len(keys)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self._table: NDArray[np.int64] | None = None
        if self.n and self._keys[-1] - self._keys[0] < 4 * self.n + SPARE_KEYS:
            self._table = np.full(int(self._keys[-1] - self._keys[0]) + 1, -1, dtype=np.int64)
            self._table[keys - self._keys[0]] = np.arange(self.n)

    def find(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position of each key, -1 without any."""
        if not self.n:
            return np.full(len(keys), -1, dtype=np.int64)
        if self._table is not None:
            place = keys - self._keys[0]
            is_near = (place >= 0) & (place < len(self._table))
            near: NDArray[np.int64] = self._table[place if is_near.all() else np.where(is_near, place, 0)]
            return near if is_near.all() else np.where(is_near, near, -1)
        place = np.minimum(np.searchsorted(self._keys, keys), self.n - 1)
        return np.where(self._keys[place] == keys, self._order[place], -1)
