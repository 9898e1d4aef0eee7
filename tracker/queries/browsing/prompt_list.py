"""Names, tasks and beginnings of the questions of some prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.sql import tables

MAX_LENGTH = 300


def describe_prompts(session: Session, prompt_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return a record of each prompt, by key: its name, task, and the beginning of its question.

    Args:
        session: the store.
        prompt_ids: their keys.
    """
    prompt = tables.prompt.c
    query = sa.select(prompt.id, tables.task.c.name, sa.func.substr(prompt.text, 1, MAX_LENGTH)).join(
        tables.task, tables.task.c.id == prompt.task_id
    )
    records: dict[int, dict[str, Any]] = {}
    for part in split_keys(prompt_ids):
        names = load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(part))
        for key, task, text in session.execute(query.where(prompt.id.in_(part))):
            records[key] = {"id": key, "name": names.get(key, str(key)), "task": task, "text": text}
    return records
