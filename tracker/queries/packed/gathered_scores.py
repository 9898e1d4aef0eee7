"""Read large matrices of scores from PostgreSQL, which gathers them into a few values of many bytes.

The client of PostgreSQL decodes each value by itself, which takes as long as all that the server does. Of a
large matrix the server therefore sends the scores of each run as one value, or the keys of all scores of 0 and
those of all scores of 1, or those of one of the two alone; from PostgreSQL 16 on, several of its processes gather them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.queries.sql.arrow import BATCH_ROWS, Reading, number_columns
from tracker.queries.sql.run_terms import join_keys, run_terms

KEY_BITS = 32
"""Bits of a prompt's key in one number with that of its run: two columns take a tenth to a fifth longer to read."""
PROMPT_BITS = (1 << KEY_BITS) - 1
"""Bits that are set in the part of a key that is the prompt."""
MIN_GATHERED = 300_000
"""Cells of a matrix from which PostgreSQL gathers scores."""
SCORES_PER_QUERY = 8_000_000
"""Scores that it gathers at once, about."""
MAX_GATHERED = 1 << 25
"""Scores of a run up to which it does: a value, of a group of runs, has less than 1 GB."""
MAX_PROVEN = 32_000_000
"""Cells of a matrix up to which one value alone is gathered: all keys are kept until the last is known."""
WORK_MEMORY = "256MB"
"""Memory of a process of the server that gathers; with the usual 4 MB it takes 1.6 times as long."""
SAMPLED_PERCENT = 1
"""Share of the pages that is read to learn which score is rarer."""
_GATHERED = np.dtype([("prompt", ">i4"), ("value", ">f8")])
_KEY = f"string_agg(int8send(run_id * {1 << KEY_BITS} + prompt_id), ''::bytea)"

ScoreRows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""``(n,)`` runs, prompts and scores; -0.0, which only edits by SQL can store in PostgreSQL, becomes 0.0."""


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """How many scores there are, and how many of them are 0 and 1."""

    total: int
    zeros: int
    ones: int


def group_runs(reading: Reading, run_ids: Sequence[int], n_prompts: int) -> list[list[int]]:
    """Return the runs whose scores are gathered at once, by their stated numbers of scores; none if they should not.

    Args:
        reading: a connection to the store.
        run_ids: keys of the runs.
        n_prompts: the number of prompts that are wanted.
    """
    if reading.is_sqlite or len(run_ids) * n_prompts < MIN_GATHERED:
        return []
    return _group_by_size(*_read_stated(reading, run_ids), n_prompts)


def _group_by_size(ids: NDArray[np.int64], n_scores: NDArray[np.int64], n_prompts: int) -> list[list[int]]:
    if int(n_scores.max(initial=0)) > MAX_GATHERED:
        return []
    n_scores = np.maximum(n_scores, n_prompts)  # another program may have left it 0
    number = (np.cumsum(n_scores) - n_scores) // SCORES_PER_QUERY
    return [ids[number == place].tolist() for place in np.unique(number)]


def _read_stated(reading: Reading, run_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ascending keys of the runs that exist, and their stated numbers of scores."""
    stated = f"SELECT id, n_scores FROM run WHERE id IN ({join_keys(run_ids)}) ORDER BY id"
    ids, n_scores = (part.astype(np.int64) for part in number_columns(reading.table(stated)))
    return ids, n_scores


def read_rarer(
    reading: Reading, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> tuple[int, list[NDArray[np.int64]]] | None:
    """Return where one of the scores 0 and 1 is, if each prompt has one score in each run: 0 or 1.

    PostgreSQL gathers the keys of one of the two, which is the rarer one in a sample, and counts the other; that takes
    four fifths of the time that the keys of both take. No score is missing if the counts add up, because a run has one
    score of a prompt in a trial.

    Args:
        reading: one state of the store.
        metric_id: key of the metric.
        run_ids: keys of the runs.
        prompt_ids: ``(n_prompts,)`` keys.

    Returns:
        the score, and the keys of runs and prompts that `split_keys` reads; None if other scores are there or some are
        missing, if the keys of the prompts are not consecutive, or if PostgreSQL does not gather these scores.
    """
    n_prompts = len(prompt_ids)
    if reading.is_sqlite or not MIN_GATHERED <= len(run_ids) * n_prompts <= MAX_PROVEN:
        return None
    if int(prompt_ids.max() - prompt_ids.min()) != n_prompts - 1:
        return None
    # A scan that proves nothing is lost: first what shows for little that it would.
    ids, stated = _read_stated(reading, run_ids)
    groups = _group_by_size(ids, stated, n_prompts)
    if not groups or len(ids) < len(run_ids) or len(np.unique(stated)) > 1:
        return None
    first = _count(reading, metric_id, run_ids[:1])
    if not first.total == first.zeros + first.ones == n_prompts:
        return None
    sampled = _count(reading, metric_id, run_ids, f"TABLESAMPLE SYSTEM ({SAMPLED_PERCENT}) REPEATABLE (0)")
    if sampled.zeros + sampled.ones < sampled.total:
        return None
    rarer = int(sampled.ones <= sampled.zeros)
    is_cell = f"trial = 0 AND prompt_id BETWEEN {prompt_ids.min()} AND {prompt_ids.max()}"
    keys = []
    for group in groups:
        sql = (
            f"SELECT count(*), count(*) FILTER (WHERE value = {1 - rarer} AND {is_cell}), "
            f"{_KEY} FILTER (WHERE value = {rarer} AND {is_cell}) {_source(reading, metric_id, group)}"
        )
        (n_scores, n_others), (of_group,) = _gather(reading, sql, group, n_counts=2)
        if not n_scores == n_others + len(of_group) == len(group) * n_prompts:
            return None
        keys.append(of_group)
    return rarer, keys


def read_gathered(reading: Reading, metric_id: int, run_ids: Sequence[int]) -> Iterator[ScoreRows]:
    """Yield the scores of some runs, gathered by value if all are 0 or 1, else by run.

    Args:
        reading: a connection to the store.
        metric_id: key of the metric.
        run_ids: keys of the runs, at least one.
    """
    source, first = _source(reading, metric_id, run_ids), _count(reading, metric_id, run_ids[:1])
    keys: list[NDArray[np.int64]] | None = None
    if first.zeros + first.ones == first.total:
        # a sixth less time than to gather scores too
        sql = f"SELECT count(*), {_KEY} FILTER (WHERE value = 0), {_KEY} FILTER (WHERE value = 1) {source}"
        (n_scores,), keys = _gather(reading, sql, run_ids, n_counts=1)
        keys = keys if sum(map(len, keys)) == n_scores else None
    if keys is None:
        yield from _gather_runs(reading, source, run_ids)
        return
    for value, of_value in enumerate(keys):
        for runs, prompts in split_keys(of_value):
            yield runs, prompts, np.broadcast_to(float(value), len(runs))


def split_keys(keys: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the runs and prompts of keys in parts that fit in the cache of a core."""
    for first in range(0, len(keys), BATCH_ROWS):
        part = keys[first : first + BATCH_ROWS].astype(np.int64)
        yield part >> KEY_BITS, part & PROMPT_BITS


def _source(reading: Reading, metric_id: int, run_ids: Sequence[int], sample: str = "") -> str:
    return f"FROM score {sample} WHERE metric_id = {metric_id} AND {run_terms(reading, run_ids)}"


def _count(reading: Reading, metric_id: int, run_ids: Sequence[int], sample: str = "") -> _Counts:
    """Return the numbers of scores of some runs, or of those in a sample of the table's pages."""
    values = "count(*) FILTER (WHERE value = 0), count(*) FILTER (WHERE value = 1)"
    sql = f"SELECT count(*), {values} {_source(reading, metric_id, run_ids, sample)}"
    total, zeros, ones = (column.item() for column in number_columns(reading.table(sql, runs=run_ids)))
    return _Counts(total=total, zeros=zeros, ones=ones)


def _gather(
    reading: Reading, sql: str, run_ids: Sequence[int], *, n_counts: int
) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Return the only row of a query: numbers, then lists of keys."""
    with _work_memory(reading), reading.reader(sql, runs=run_ids) as reader:
        batch: Any = next(filter(len, reader))
    counts = [batch.column(place)[0].as_py() for place in range(n_counts)]
    # without a copy
    lists = [batch.column(place).buffers()[2] or b"" for place in range(n_counts, batch.num_columns)]
    return counts, [np.frombuffer(part, dtype=">i8") for part in lists]


@contextmanager
def _work_memory(reading: Reading) -> Iterator[None]:
    reading.execute(f"SET work_mem = '{WORK_MEMORY}'")
    yield
    reading.execute("RESET work_mem")  # the connection is kept for the next read


def _gather_runs(reading: Reading, source: str, run_ids: Sequence[int]) -> Iterator[ScoreRows]:
    sql = f"SELECT run_id, string_agg(int4send(prompt_id) || float8send(value), ''::bytea) {source} GROUP BY run_id"
    with _work_memory(reading), reading.reader(sql, runs=run_ids) as reader:
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
