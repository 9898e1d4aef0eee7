"""Names of prompts: the names that files give them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.sql import tables


def load_prompt_names(session: Session, *terms: sa.ColumnElement[bool]) -> dict[int, str]:
    """Return the names of some prompts in files, tables before other harnesses; prompts without a name are left out.

    Args:
        session: the store.
        terms: conditions on columns of ``prompt_alias`` that select names.
    """
    alias = tables.prompt_alias.c
    names: dict[int, tuple[str, str]] = {}
    for row in session.execute(sa.select(alias.prompt_id, alias.namespace, alias.key).where(*terms)):
        name = (row.namespace, row.key)  # compared here: engines sort texts differently
        names[row.prompt_id] = min(names.get(row.prompt_id, name), name)
    return {key: name for key, (_, name) in names.items()}
