"""Scores of prompts as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.queries.arrow import arrow_reader, number_columns, read_arrow

if TYPE_CHECKING:
    from tracker.queries.filters import PromptFilter


def read_prompts(
    session: Session, tasks: dict[int, str], only: PromptFilter | None = None
) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Keys of the prompts of some tasks, with the name of each one's task, ordered by that name, then by key.

    Args:
        session: the store; only what is committed is seen.
        tasks: name of each task by its key.
        only: a filter; prompts that it does not keep are left out.
    """
    table = read_arrow(session, f"SELECT id, task_id FROM prompt WHERE task_id IN ({_listed(list(tasks))})")
    ids, task_ids = (part.astype(np.int64) for part in number_columns(table))
    by_key = np.array(sorted(tasks), dtype=np.int64)
    names = np.array([tasks[key] for key in by_key.tolist()], dtype=np.str_)[np.searchsorted(by_key, task_ids)]
    order = np.lexsort((ids, names))
    if only is not None:
        order = order[only.of(ids[order])[0]]
    return ids[order], names[order]


def read_scores(
    session: Session, metric_id: int, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Scores under one metric, trials averaged; NaN = not measured.

    Args:
        session: the store; only what is committed is seen.
        metric_id: key of the metric.
        run_ids: keys of ``n_runs`` runs, one for each column.
        prompt_ids: ``(n_prompts,)`` keys of prompts, one for each row; others are left out.

    Returns:
        ``(n_prompts, n_runs)`` float64.
    """
    n, k = len(prompt_ids), len(run_ids)
    by_run, by_prompt = np.argsort(run_ids), np.argsort(prompt_ids)
    sorted_runs, sorted_prompts = np.asarray(run_ids)[by_run], prompt_ids[by_prompt]
    sql = f"SELECT run_id, prompt_id, value FROM score WHERE metric_id = {metric_id} AND run_id IN ({_listed(run_ids)})"

    def cells(batch: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        runs, prompts, values = number_columns(batch)
        place = np.minimum(np.searchsorted(sorted_prompts, prompts), n - 1)
        wanted = sorted_prompts[place] == prompts
        if not wanted.all():
            runs, values, place = runs[wanted], values[wanted], place[wanted]
        return by_prompt[place] * k + by_run[np.searchsorted(sorted_runs, runs)], values

    Q, n_scores = np.full(n * k, np.nan), 0
    if n == 0:
        return Q.reshape(n, k)
    with arrow_reader(session, sql) as reader:
        for batch in reader:
            cell, values = cells(batch)
            Q[cell] = values
            n_scores += len(values)
    if n_scores > n * k - np.count_nonzero(np.isnan(Q)):  # several trials: average them, in a fixed order
        cell, values = cells(read_arrow(session, f"{sql} ORDER BY run_id, prompt_id, trial"))
        sums, counts = np.bincount(cell, values, minlength=n * k), np.bincount(cell, minlength=n * k)
        Q = np.divide(sums, counts, out=np.full(n * k, np.nan), where=counts > 0)
    return Q.reshape(n, k)


def _listed(keys: Sequence[int]) -> str:
    """Keys as part of a statement; parameters would make PostgreSQL leave its fast path."""
    return ",".join(str(int(key)) for key in keys) or "NULL"
