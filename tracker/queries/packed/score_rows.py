"""Read rows of scores by column; large matrices by two threads from SQLite, and as one value a run from PostgreSQL.

The client of PostgreSQL decodes each value by itself, which takes as long as all that the server does. Of a
large matrix the server sends the scores of each run as one value of many bytes, or the keys of all scores of 0 and
those of all scores of 1; from PostgreSQL 16 on, several of its processes gather them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.queries.sql.arrow import BATCH_ROWS, Reading, number_columns
from tracker.queries.sql.run_terms import join_keys, run_terms

KEY_BITS = 32
"""Bits of a prompt's key in one number with that of its run: two columns take a tenth to a fifth longer to read."""
MIN_GATHERED = 300_000
"""Cells of a matrix from which PostgreSQL gathers scores."""
SCORES_PER_QUERY = 8_000_000
"""Scores that it gathers at once, about."""
BATCHES_AHEAD = 16
"""Batches that a second connection to SQLite may be ahead."""
MAX_GATHERED = 1 << 25
"""Scores of a run up to which it does: a value has less than 1 GB."""
WORK_MEMORY = "256MB"
"""Memory of a process of the server that gathers; with the usual 4 MB it takes 1.6 times as long."""
_PROMPT = (1 << KEY_BITS) - 1
_GATHERED = np.dtype([("prompt", ">i4"), ("value", ">f8")])

ScoreRows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""``(n,)`` runs, prompts and scores; -0.0, which only edits by SQL can store in PostgreSQL, becomes 0.0."""


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
    groups = [] if reading.is_sqlite else _group_runs(reading, run_ids, n_prompts)
    if not groups:
        yield from _read_rows(reading, metric_id, run_ids)
    for group in groups:
        yield from _read_gathered(reading, metric_id, group)


def _group_runs(reading: Reading, run_ids: Sequence[int], n_prompts: int) -> list[list[int]]:
    """Return the runs whose scores are gathered at once, by their stated numbers of scores; none if they should not."""
    if len(run_ids) * n_prompts < MIN_GATHERED:
        return []
    stated = f"SELECT id, n_scores FROM run WHERE id IN ({join_keys(run_ids)}) ORDER BY id"
    ids, n_scores = (part.astype(np.int64) for part in number_columns(reading.table(stated)))
    if int(n_scores.max(initial=0)) > MAX_GATHERED:
        return []
    number = (np.cumsum(n_scores) - n_scores) // SCORES_PER_QUERY
    return [ids[number == place].tolist() for place in np.unique(number)]


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
            yield keys >> KEY_BITS, keys & _PROMPT, values + 0.0


def _read_gathered(reading: Reading, metric_id: int, run_ids: Sequence[int]) -> Iterator[ScoreRows]:
    source = f"FROM score WHERE metric_id = {metric_id} AND {run_terms(reading, run_ids)}"
    of_first = f"SELECT count(*) {source} AND run_id = {int(run_ids[0])} AND value NOT IN (0, 1)"
    reading.execute(f"SET work_mem = '{WORK_MEMORY}'")
    keys = None
    if number_columns(reading.table(of_first, runs=run_ids))[0].item() == 0:
        keys = _gather_zeros_and_ones(reading, source, run_ids)
    yield from _gather_runs(reading, source, run_ids) if keys is None else _split_keys(keys)
    reading.execute("RESET work_mem")  # the connection is kept for the next read


def _gather_zeros_and_ones(reading: Reading, source: str, run_ids: Sequence[int]) -> list[NDArray[np.int64]] | None:
    """Return the keys of runs and prompts with score 0 and with score 1; None if there are other scores.

    The server takes a sixth less time than to gather scores too.
    """
    key = f"string_agg(int8send(run_id * {1 << KEY_BITS} + prompt_id), ''::bytea)"
    sql = f"SELECT count(*), {key} FILTER (WHERE value = 0), {key} FILTER (WHERE value = 1) {source}"
    with reading.reader(sql, runs=run_ids) as reader:
        batch: Any = next(filter(len, reader))
    parts = [batch.column(place).buffers()[2] or b"" for place in (1, 2)]  # without a copy
    keys = [np.frombuffer(part, dtype=">i8") for part in parts]
    return keys if sum(map(len, keys)) == batch.column(0)[0].as_py() else None


def _split_keys(keys: Sequence[NDArray[np.int64]]) -> Iterator[ScoreRows]:
    """Yield the scores 0 and 1 of keys in parts that fit in the cache of a core."""
    for value, of_value in enumerate(keys):
        for first in range(0, len(of_value), BATCH_ROWS):
            part = of_value[first : first + BATCH_ROWS].astype(np.int64)
            yield part >> KEY_BITS, part & _PROMPT, np.broadcast_to(float(value), len(part))


def _gather_runs(reading: Reading, source: str, run_ids: Sequence[int]) -> Iterator[ScoreRows]:
    sql = f"SELECT run_id, string_agg(int4send(prompt_id) || float8send(value), ''::bytea) {source} GROUP BY run_id"
    with reading.reader(sql, runs=run_ids) as reader:
        for batch in filter(len, reader):
            gathered: Any = batch.column(1)
            buffers: Any = gathered.buffers()
            places = np.frombuffer(buffers[1], dtype=np.int32)[gathered.offset :][: len(gathered) + 1]
            places = places // _GATHERED.itemsize
            all_rows = np.frombuffer(buffers[2], dtype=_GATHERED)
            runs = number_columns(batch.select([0]))[0].astype(np.int64)
            # parts that fit in the cache of a core
            cuts = np.unique(np.searchsorted(places, np.arange(places[0], places[-1], BATCH_ROWS)))
            for first, end in pairwise([*cuts.tolist(), len(runs)]):
                rows = all_rows[places[first] : places[end]]
                of_rows = np.repeat(runs[first:end], np.diff(places[first : end + 1]))
                yield of_rows, rows["prompt"].astype(np.int64), rows["value"] + 0.0
