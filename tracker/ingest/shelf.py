"""What the store holds of one benchmark's prompts, read once and kept up to date while a file comes in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session

from tracker.ingest.loading import raw_rows
from tracker.schema import Prompt, PromptAlias, Task

PROMPT: sa.Table = Prompt.__table__  # type: ignore[attr-defined]
ALIAS: sa.Table = PromptAlias.__table__  # type: ignore[attr-defined]
TASK: sa.Table = Task.__table__  # type: ignore[attr-defined]


@dataclass(slots=True)
class Content:
    """What the store holds of a prompt, or will hold at the end of `PromptBook.resolve`."""

    task_id: int
    hash: str | None = None
    occurrence: int = 0
    answer: str | None = None
    split: str | None = None
    has_details: bool = False


class Shelf:
    """The prompts of one benchmark: names per namespace, content once it is asked for."""

    def __init__(self, session: Session, benchmark_id: int) -> None:
        self.session = session
        self.benchmark_id = benchmark_id
        self.names: dict[str, dict[tuple[int, str], int]] = {}
        self._contents: dict[int, Content] | None = None
        self._same: dict[tuple[int, str], list[int]] = defaultdict(list)

    def named(self, namespace: str) -> dict[tuple[int, str], int]:
        """Prompt by task and key."""
        if namespace not in self.names:
            asked = (
                sa.select(ALIAS.c.task_id, ALIAS.c.key, ALIAS.c.prompt_id)
                .join(TASK, TASK.c.id == ALIAS.c.task_id)
                .where(TASK.c.benchmark_id == self.benchmark_id, ALIAS.c.namespace == namespace)
            )
            self.names[namespace] = {(task, key): prompt for task, key, prompt in raw_rows(self.session, asked)}
        return self.names[namespace]

    @property
    def is_open(self) -> bool:
        """Whether the contents have been read."""
        return self._contents is not None

    @property
    def contents(self) -> dict[int, Content]:
        """Content by prompt."""
        if self._contents is None:
            p = PROMPT.c
            asked = (
                sa.select(p.id, p.task_id, p.content_hash, p.occurrence, p.answer, p.split, p.details.is_not(None))
                .join(TASK, TASK.c.id == p.task_id)
                .where(TASK.c.benchmark_id == self.benchmark_id)
                .order_by(p.id)
            )
            self._contents = {key: Content(*held) for key, *held in raw_rows(self.session, asked)}
            for key, content in self._contents.items():
                if content.hash:
                    self._same[content.task_id, content.hash].append(key)
        return self._contents

    def put(self, prompt_id: int, content: Content, task_id: int, hashed: str | None) -> None:
        """Place a prompt in a task under a hash, with the next free occurrence."""
        if content.hash:
            self.same(content.task_id, content.hash).remove(prompt_id)
        content.task_id, content.hash = task_id, hashed
        content.occurrence = 0
        if hashed:
            others = self.same(task_id, hashed)
            content.occurrence = 1 + max((self.contents[key].occurrence for key in others), default=-1)
            others.append(prompt_id)
        self.contents[prompt_id] = content

    def same(self, task_id: int, hashed: str) -> list[int]:
        """The prompts of a task with this content."""
        _ = self.contents
        return self._same[task_id, hashed]

    def stored_details(self, prompt_ids: list[int]) -> Iterator[tuple[int, Any]]:
        """Further fields of a few prompts."""
        for first in range(0, len(prompt_ids), 1000):
            asked = sa.select(PROMPT.c.id, PROMPT.c.details)
            yield from self.session.execute(asked.where(PROMPT.c.id.in_(prompt_ids[first : first + 1000])))

    def stored_texts(self, prompt_ids: list[int]) -> Iterator[tuple[int, str | None, list[str] | None]]:
        """Text and choices of a few prompts."""
        for first in range(0, len(prompt_ids), 1000):
            asked = sa.select(PROMPT.c.id, PROMPT.c.text, PROMPT.c.choices)
            yield from self.session.execute(asked.where(PROMPT.c.id.in_(prompt_ids[first : first + 1000])))
