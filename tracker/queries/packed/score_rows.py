"""Read rows of scores by column; large matrices by two threads from SQLite, and gathered from PostgreSQL."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tracker.queries.packed.gathered_scores import KEY_BITS, PROMPT_BITS, ScoreRows, group_runs, read_gathered
from tracker.queries.sql.arrow import Reading, number_columns
from tracker.queries.sql.run_terms import run_terms

BATCHES_AHEAD = 16
"""Batches that a second connection to SQLite may be ahead."""


def read_score_rows(
    reading: Reading, metric_id: int, run_ids: Sequence[int], n_prompts: int, *, is_ordered: bool = False
) -> Iterator[ScoreRows]:
    """Yield the scores of some runs.

    Args:
        reading: a connection to the store.
        metric_id: key of the metric.
        run_ids: keys of the runs.
        n_prompts: the number of prompts that are wanted.
        is_ordered: whether they are ordered by run, prompt and trial.
    """
    if is_ordered:
        yield from _read_rows(reading, metric_id, run_ids, "ORDER BY run_id, prompt_id, trial")
        return
    if reading.second and len(run_ids) > 1:
        half = len(run_ids) // 2
        yield from _read_both(
            _read_rows(reading, metric_id, run_ids[:half]), _read_rows(reading.second, metric_id, run_ids[half:])
        )
        return
    groups = group_runs(reading, run_ids, n_prompts)
    if not groups:
        yield from _read_rows(reading, metric_id, run_ids)
    for group in groups:
        yield from read_gathered(reading, metric_id, group)


def _read_both(first: Iterator[ScoreRows], second: Iterator[ScoreRows]) -> Iterator[ScoreRows]:
    """Yield the batches of two iterators, the second of which another thread advances."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(next, second, None) for _ in range(BATCHES_AHEAD))
        for rows in first:
            yield rows
            while coming[0].done() and (following := coming[0].result()):
                coming.popleft()
                coming.append(thread.submit(next, second, None))
                yield following
        while following := coming.popleft().result():
            coming.append(thread.submit(next, second, None))
            yield following


def _read_rows(reading: Reading, metric_id: int, run_ids: Sequence[int], order: str = "") -> Iterator[ScoreRows]:
    sql = (
        f"SELECT run_id * {1 << KEY_BITS} + prompt_id, value FROM score "
        f"WHERE metric_id = {metric_id} AND {run_terms(reading, run_ids)} {order}"
    )
    with reading.reader(sql, runs=run_ids) as reader:
        for batch in reader:
            keys, values = number_columns(batch)
            yield keys >> KEY_BITS, keys & PROMPT_BITS, values + 0.0
