"""Names of splits in a selection, and the prompts that they select."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.selection import ALL_SPLITS, restricts_split
from tracker.queries.sql import tables
from tracker.queries.sql.kept_reads import read_once
from tracker.queries.sql.run_terms import join_keys

UNKNOWN = "unknown"
"""Name that selects the prompts without a split."""


def split_condition(split: Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition on ``prompt`` that selects the prompts of some splits; always true without any."""
    if not restricts_split(split):
        return sa.true()
    in_split = tables.prompt.c.split.in_(split)
    return sa.or_(in_split, tables.prompt.c.split.is_(None)) if UNKNOWN in split else in_split


def list_splits(session: Session, task_ids: Collection[int]) -> list[str]:
    """Return the names of the splits of some tasks' prompts, sorted, with `UNKNOWN` for prompts without a split."""
    prompt = tables.prompt.c

    def read() -> list[str]:
        # As literals: PostgreSQL compares each prompt with every parameter of a list.
        of_tasks = sa.literal_column(f"prompt.task_id IN ({join_keys(list(task_ids))})", sa.Boolean())
        stored = session.scalars(sa.select(prompt.split).where(of_tasks).distinct()).all()
        return sorted({UNKNOWN if name is None else name for name in stored})

    return list(read_once(session, ("splits", tuple(task_ids)), read))


def check_split(session: Session, task_ids: Collection[int], split: Sequence[str]) -> None:
    """Check that the splits of a selection exist.

    Raises:
        NotFoundError: none of the tasks' prompts is in one of the splits.
    """
    if not restricts_split(split):
        return
    known = list_splits(session, task_ids)
    for name in split:
        if name not in known:
            raise NotFoundError("split", name, [*known, ALL_SPLITS])
