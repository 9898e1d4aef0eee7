"""Clusters of dependent prompts: those with the same value in a field, such as a shared passage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.scores import compute_digest
from tracker.queries.selection import AnalysisInput, Selection, SelectionOption
from tracker.queries.sql import tables

TASK, SPLIT, NONE = "task", "split", "none"


@dataclass(frozen=True, kw_only=True)
class Clusters(AnalysisInput):
    """The cluster of each prompt of a benchmark.

    Attributes:
        field: field that defines the clusters: ``task``, ``split``, a further field of the prompts, or ``none``.
        prompt_ids: ``(n,)`` int64 keys, ascending.
        names: ``(n,)`` value of the field; '' if the prompt has none. All empty for ``none``.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = "cluster"

    field: str
    prompt_ids: NDArray[np.int64]
    names: NDArray[np.str_]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Clusters:
        """Load the clusters of a selection; by task if it names no field.

        Raises:
            NotFoundError: no prompt of the benchmark has such a field.
        """
        field = selection.cluster or TASK
        benchmark = find_benchmark(session, selection.benchmark)
        tasks = select_tasks(session, benchmark, selection)
        prompt = tables.prompt.c
        column: Any = {TASK: prompt.task_id, SPLIT: prompt.split, NONE: sa.null()}.get(field, prompt.details)
        rows = session.execute(
            sa.select(prompt.id, column.label("value")).where(prompt.task_id.in_(tasks)).order_by(prompt.id)
        ).all()
        if field == TASK:
            names = [tasks[row.value] for row in rows]
        elif field in (SPLIT, NONE):
            names = [row.value or "" for row in rows]
        else:
            names = [_as_text((row.value or {}).get(field)) for row in rows]
            if not any(names):
                known = {name for row in rows for name in (row.value or {})}
                raise NotFoundError(f"field of {benchmark.label}'s prompts", field, [TASK, SPLIT, NONE, *sorted(known)])
        return cls(
            field=field,
            prompt_ids=np.array([row.id for row in rows], dtype=np.int64),
            names=np.array(names, dtype=np.str_),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of prompts and clusters."""
        return compute_digest((self.prompt_ids,), (self.field, *self.names.tolist()))

    def align(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.str_]:
        """Return the cluster of each of some prompts.

        Args:
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        return self.names[np.searchsorted(self.prompt_ids, prompt_ids)]


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)
