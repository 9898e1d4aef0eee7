"""Load scores of prompts as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.selection import ALL_SPLITS, restricts_split
from tracker.queries.splits.names import UNKNOWN, check_split
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import arrow_reader, number_columns, read_arrow
from tracker.queries.sql.kept_reads import MAX_CELLS, CompactScores, KeptReads, find_kept, make_compact, read_once

if TYPE_CHECKING:
    from tracker.queries.filtering.prompt_filter import PromptFilter


def read_prompts(
    session: Session, tasks: dict[int, str], only: PromptFilter | None = None, split: Sequence[str] = ()
) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Load the keys of the prompts of some tasks, with the name of each task, ordered by that name, then by key.

    Args:
        session: the store; only committed data are visible.
        tasks: name of each task by its key.
        only: a filter; prompts that it removes are left out.
        split: splits of the prompts; none means all.

    Raises:
        NotFoundError: a split does not exist.
    """
    if restricts_split(split):
        check_split(session, tasks, split)
    key = "prompts_of_tasks", tuple(tasks.items()), tuple(split)
    ids, names = read_once(session, key, lambda: _read_ordered(session, tasks, split))
    if only is None:
        return ids, names
    stays = only.align(ids)[0]
    return ids[stays], names[stays]


def _read_ordered(
    session: Session, tasks: dict[int, str], split: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Return the prompts of some tasks and splits as `read_prompts` does."""
    sql = f"SELECT id, task_id FROM prompt WHERE task_id IN ({join_keys(list(tasks))})"
    if restricts_split(split):
        in_split = f"split IN ({', '.join('?' * len(split))})"
        sql += f" AND ({in_split} OR split IS NULL)" if UNKNOWN in split else f" AND {in_split}"
    table = read_arrow(session, sql, () if ALL_SPLITS in split else tuple(split))
    ids, task_ids = (part.astype(np.int64) for part in number_columns(table))
    by_key = np.array(sorted(tasks), dtype=np.int64)
    names = np.array([tasks[key] for key in by_key.tolist()], dtype=np.str_)[np.searchsorted(by_key, task_ids)]
    order = np.lexsort((ids, names))
    ids, names = ids[order], names[order]
    for shared in (ids, names):
        shared.setflags(write=False)
    return ids, names


def read_scores(
    session: Session, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Load scores under one metric, averaged over trials; NaN = missing. See `read_averages`."""
    return read_averages(session, metric_id, run_ids, prompt_ids)[0]


def read_averages(
    session: Session, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> tuple[NDArray[np.float64], int]:
    """Load scores under one metric, averaged over trials; NaN = missing.

    Args:
        session: the store; only committed data are visible.
        metric_id: key of the metric.
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys of prompts, one per row; others are left out.

    Returns:
        ``(n_prompts, n_runs)`` float64, and the most trials of one prompt, at least 1.
    """
    kept = find_kept(session)
    compact = None if kept is None or not run_ids else _read_compact(session, kept, metric_id, run_ids[0])
    if (
        compact is not None
        and np.isin(run_ids, compact.run_ids).all()
        and np.isin(prompt_ids, compact.prompt_ids).all()
    ):
        return compact.take(run_ids, prompt_ids)
    Q, counts = _read_stored(session, metric_id, run_ids, prompt_ids)
    return Q, 1 if counts is None else int(counts.max())


def _read_compact(session: Session, kept: KeptReads, metric_id: int, run_id: int) -> CompactScores | None:
    """Return the scores of all runs of a run's benchmark, read once; None if they are too many to keep.

    Args:
        session: the store.
        kept: keeps them.
        metric_id: key of the metric.
        run_id: key of one of the runs.
    """
    run, task = tables.run.c, tables.task.c
    benchmark = session.scalar(sa.select(run.benchmark_id).where(run.id == run_id))

    def read() -> tuple[CompactScores | None]:
        run_ids = list(session.scalars(sa.select(run.id).where(run.benchmark_id == benchmark).order_by(run.id)))
        names = session.execute(sa.select(task.id, task.name).where(task.benchmark_id == benchmark))
        prompt_ids = np.sort(read_prompts(session, {row.id: row.name for row in names})[0])
        if len(run_ids) * len(prompt_ids) > MAX_CELLS:
            return (None,)
        Q, counts = _read_stored(session, metric_id, run_ids, prompt_ids)
        keys = np.array(run_ids, dtype=np.int64)
        return (CompactScores(run_ids=keys, prompt_ids=prompt_ids, values=make_compact(Q), counts=counts),)

    return kept.get(("compact_scores", metric_id, benchmark), read)[0]


def _read_stored(
    session: Session, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Return scores as `read_averages` does, and the trials of each; None if no prompt has several."""
    grid = Grid(run_ids, prompt_ids)
    sql = (
        f"SELECT run_id, prompt_id, value FROM score WHERE metric_id = {metric_id} AND run_id IN ({join_keys(run_ids)})"
    )

    def cells(batch: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        runs, prompts, values = number_columns(batch)
        positions, is_row = grid.cells(runs, prompts)
        return positions, values if is_row.all() else values[is_row]

    shape, size, n_scores = (len(prompt_ids), len(run_ids)), len(prompt_ids) * len(run_ids), 0
    Q = np.full(size, np.nan)
    if size == 0:
        return Q.reshape(shape), None
    with arrow_reader(session, sql) as reader:
        for batch in reader:
            cell, values = cells(batch)
            Q[cell] = values
            n_scores += len(values)
    if n_scores <= size - np.count_nonzero(np.isnan(Q)):
        return Q.reshape(shape), None
    # several trials: average them, in a fixed order
    cell, values = cells(read_arrow(session, f"{sql} ORDER BY run_id, prompt_id, trial"))
    sums, counts = np.bincount(cell, values, minlength=size), np.bincount(cell, minlength=size)
    Q = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return Q.reshape(shape), counts.reshape(shape).astype(np.int64)


class Grid:
    """Flat indices of prompts and runs in a matrix.

    Args:
        run_ids: keys of ``n_runs`` runs, one per column.
        prompt_ids: ``(n_prompts,)`` keys of prompts, one per row.
    """

    def __init__(self, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]) -> None:
        self._by_run, self._by_prompt = np.argsort(run_ids), np.argsort(prompt_ids)
        self._runs, self._prompts = np.asarray(run_ids)[self._by_run], prompt_ids[self._by_prompt]

    def cells(self, runs: NDArray[np.int64], prompts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return row-major flat indices, and which of the pairs have one: those of the matrix's prompts.

        Args:
            runs: ``(m,)`` keys, each of a column.
            prompts: ``(m,)`` keys.

        Returns:
            ``(n_wanted,)`` int64 indices; ``(m,)`` whether the prompt is one of the rows.
        """
        n, k = len(self._prompts), len(self._runs)
        if n == 0:
            return np.empty(0, dtype=np.int64), np.zeros(len(prompts), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self._prompts, prompts), n - 1)
        is_row = self._prompts[place] == prompts
        if not is_row.all():
            runs, place = runs[is_row], place[is_row]
        return self._by_prompt[place] * k + self._by_run[np.searchsorted(self._runs, runs)], is_row


def compute_digest(arrays: Sequence[NDArray[Any]], words: Sequence[str]) -> str:
    """SHA-256 of the bytes of arrays and of texts."""
    hashed = hashlib.sha256()
    for part in arrays:
        hashed.update(np.ascontiguousarray(part).tobytes())
    hashed.update("\x1f".join(words).encode())
    return hashed.hexdigest()


def join_keys(keys: Sequence[int]) -> str:
    """Return keys as part of a statement; with parameters PostgreSQL would not use its fast path."""
    return ",".join(str(int(key)) for key in keys) or "NULL"
