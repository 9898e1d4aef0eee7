"""Read large matrices of scores of 0 and 1 from SQLite, in the order of their keys.

A row with one number takes a quarter less time to read than one with a key and a score. The number is the key of the
prompt, negative if the score is 1. The run is not read: it follows from the order, if all scores are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
from numpy.typing import NDArray

from tracker.queries.packed.gathered_scores import read_stated
from tracker.queries.sql.arrow import BATCH_ROWS, Reading, number_columns
from tracker.queries.sql.run_terms import join_keys

MIN_ORDERED = 200_000
"""Cells of a matrix from which it is read so."""


def read_ordered(
    reading: Reading, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> NDArray[np.bool_] | None:
    """Return the scores of 0 and 1 of a matrix, if each prompt has one in each run.

    Args:
        reading: one state of a SQLite store.
        metric_id: key of the metric.
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys, one per row.

    Returns:
        ``(n_prompts, n_runs)`` whether the score is 1; None if other scores are there or some are missing, or if the
        matrix is small.
    """
    runs, sorting = np.unique(run_ids), np.argsort(prompt_ids)
    size, keys = len(run_ids) * len(prompt_ids), prompt_ids[sorting]
    if size < MIN_ORDERED or len(keys) < 2 or len(runs) < len(run_ids):
        return None
    # A scan that proves nothing is lost: first what shows for little that it would.
    ids, stated = read_stated(reading, run_ids)
    if len(ids) < len(runs) or len(np.unique(stated)) > 1 or not _all_positive(reading):
        return None
    is_one = np.empty((len(runs), len(keys)), dtype=np.bool_)
    has_failed = Event()

    def read(source: Reading, first: int, stop: int) -> None:
        try:
            if not _read_runs(source, metric_id, runs[first:stop].tolist(), keys, is_one[first:stop], has_failed):
                has_failed.set()
        except BaseException:
            has_failed.set()  # ends the other thread
            raise

    read(reading, 0, 1)
    half = len(runs) // 2 if reading.second else len(runs)
    if not has_failed.is_set() and len(runs) > 1:
        with ThreadPoolExecutor(1) as thread:
            second_half = thread.submit(read, reading.second, half, len(runs)) if reading.second else None
            read(reading, 1, half)
            if second_half is not None:
                second_half.result()
    if has_failed.is_set():
        return None
    whole = np.empty((len(keys), len(runs)), dtype=np.bool_)
    whole[sorting] = is_one[np.searchsorted(runs, run_ids)].T
    return whole


def _all_positive(reading: Reading) -> bool:
    """Return whether no prompt has a key below 1, which only another program can insert."""
    return bool(number_columns(reading.table("SELECT coalesce(min(id), 1) FROM prompt"))[0].item() >= 1)


def _read_runs(
    reading: Reading,
    metric_id: int,
    run_ids: Sequence[int],
    keys: NDArray[np.int64],
    is_one: NDArray[np.bool_],
    has_failed: Event,
) -> bool:
    """Fill in which scores are 1; return whether each is 0 or 1, and each run has one of every prompt and no more.

    The keys of the prompts are compared with those of every prompt, run after run. From the last key to the first they
    descend, which they do within no run; so n runs, with n times as many rows as prompts, have the same rows each.

    Args:
        reading: a connection to the store.
        metric_id: key of the metric.
        run_ids: ``n_runs`` ascending keys.
        keys: ``(n_prompts,)`` ascending, at least two.
        is_one: ``(n_runs, n_prompts)``.
        has_failed: ends the reading.
    """
    if not run_ids:
        return True
    sql = (
        "SELECT CASE value WHEN 0 THEN prompt_id WHEN 1 THEN -prompt_id END FROM score "
        f"WHERE metric_id = {metric_id} AND run_id IN ({join_keys(run_ids)}) ORDER BY run_id, prompt_id"
    )
    expected, cells, n_read = np.resize(keys, len(keys) + BATCH_ROWS), is_one.reshape(-1), 0
    with reading.reader(sql, runs=run_ids, batch_rows=BATCH_ROWS) as reader:
        for batch in reader:
            if has_failed.is_set() or batch.column(0).null_count or n_read + len(batch) > len(cells):
                return False
            (signed,) = number_columns(batch)
            first = n_read % len(keys)
            if not np.array_equal(np.abs(signed), expected[first : first + len(signed)]):
                return False
            np.less(signed, 0, out=cells[n_read : n_read + len(signed)])
            n_read += len(signed)
    return n_read == len(cells)
