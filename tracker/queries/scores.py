"""Load scores of prompts as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.packed.compact_scores import CompactScores, make_compact
from tracker.queries.packed.packed_scores import read_packed
from tracker.queries.packed.stored_scores import read_stored
from tracker.queries.selection import ALL_SPLITS, restricts_split
from tracker.queries.splits.names import UNKNOWN, check_split
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import number_columns, read_arrow
from tracker.queries.sql.kept_reads import MAX_CELLS, KeptReads, find_kept, read_once
from tracker.queries.sql.run_terms import join_keys

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
    of_key = np.array([tasks[key] for key in by_key.tolist()], dtype=np.str_)
    names, ranks = np.unique(of_key, return_inverse=True)
    ranks = ranks[np.searchsorted(by_key, task_ids)]
    order = np.lexsort((ids, ranks))
    ids, names = ids[order], names[ranks[order]]
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
    packed = read_packed(session, metric_id, run_ids, prompt_ids)
    if packed is not None:
        return packed
    stored = read_stored(session, metric_id, run_ids, prompt_ids)
    return stored.Q, 1 if stored.counts is None else int(stored.counts.max())


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
        stored, keys = read_stored(session, metric_id, run_ids, prompt_ids), np.array(run_ids, dtype=np.int64)
        values = make_compact(stored.Q)
        return (CompactScores(run_ids=keys, prompt_ids=prompt_ids, values=values, counts=stored.counts),)

    return kept.get(("compact_scores", metric_id, benchmark), read)[0]


def compute_digest(arrays: Sequence[NDArray[Any]], words: Sequence[str]) -> str:
    """SHA-256 of the bytes of arrays and of texts."""
    hashed = hashlib.sha256()
    for part in arrays:
        hashed.update(np.ascontiguousarray(part).tobytes())
    hashed.update("\x1f".join(words).encode())
    return hashed.hexdigest()
