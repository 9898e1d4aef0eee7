"""Changes of the prompts of one block: collected first, then written together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.errors import ConflictError
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT, IndexedPrompt, IndexSlice
from tracker.ingest.resolve.prompt_texts import PromptContents
from tracker.ingest.write.bulk_rows import insert_records
from tracker.ingest.write.undo_log import undo_log
from tracker.schema import Prompt, PromptAlias


class PromptChanges:
    """New prompts and names, moved prompts, and content that is added to stored prompts.

    Args:
        index_slice: the prompts that the block needs, updated with each change.

    Attributes:
        new: columns of new prompts by key, with their row in the block.
        aliases: new names.
        moved: new task of moved prompts by key.
        filled: columns of prompts by key that get a value.
    """

    def __init__(self, index_slice: IndexSlice) -> None:
        self.slice = index_slice
        self.new: dict[int, dict[str, Any]] = {}
        self.aliases: list[dict[str, Any]] = []
        self.moved: dict[int, int] = {}
        self.filled: dict[int, dict[str, Any]] = defaultdict(dict)

    def add(self, row: int, key: int, task: int, content: PromptContents) -> None:
        """Add a prompt."""
        indexed = IndexedPrompt(
            task, answer=content.answer, split=content.split, has_details=content.details is not None
        )
        self.slice.put(key, indexed, task, content.hash)
        self.new[key] = {
            "row": row, "id": key, "task_id": task, "content_hash": content.hash, "occurrence": indexed.occurrence,
            "text": content.text, "choices": content.choices, "answer": content.answer, "split": content.split,
            "details": content.details,
        }  # fmt: skip

    def add_name(self, task: int, name: str, key: int) -> None:
        """Add a name of a prompt."""
        self.aliases.append({"task_id": task, "namespace": self.slice.namespace, "key": name, "prompt_id": key})

    def move(self, key: int, task: int) -> None:
        """Move a prompt to another task."""
        content = self.slice.content(key)
        self.slice.put(key, content, task, content.hash)
        self.moved[key] = task

    def waiting(self, key: int) -> dict[str, Any]:
        """Return the columns of a prompt that are not written yet."""
        return self.new.get(key, {}) | self.filled.get(key, {})

    def new_rows(self) -> Iterator[dict[str, Any]]:
        """Return the new prompts, with the row of each in the block."""
        for key, row in self.new.items():
            yield row | self.filled[key] if key in self.filled else row

    def write(self, session: Session, path: Path) -> None:
        """Write the changes.

        Args:
            session: the store.
            path: the file, for messages.

        Raises:
            ConflictError: a prompt cannot move to a task, in which another prompt has its name.
        """
        log = undo_log(session)
        if self.moved:
            self._write_moves(session, path)
        if self.new:
            insert_records(session, Prompt, list(self.new_rows()))
            if log is not None:
                log.add_prompts(self.new)
        if self.aliases:
            insert_records(session, PromptAlias, self.aliases)
            if log is not None:
                log.add_aliases([row for row in self.aliases if row["prompt_id"] not in self.new])
        self._write_filled(session)

    def _write_moves(self, session: Session, path: Path) -> None:
        if (log := undo_log(session)) is not None:
            log.replace_rows(session, PROMPT, [(key,) for key in self.moved], ("task_id", "occurrence"))
        moves = [
            {"key_": key, "task_id": task, "occurrence": self.slice.content(key).occurrence}
            for key, task in self.moved.items()
        ]
        session.connection().execute(sa.update(PROMPT).where(PROMPT.c.id == sa.bindparam("key_")), moves)
        try:
            session.connection().execute(
                sa.update(ALIAS).where(ALIAS.c.prompt_id == sa.bindparam("key_")),
                [{"key_": move["key_"], "task_id": move["task_id"]} for move in moves],
            )
        except exc.IntegrityError as error:
            raise ConflictError(
                f"{path}: it assigns prompts without a task to tasks in which other prompts "
                "have their names. Ingest it as another benchmark."
            ) from error

    def _write_filled(self, session: Session) -> None:
        log = undo_log(session)
        by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for key, values in self.filled.items():
            if key not in self.new:
                by_columns[tuple(sorted(values))].append({"key_": key, **values})
        for columns, rows in by_columns.items():
            if log is not None:
                log.replace_rows(session, PROMPT, [(row["key_"],) for row in rows], columns)
            session.connection().execute(sa.update(PROMPT).where(PROMPT.c.id == sa.bindparam("key_")), rows)
