"""Read large matrices of scores from PostgreSQL, which gathers them into a few values of many bytes.

The client of PostgreSQL decodes each value by itself, which takes as long as all that the server does. Of a
large matrix the server therefore sends all keys and scores as one value, or the keys of all scores of 0 and those of
all scores of 1, or those of one of the two alone; from PostgreSQL 16 on, several of its processes gather them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.queries.packed.score_source import ScoreSource, find_source
from tracker.queries.sql.arrow import BATCH_ROWS, Reading, number_columns
from tracker.queries.sql.run_terms import join_keys

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
"""Cells of a matrix up to which one value alone is gathered."""
MAX_UNUSED = 3
"""Unused keys of runs, for each run, up to which it is: each takes a byte for every prompt."""
WORK_MEMORY = "256MB"
"""Memory of a process of the server that gathers; with the usual 4 MB it takes 1.6 times as long."""
SAMPLED_SCORES = 20_000
"""Scores, about, that are read to learn which score is rarer, if the table has no others."""
MAX_SAMPLED_PERCENT = 1.0
"""The largest share of the table's pages that is."""
_GATHERED = np.dtype([("key", ">i8"), ("value", ">f8")])
_BAD = r"'\xffffffff'::bytea"
_KEY = f"int8send(run_id * {1 << KEY_BITS} + prompt_id)"

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
    return _group_by_size(*read_stated(reading, run_ids), n_prompts)


def _group_by_size(ids: NDArray[np.int64], n_scores: NDArray[np.int64], n_prompts: int) -> list[list[int]]:
    if int(n_scores.max(initial=0)) > MAX_GATHERED:
        return []
    n_scores = np.maximum(n_scores, n_prompts)  # another program may have left it 0
    number = (np.cumsum(n_scores) - n_scores) // SCORES_PER_QUERY
    return [ids[number == place].tolist() for place in np.unique(number)]


def read_stated(reading: Reading, run_ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ascending keys of the runs that exist, and their stated numbers of scores."""
    stated = f"SELECT id, n_scores FROM run WHERE id IN ({join_keys(run_ids)}) ORDER BY id"
    ids, n_scores = (part.astype(np.int64) for part in number_columns(reading.table(stated)))
    return ids, n_scores


def read_whole(
    reading: Reading, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> NDArray[np.bool_] | None:
    """Return the scores of 0 and 1 of a matrix, if each prompt has one in each run.

    PostgreSQL gathers the cells with the rarer of the two, by a sample, and marks of rows that are no such score; that
    is faster than the keys of both. Without marks, no score is missing if there are as many rows as cells, because a
    run has one score of a prompt in a trial.

    Args:
        reading: one state of a PostgreSQL store.
        metric_id: key of the metric.
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys, one per row.

    Returns:
        ``(n_prompts, n_runs)`` whether the score is 1; None if other scores are there or some are missing, if the keys
        of the prompts are not consecutive, or if PostgreSQL does not gather these scores.
    """
    n_prompts, runs = len(prompt_ids), np.asarray(run_ids, dtype=np.int64)
    if not MIN_GATHERED <= len(runs) * n_prompts <= MAX_PROVEN:
        return None
    first_prompt, first_run, n_keys = int(prompt_ids.min()), int(runs.min()), int(np.ptp(runs)) + 1
    if int(prompt_ids.max()) - first_prompt != n_prompts - 1 or n_keys > (1 + MAX_UNUSED) * len(runs):
        return None
    # A scan that proves nothing is lost: first what shows for little that it would.
    ids, stated = read_stated(reading, run_ids)
    groups = _group_by_size(ids, stated, n_prompts)
    if not groups or len(ids) < len(run_ids) or len(np.unique(stated)) > 1:
        return None
    source = find_source(reading, metric_id, run_ids)
    first = _count(reading, source, run_ids[:1])
    if not first.total == first.zeros + first.ones == n_prompts:
        return None
    percent = min(MAX_SAMPLED_PERCENT, 100 * SAMPLED_SCORES / (len(runs) * n_prompts))
    sampled = _count(reading, source, run_ids, percent)
    if sampled.zeros + sampled.ones < sampled.total:
        return None
    rarer = int(sampled.ones <= sampled.zeros)
    is_cell = f"trial = 0 AND prompt_id BETWEEN {first_prompt} AND {first_prompt + n_prompts - 1}"
    cell = f"int4send((run_id - {first_run}) * {n_prompts} + (prompt_id - {first_prompt}))"
    cell_or_bad = f"CASE WHEN value = {rarer} AND {is_cell} THEN {cell} ELSE {_BAD} END"
    is_one = np.full(n_keys * n_prompts, not rarer)
    for group in groups:
        sql = (
            f"SELECT count(*), {_join(cell_or_bad)} FILTER (WHERE NOT (value = {1 - rarer} AND {is_cell})) "
            f"{source.of_runs(group)}"
        )
        (n_scores,), (data,) = _gather(reading, sql, group, n_counts=1)
        cells = np.frombuffer(data, dtype=">i4")
        if n_scores != len(group) * n_prompts or cells.min(initial=0) < 0:
            return None
        for part in _parts(cells):
            is_one[part.astype(np.int64)] = rarer
    rows = is_one.reshape(n_keys, n_prompts)[runs - first_run]
    is_ascending = bool((np.diff(prompt_ids) > 0).all())
    return (rows if is_ascending else rows[:, prompt_ids - first_prompt]).T


def read_gathered(reading: Reading, metric_id: int, run_ids: Sequence[int]) -> Iterator[ScoreRows]:
    """Yield the scores of some runs, gathered by value if all are 0 or 1.

    Args:
        reading: a connection to the store.
        metric_id: key of the metric.
        run_ids: keys of the runs, at least one.
    """
    source = find_source(reading, metric_id, run_ids)
    of_runs, first = source.of_runs(run_ids), _count(reading, source, run_ids[:1])
    if len(run_ids) > 1 and first.total * len(run_ids) > 2 * SCORES_PER_QUERY:  # more than stated: too large a value
        half = len(run_ids) // 2
        yield from read_gathered(reading, metric_id, run_ids[:half])
        yield from read_gathered(reading, metric_id, run_ids[half:])
        return
    if first.zeros + first.ones == first.total:
        # faster than to gather scores too
        of_value = ", ".join(f"{_join(_KEY)} FILTER (WHERE value = {value})" for value in (0, 1))
        (n_scores,), data = _gather(reading, f"SELECT count(*), {of_value} {of_runs}", run_ids, n_counts=1)
        all_keys = [np.frombuffer(part, dtype=">i8") for part in data]
        if sum(map(len, all_keys)) == n_scores:
            for value, keys in enumerate(all_keys):
                for part in _parts(keys):
                    yield *_split(part), np.broadcast_to(float(value), len(part))
            return
    _, (data_of_all,) = _gather(reading, f"SELECT {_join(f'{_KEY} || float8send(value)')} {of_runs}", run_ids)
    for rows in _parts(np.frombuffer(data_of_all, dtype=_GATHERED)):
        yield *_split(rows["key"]), rows["value"] + 0.0


def _parts(gathered: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield parts that fit in the cache of a core."""
    for first in range(0, len(gathered), BATCH_ROWS):
        yield gathered[first : first + BATCH_ROWS]


def _split(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the runs and prompts of keys."""
    keys = keys.astype(np.int64)
    return keys >> KEY_BITS, keys & PROMPT_BITS


def _join(value: str) -> str:
    return f"string_agg({value}, NULL::bytea)"


def _count(reading: Reading, source: ScoreSource, run_ids: Sequence[int], percent: float = 100.0) -> _Counts:
    """Return the numbers of scores of some runs, or of those in a sample of the table's pages."""
    values = "count(*) FILTER (WHERE value = 0), count(*) FILTER (WHERE value = 1)"
    sql = f"SELECT count(*), {values} {source.of_runs(run_ids, percent)}"
    total, zeros, ones = (column.item() for column in number_columns(reading.table(sql, runs=run_ids)))
    return _Counts(total=total, zeros=zeros, ones=ones)


def _gather(reading: Reading, sql: str, run_ids: Sequence[int], *, n_counts: int = 0) -> tuple[list[int], list[Any]]:
    """Return the only row of a query: numbers, then gathered bytes, without a copy."""
    with _work_memory(reading), reading.reader(sql, runs=run_ids) as reader:
        batch: Any = next(filter(len, reader))
    counts = [batch.column(place)[0].as_py() for place in range(n_counts)]
    return counts, [batch.column(place).buffers()[2] or b"" for place in range(n_counts, batch.num_columns)]


@contextmanager
def _work_memory(reading: Reading) -> Iterator[None]:
    reading.execute(f"SET work_mem = '{WORK_MEMORY}'")
    yield
    reading.execute("RESET work_mem")  # the connection is kept for the next read
