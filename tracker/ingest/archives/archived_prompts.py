"""Prompts of an archive, found in the store or added to it.

A prompt is found by any of its names, else by its content: the first prompt of its task with the same content and
without a different name in the same namespace. Missing content is added to the store, and contradictions are reported,
as for any file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.archives.archived_names import ArchivedNames
from tracker.ingest.measurement import Prompts
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT
from tracker.ingest.resolve.prompt_resolver import PromptResolver
from tracker.ingest.resolve.prompt_texts import make_storable_json
from tracker.ingest.write.bulk_rows import fetch_raw_rows, insert_records, reserve_keys
from tracker.ingest.write.undo_log import undo_log
from tracker.schema import Prompt, PromptAlias

Name = tuple[str, str]
"""Namespace and name of a prompt."""
ROWS_PER_BATCH = 4096


class ArchivedPrompts:
    """Resolves the prompts of an archive to keys of the store.

    Args:
        names: resolved names of the archive.
        on_conflict: what to do if a reference answer contradicts the stored one.

    Attributes:
        keys: ``(n,)`` int64 key of each prompt.
        n_new: number of prompts added.
        n_names_added: number of names added to stored prompts.
        warnings: messages for the user.
    """

    def __init__(self, names: ArchivedNames, on_conflict: str) -> None:
        self.session, self.archive, self.on_conflict = names.session, names.archive, on_conflict
        self.names = names
        n = self.archive.n_rows["prompt"]
        self.keys = np.full(n, -1, dtype=np.int64)
        self.n_new = self.n_names_added = 0
        self.warnings: list[str] = []
        self._was_stored = np.zeros(n, dtype=np.bool_)
        """Return which prompts were in the store before."""
        owners = self.names.keys["benchmark"]
        self._owners = [int(owners[row["benchmark"]]) for row in self.archive.rows("task")]
        self._claimed: set[int] = set()
        self._nameless = self._without_names()
        self._first_new = 1 + (self.session.scalar(sa.select(sa.func.max(PROMPT.c.id))) or 0)

    def store(self) -> None:
        """Find or add all prompts.

        Raises:
            BadInputError: the archive contradicts itself or a stored prompt.
        """
        for first, rows, row_names in self._with_names():
            self._store_rows(first, rows, row_names)
        if self._was_stored.any():
            self._complete()

    def _with_names(self) -> Iterator[tuple[int, list[dict[str, Any]], list[list[Name]]]]:
        """Return batches of prompts, the index of the first, and the names of each."""
        first = 0
        reader = _NameReader(self.archive)
        for batch in self.archive.batches("prompt"):
            for start in range(0, batch.num_rows, ROWS_PER_BATCH):
                rows = batch.slice(start, ROWS_PER_BATCH).to_pylist()
                yield first, rows, [reader.read(first + row) for row in range(len(rows))]
                first += len(rows)
        reader.check_end()

    def _store_rows(self, first: int, rows: list[dict[str, Any]], row_names: list[list[Name]]) -> None:
        tasks = self.names.keys["task"][[row["task"] for row in rows]].tolist()
        hashes = [row["content_hash"] for row in rows]
        index = _StoredPrompts(self.session, tasks, hashes, row_names, self._first_new)
        fresh = iter(reserve_keys(self.session, Prompt, len(rows)))
        new: list[dict[str, Any]] = []
        aliases: list[dict[str, Any]] = []
        for at, (row, task, names) in enumerate(zip(rows, tasks, row_names, strict=True)):
            key = self._find(first + at, row, task, names, index)
            if key is None:
                key = next(fresh)
                occurrence = index.put(key, task, row["content_hash"], row["occurrence"])
                new.append(self._row(first + at, row, key, task, occurrence))
            else:
                self._was_stored[first + at] = True
                self._claimed.add(key)
            for name in names:
                if index.names.setdefault((task, name), key) != key:
                    raise self.archive.error("prompt", first + at, f"{name[1]!r} is also the name of another prompt")
                if (task, name) not in index.stored:
                    index.stored.add((task, name))
                    aliases.append({"task_id": task, "namespace": name[0], "key": name[1], "prompt_id": key})
                    self.n_names_added += key < self._first_new
            self.keys[first + at] = key
        log = undo_log(self.session)
        if new:
            insert_records(self.session, Prompt, new)
            self.n_new += len(new)
            if log is not None:
                log.add_prompts(row["id"] for row in new)
        if aliases:
            insert_records(self.session, PromptAlias, aliases)
            if log is not None:
                log.add_aliases(aliases)

    def _find(
        self, place: int, row: dict[str, Any], task: int, names: Sequence[Name], index: _StoredPrompts
    ) -> int | None:
        """Return the key of the stored prompt that a row means; None if there is none."""
        candidates = {index.names[task, name] for name in names if (task, name) in index.names}
        if len(candidates) > 1:
            text = f"{names[0][1]!r} and its other names match {len(candidates)} prompts of the store"
            raise self.archive.error("prompt", place, text)
        key = next(iter(candidates), None)
        if key is not None and (key >= self._first_new or key in self._claimed):
            raise self.archive.error("prompt", place, f"{names[0][1]!r} matches the same prompt as another row")
        if key is None and row["content_hash"] is not None:
            return index.find_equal(task, row["content_hash"], row["occurrence"], names, self._claimed)
        if key is None and not names and self._nameless[task]:
            return self._nameless[task].pop(0)
        return key

    def _row(self, place: int, row: dict[str, Any], key: int, task: int, occurrence: int) -> dict[str, Any]:
        return {
            "id": key, "task_id": task, "content_hash": row["content_hash"], "occurrence": occurrence,
            "text": row["text"], "answer": row["answer"], "split": row["split"],
            "choices": self._parse(place, row, "choices", list),
            "details": self._parse(place, row, "details", dict),
        }  # fmt: skip

    def _parse(self, place: int, row: dict[str, Any], name: str, kind: type) -> Any:
        value = parse_cell(self.archive, "prompt", place, name, row[name], kind)
        if name == "choices" and value is not None and not all(isinstance(option, str) for option in value):
            raise self.archive.error("prompt", place, "its choices are not texts")
        return value

    def _complete(self) -> None:
        """Add missing content to stored prompts."""
        path = self.archive.path
        resolver = PromptResolver(self.session, self.names.catalogue, path, self.on_conflict)
        for first, rows, row_names in self._with_names():
            by_block: dict[tuple[int, str], list[int]] = defaultdict(list)
            for at in range(len(rows)):
                if self._was_stored[first + at] and row_names[at]:
                    by_block[self._owners[rows[at]["task"]], row_names[at][0][0]].append(at)
            for (benchmark, namespace), places in by_block.items():
                task_names = self.names.catalogue.task_names
                chosen = [rows[at] for at in places]
                block = Prompts(
                    keys=[row_names[at][0][1] for at in places],
                    tasks=[task_names[int(self.names.keys["task"][row["task"]])] for row in chosen],
                    namespace=namespace,
                    text=[row["text"] for row in chosen],
                    choices=[self._parse(first + at, rows[at], "choices", list) for at in places],
                    answer=[row["answer"] for row in chosen],
                    split=[row["split"] for row in chosen],
                    details=[self._parse(first + at, rows[at], "details", dict) for at in places],
                    lines=np.array([first + at + 1 for at in places], dtype=np.int64),
                )
                resolver.resolve(block, benchmark)
        self.warnings += [*resolver.warnings, *resolver.details.warnings]

    def _without_names(self) -> dict[int, list[int]]:
        """Return the stored prompts without name and text by task; only their order distinguishes them."""
        by_task: dict[int, list[int]] = defaultdict(list)
        has_name = sa.select(ALIAS.c.prompt_id).where(ALIAS.c.prompt_id == PROMPT.c.id).exists()
        query = sa.select(PROMPT.c.task_id, PROMPT.c.id).where(PROMPT.c.content_hash.is_(None), sa.not_(has_name))
        for task, key in fetch_raw_rows(self.session, query.order_by(PROMPT.c.id)):
            by_task[task].append(key)
        return by_task


def parse_cell(archive: StoreArchive, table: str, place: int, name: str, text: str | None, kind: type) -> Any:
    """Return the value of a JSON cell in a form that can be stored.

    Raises:
        BadInputError: the cell is not JSON of the expected type.
    """
    if text is None:
        return None
    try:
        value = make_storable_json(json.loads(text))
    except (ValueError, RecursionError):
        raise archive.error(table, place, f"its {name} are not valid JSON") from None
    if value is not None and not isinstance(value, kind):
        raise archive.error(table, place, f"its {name} are not a JSON {kind.__name__}")
    return value


class _StoredPrompts:
    """Stored prompts that may match prompts of an archive.

    Attributes:
        names: keys of prompts by task and name.
        stored: names in the store.
    """

    def __init__(
        self,
        session: Session,
        tasks: Sequence[int],
        hashes: Sequence[str | None],
        row_names: Sequence[Sequence[Name]],
        first_new: int,
    ) -> None:
        self.names: dict[tuple[int, Name], int] = {}
        self._equal: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        """Return occurrence and key of the prompts of a task with the same content."""
        self._first_new = first_new
        task_ids = list(dict.fromkeys(tasks))
        for part in split_keys({key for names in row_names for _, key in names}):
            query = sa.select(ALIAS.c.task_id, ALIAS.c.namespace, ALIAS.c.key, ALIAS.c.prompt_id)
            for task, namespace, key, prompt in _select_tasks(
                session, query.where(ALIAS.c.key.in_(part)), ALIAS, task_ids
            ):
                self.names[task, (namespace, key)] = prompt
        self.stored = set(self.names)
        for part in split_keys({hashed for hashed in hashes if hashed is not None}):
            query = sa.select(PROMPT.c.task_id, PROMPT.c.content_hash, PROMPT.c.occurrence, PROMPT.c.id)
            for task, hashed, occurrence, prompt in _select_tasks(
                session, query.where(PROMPT.c.content_hash.in_(part)), PROMPT, task_ids
            ):
                self._equal[task, hashed][occurrence] = prompt
        self._spaces: dict[int, set[str]] = defaultdict(set)
        """Return the namespaces of the prompts that were stored before."""
        earlier = {key for equal in self._equal.values() for key in equal.values() if key < first_new}
        for prompt_ids in split_keys(earlier):
            spaces: sa.Select[Any] = sa.select(ALIAS.c.prompt_id, ALIAS.c.namespace)
            for prompt, namespace in fetch_raw_rows(session, spaces.where(ALIAS.c.prompt_id.in_(prompt_ids))):
                self._spaces[prompt].add(namespace)

    def find_equal(
        self, task: int, hashed: str, occurrence: int, names: Sequence[Name], claimed: Collection[int]
    ) -> int | None:
        """Return a stored prompt with this content that no row has matched yet, preferably of the same occurrence."""
        spaces = {namespace for namespace, _ in names}
        free = [
            (nth != occurrence, nth, key)
            for nth, key in self._equal[task, hashed].items()
            if key < self._first_new and key not in claimed and not spaces & self._spaces[key]
        ]
        return min(free)[2] if free else None

    def put(self, key: int, task: int, hashed: str | None, occurrence: int) -> int:
        """Add a new prompt; return its occurrence, or the next free one."""
        if hashed is None:
            return occurrence
        equal = self._equal[task, hashed]
        nth = occurrence if occurrence not in equal else max(equal) + 1
        equal[nth] = key
        return nth


def _select_tasks(session: Session, query: sa.Select[Any], table: sa.Table, tasks: Sequence[int]) -> Iterator[Any]:
    for part in split_keys(tasks):
        yield from fetch_raw_rows(session, query.where(table.c.task_id.in_(part)))


class _NameReader:
    """Names of prompts, in the order of the prompts."""

    def __init__(self, archive: StoreArchive) -> None:
        self._archive = archive
        self._rows = self._all()
        self._next = next(self._rows, None)
        self._n = 0

    def read(self, prompt: int) -> list[Name]:
        """Return the names of the prompt at an index; indices must increase.

        Raises:
            BadInputError: the names are not sorted.
        """
        names: list[Name] = []
        while self._next is not None and self._next[0] <= prompt:
            place, namespace, key = self._next
            if place < prompt:
                raise self._archive.error("prompt_alias", self._n, "is out of order")
            names.append((namespace, key))
            self._next = next(self._rows, None)
            self._n += 1
        return names

    def check_end(self) -> None:
        """Check that all names have been read.

        Raises:
            BadInputError: unread names remain.
        """
        if self._next is not None:
            raise self._archive.error("prompt_alias", self._n, "is out of order")

    def _all(self) -> Iterator[tuple[int, str, str]]:
        for batch in self._archive.batches("prompt_alias"):
            columns = (batch.column(name).to_pylist() for name in ("prompt", "namespace", "key"))
            yield from zip(*columns, strict=True)
