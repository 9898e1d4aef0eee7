"""Prompts of an archive, with all their names, found in the store or made there.

A prompt is known by any of its names, else by its content: the first prompt of its task with this content that the
same family of files does not name otherwise. What the store lacks of it is filled in, and contradictions are told, as
of any file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session

from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.archives.archived_names import ArchivedNames
from tracker.ingest.measurement import Prompts
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT
from tracker.ingest.resolve.prompt_resolver import PromptResolver
from tracker.ingest.resolve.prompt_texts import storable_json
from tracker.ingest.write.bulk_rows import fresh_keys, raw_rows
from tracker.schema import Prompt

Name = tuple[str, str]
"""Who calls a prompt so, and how."""
ROWS_AT_ONCE = 4096
KEYS_AT_ONCE = 1000


class ArchivedPrompts:
    """The prompts of an archive on their way into the store.

    Args:
        names: what is called what.
        on_conflict: what becomes of a gold answer that contradicts the stored one.

    Attributes:
        keys: ``(n,)`` int64 key of each prompt.
        n_new: prompts that were made.
        n_named: names that stored prompts did not have.
        warnings: what the reader should be told.
    """

    def __init__(self, names: ArchivedNames, on_conflict: str) -> None:
        self.session, self.archive, self.on_conflict = names.session, names.archive, on_conflict
        self.names = names
        n = self.archive.n_rows["prompt"]
        self.keys = np.full(n, -1, dtype=np.int64)
        self.n_new = self.n_named = 0
        self.warnings: list[str] = []
        self._met = np.zeros(n, dtype=np.bool_)
        """Which of them the store had."""
        owners = self.names.keys["benchmark"]
        self._owners = [int(owners[row["benchmark"]]) for row in self.archive.rows("task")]
        self._claimed: set[int] = set()
        self._nameless = self._without_names()
        self._first_made = 1 + (self.session.scalar(sa.select(sa.func.max(PROMPT.c.id))) or 0)

    def store(self) -> None:
        """Find or make them all.

        Raises:
            BadInputError: the archive contradicts itself or a stored prompt.
        """
        for first, rows, called in self._with_names():
            self._take(first, rows, called)
        if self._met.any():
            self._complete()

    def _with_names(self) -> Iterator[tuple[int, list[dict[str, Any]], list[list[Name]]]]:
        """Rows of prompts, the place of the first, and the names of each."""
        first = 0
        waiting = _Grouped(self.archive)
        for batch in self.archive.batches("prompt"):
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                rows = batch.slice(start, ROWS_AT_ONCE).to_pylist()
                yield first, rows, [waiting.of(first + row) for row in range(len(rows))]
                first += len(rows)
        waiting.end()

    def _take(self, first: int, rows: list[dict[str, Any]], called: list[list[Name]]) -> None:
        tasks = self.names.keys["task"][[row["task"] for row in rows]].tolist()
        hashes = [row["content_hash"] for row in rows]
        page = _Page(self.session, tasks, hashes, called, self._first_made)
        fresh = iter(fresh_keys(self.session, Prompt, len(rows)))
        made: list[dict[str, Any]] = []
        aliases: list[dict[str, Any]] = []
        for at, (row, task, names) in enumerate(zip(rows, tasks, called, strict=True)):
            key = self._found(first + at, row, task, names, page)
            if key is None:
                key = next(fresh)
                occurrence = page.put(key, task, row["content_hash"], row["occurrence"])
                made.append(self._row(first + at, row, key, task, occurrence))
            else:
                self._met[first + at] = True
                self._claimed.add(key)
            for name in names:
                if page.names.setdefault((task, name), key) != key:
                    raise self.archive.error("prompt", first + at, f"{name[1]!r} is another prompt's name too")
                if (task, name) not in page.stored:
                    page.stored.add((task, name))
                    aliases.append({"task_id": task, "namespace": name[0], "key": name[1], "prompt_id": key})
                    self.n_named += key < self._first_made
            self.keys[first + at] = key
        connection = self.session.connection()
        if made:
            connection.execute(sa.insert(PROMPT), made)
            self.n_new += len(made)
        if aliases:
            connection.execute(sa.insert(ALIAS), aliases)

    def _found(self, place: int, row: dict[str, Any], task: int, names: Sequence[Name], page: _Page) -> int | None:
        """The stored prompt that is meant; None where there is none."""
        found = {page.names[task, name] for name in names if (task, name) in page.names}
        if len(found) > 1:
            text = f"{names[0][1]!r} and its other names mean {len(found)} prompts of the store"
            raise self.archive.error("prompt", place, text)
        key = next(iter(found), None)
        if key is not None and (key >= self._first_made or key in self._claimed):
            raise self.archive.error("prompt", place, f"{names[0][1]!r} means a prompt that another row means too")
        if key is None and row["content_hash"] is not None:
            return page.alike(task, row["content_hash"], row["occurrence"], names, self._claimed)
        if key is None and not names and self._nameless[task]:
            return self._nameless[task].pop(0)
        return key

    def _row(self, place: int, row: dict[str, Any], key: int, task: int, occurrence: int) -> dict[str, Any]:
        return {
            "id": key, "task_id": task, "content_hash": row["content_hash"], "occurrence": occurrence,
            "text": row["text"], "answer": row["answer"], "split": row["split"],
            "choices": self._parsed(place, row, "choices", list),
            "details": self._parsed(place, row, "details", dict),
        }  # fmt: skip

    def _parsed(self, place: int, row: dict[str, Any], name: str, kind: type) -> Any:
        value = parsed(self.archive, "prompt", place, name, row[name], kind)
        if name == "choices" and value is not None and not all(isinstance(option, str) for option in value):
            raise self.archive.error("prompt", place, "its choices are no texts")
        return value

    def _complete(self) -> None:
        """What the archive says of prompts that were there before, as any file would say it."""
        path = self.archive.path
        book = PromptResolver(self.session, self.names.identities, path, self.on_conflict)
        for first, rows, called in self._with_names():
            by_block: dict[tuple[int, str], list[int]] = defaultdict(list)
            for at in range(len(rows)):
                if self._met[first + at] and called[at]:
                    by_block[self._owners[rows[at]["task"]], called[at][0][0]].append(at)
            for (benchmark, namespace), places in by_block.items():
                task_names = self.names.identities.task_names
                chosen = [rows[at] for at in places]
                block = Prompts(
                    keys=[called[at][0][1] for at in places],
                    tasks=[task_names[int(self.names.keys["task"][row["task"]])] for row in chosen],
                    namespace=namespace,
                    text=[row["text"] for row in chosen],
                    choices=[self._parsed(first + at, rows[at], "choices", list) for at in places],
                    answer=[row["answer"] for row in chosen],
                    split=[row["split"] for row in chosen],
                    details=[self._parsed(first + at, rows[at], "details", dict) for at in places],
                    lines=np.array([first + at + 1 for at in places], dtype=np.int64),
                )
                book.keys(block, benchmark)
        self.warnings += [*book.warnings, *book.details.remarks]

    def _without_names(self) -> dict[int, list[int]]:
        """Stored prompts that have neither name nor text, by task: nothing but their order tells them apart."""
        found: dict[int, list[int]] = defaultdict(list)
        named = sa.select(ALIAS.c.prompt_id).where(ALIAS.c.prompt_id == PROMPT.c.id).exists()
        asked = sa.select(PROMPT.c.task_id, PROMPT.c.id).where(PROMPT.c.content_hash.is_(None), sa.not_(named))
        for task, key in raw_rows(self.session, asked.order_by(PROMPT.c.id)):
            found[task].append(key)
        return found


def parsed(archive: StoreArchive, table: str, place: int, name: str, text: str | None, kind: type) -> Any:
    """What a cell of JSON holds, in a form that can be stored.

    Raises:
        BadInputError: it is no JSON, or not of that kind.
    """
    if text is None:
        return None
    try:
        value = storable_json(json.loads(text))
    except (ValueError, RecursionError):
        raise archive.error(table, place, f"its {name} are no JSON") from None
    if value is not None and not isinstance(value, kind):
        raise archive.error(table, place, f"its {name} are no JSON {kind.__name__}")
    return value


class _Page:
    """What the store holds that some prompts of an archive may be.

    Attributes:
        names: prompt by task and name.
        stored: names that the store has.
    """

    def __init__(
        self,
        session: Session,
        tasks: Sequence[int],
        hashes: Sequence[str | None],
        called: Sequence[Sequence[Name]],
        first_made: int,
    ) -> None:
        self.names: dict[tuple[int, Name], int] = {}
        self._same: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        """Occurrence and key of the prompts of a task with one content."""
        self._first_made = first_made
        own = list(dict.fromkeys(tasks))
        for part in _parts({key for names in called for _, key in names}):
            asked = sa.select(ALIAS.c.task_id, ALIAS.c.namespace, ALIAS.c.key, ALIAS.c.prompt_id)
            for task, namespace, key, prompt in _of_tasks(session, asked.where(ALIAS.c.key.in_(part)), ALIAS, own):
                self.names[task, (namespace, key)] = prompt
        self.stored = set(self.names)
        for part in _parts({hashed for hashed in hashes if hashed is not None}):
            asked = sa.select(PROMPT.c.task_id, PROMPT.c.content_hash, PROMPT.c.occurrence, PROMPT.c.id)
            for task, hashed, occurrence, prompt in _of_tasks(
                session, asked.where(PROMPT.c.content_hash.in_(part)), PROMPT, own
            ):
                self._same[task, hashed][occurrence] = prompt
        self._spaces: dict[int, set[str]] = defaultdict(set)
        """Who names each of those that were there before."""
        there = {key for same in self._same.values() for key in same.values() if key < first_made}
        for part in _parts(there):
            spaces: sa.Select[Any] = sa.select(ALIAS.c.prompt_id, ALIAS.c.namespace)
            for prompt, namespace in raw_rows(session, spaces.where(ALIAS.c.prompt_id.in_(part))):
                self._spaces[prompt].add(namespace)

    def alike(
        self, task: int, hashed: str, occurrence: int, names: Sequence[Name], claimed: Collection[int]
    ) -> int | None:
        """A prompt with this content that was there before, best the same occurrence, and that nobody means yet."""
        spaces = {namespace for namespace, _ in names}
        free = [
            (nth != occurrence, nth, key)
            for nth, key in self._same[task, hashed].items()
            if key < self._first_made and key not in claimed and not spaces & self._spaces[key]
        ]
        return min(free)[2] if free else None

    def put(self, key: int, task: int, hashed: str | None, occurrence: int) -> int:
        """Place a new prompt; its occurrence, the next free one where that is taken."""
        if hashed is None:
            return occurrence
        same = self._same[task, hashed]
        nth = occurrence if occurrence not in same else max(same) + 1
        same[nth] = key
        return nth


def _of_tasks(session: Session, asked: sa.Select[Any], table: sa.Table, tasks: Sequence[int]) -> Iterator[Any]:
    for part in _parts(tasks):
        yield from raw_rows(session, asked.where(table.c.task_id.in_(part)))


def _parts(values: Collection[Any]) -> Iterator[list[Any]]:
    listed = list(values)
    return (listed[first : first + KEYS_AT_ONCE] for first in range(0, len(listed), KEYS_AT_ONCE))


class _Grouped:
    """The names of prompts, which stand in the order of the prompts."""

    def __init__(self, archive: StoreArchive) -> None:
        self._archive = archive
        self._rows = self._all()
        self._next = next(self._rows, None)
        self._n = 0

    def of(self, prompt: int) -> list[Name]:
        """The names of the prompt at a place; places must be asked for in order.

        Raises:
            BadInputError: the names are not in order.
        """
        found: list[Name] = []
        while self._next is not None and self._next[0] <= prompt:
            place, namespace, key = self._next
            if place < prompt:
                raise self._archive.error("prompt_alias", self._n, "is not in its place")
            found.append((namespace, key))
            self._next = next(self._rows, None)
            self._n += 1
        return found

    def end(self) -> None:
        """All prompts have been asked for.

        Raises:
            BadInputError: names are left.
        """
        if self._next is not None:
            raise self._archive.error("prompt_alias", self._n, "is not in its place")

    def _all(self) -> Iterator[tuple[int, str, str]]:
        for batch in self._archive.batches("prompt_alias"):
            columns = (batch.column(name).to_pylist() for name in ("prompt", "namespace", "key"))
            yield from zip(*columns, strict=True)
