"""What people call a prompt: the name that files give it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.sql import tables


def load_prompt_names(session: Session, *terms: sa.ColumnElement[bool]) -> dict[int, str]:
    """What files call some prompts, tables before other harnesses; a prompt that no file names is left out.

    Args:
        session: the store.
        terms: on columns of ``prompt_alias``: which names to look at.
    """
    alias = tables.prompt_alias.c
    names: dict[int, tuple[str, str]] = {}
    for row in session.execute(sa.select(alias.prompt_id, alias.namespace, alias.key).where(*terms)):
        name = (row.namespace, row.key)  # compared here: engines differ in how they sort texts
        names[row.prompt_id] = min(names.get(row.prompt_id, name), name)
    return {key: name for key, (_, name) in names.items()}
