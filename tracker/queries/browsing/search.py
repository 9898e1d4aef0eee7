"""Search for a text in names and questions; upper and lower case are equal."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.browsing.prompt_statistics import contains_text
from tracker.queries.resolution import benchmark_label
from tracker.queries.sql import tables

MAX_LENGTH = 300


def find_names(keys: Mapping[str, int], text: str, limit: int) -> list[tuple[str, int]]:
    """Return names that contain a text, with their keys: those that begin with it first; none for an empty text."""
    part = text.casefold()
    matches = [(name, key) for name, key in keys.items() if part and part in name.casefold()]
    return sorted(matches, key=lambda pair: (not pair[0].casefold().startswith(part), pair[0]))[:limit]


def find_prompts(session: Session, text: str, limit: int) -> list[tuple[int, str, str]]:
    """Return key, benchmark and the beginning of the question of prompts that contain a text; none for an empty one."""
    if not text:
        return []
    prompt, benchmark = tables.prompt.c, tables.benchmark.c
    query = (
        sa.select(prompt.id, benchmark.name, benchmark.revision, sa.func.substr(prompt.text, 1, MAX_LENGTH))
        .join(tables.task, tables.task.c.id == prompt.task_id)
        .join(tables.benchmark, benchmark.id == tables.task.c.benchmark_id)
        .where(contains_text(text))
        .order_by(prompt.id)
        .limit(limit)
    )
    return [
        (key, benchmark_label(name, revision), question) for key, name, revision, question in session.execute(query)
    ]
