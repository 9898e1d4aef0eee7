"""Index of the stored prompts of a benchmark, limited to those that a block needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.ingest.resolve.duplicates import MARK, Name, strip_count
from tracker.ingest.write.bulk_rows import fetch_raw_rows
from tracker.schema import Prompt, PromptAlias, Task

PROMPT: sa.Table = Prompt.__table__  # type: ignore[attr-defined]
ALIAS: sa.Table = PromptAlias.__table__  # type: ignore[attr-defined]
TASK: sa.Table = Task.__table__  # type: ignore[attr-defined]

MAX_READ_WHOLE = 20_000
"""Benchmarks up to this size, or up to a small multiple of the block, are loaded whole."""
MAX_RATIO = 4


@dataclass(slots=True)
class IndexedPrompt:
    """A prompt as stored now, or at the end of `PromptResolver.resolve`."""

    task_id: int
    hash: str | None = None
    occurrence: int = 0
    answer: str | None = None
    split: str | None = None
    has_details: bool = False


class PromptIndex:
    """The prompts of one benchmark; only their number is kept in memory.

    Args:
        session: the store.
        benchmark_id: key of the benchmark.

    Attributes:
        was_empty: whether the benchmark had no prompts when they were counted first.
    """

    def __init__(self, session: Session, benchmark_id: int) -> None:
        self.session = session
        self.benchmark_id = benchmark_id
        self.was_empty = False
        self._n_prompts: int | None = None
        self._marked: dict[str, dict[Name, set[str]]] = {}

    @property
    def n_prompts(self) -> int:
        """Return the number of prompts."""
        if self._n_prompts is None:
            query = sa.select(sa.func.count()).select_from(PROMPT).join(TASK, TASK.c.id == PROMPT.c.task_id)
            self._n_prompts = self.session.scalar(query.where(TASK.c.benchmark_id == self.benchmark_id)) or 0
            self.was_empty = not self._n_prompts
        return self._n_prompts

    def load_names(self, namespace: str) -> dict[Name, int]:
        """Return every prompt of a namespace by task and key."""
        return {(task, key): prompt for task, key, prompt in fetch_raw_rows(self.session, self._names(namespace))}

    def find(self, namespace: str, task_ids: Collection[int], keys: Collection[str]) -> dict[Name, int]:
        """Return the prompts of a namespace with any of some keys, in any of some tasks."""
        prompts: dict[Name, int] = {}
        for part in split_keys(keys):
            query = self._names(namespace).where(ALIAS.c.task_id.in_(task_ids), ALIAS.c.key.in_(part))
            prompts.update({(task, key): prompt for task, key, prompt in fetch_raw_rows(self.session, query)})
        return prompts

    def marked(self, namespace: str) -> dict[Name, set[str]]:
        """Return the keys of prompts with a duplicate name, by the common name."""
        if namespace not in self._marked:
            self._marked[namespace] = defaultdict(set)
            query = self._names(namespace).where(ALIAS.c.key.contains(MARK))
            self.add_marked(namespace, [(task, key) for task, key, _ in fetch_raw_rows(self.session, query)])
        return self._marked[namespace]

    def add_marked(self, namespace: str, names: Collection[Name]) -> None:
        """Add names, some of which may be duplicates."""
        if namespace in self._marked:
            for name in names:
                if MARK in name[1]:
                    self._marked[namespace][strip_count(name)].add(name[1])

    def count_added(self, n: int) -> None:
        """Add to the number of prompts."""
        if self._n_prompts is not None:
            self._n_prompts += n

    def load_slice(self, namespace: str, labelled: Sequence[Name], extra: Collection[int]) -> IndexSlice:
        """Load the part of the index for some names.

        Args:
            namespace: namespace of the names.
            labelled: task and key of each prompt; -1 for any task of the benchmark.
            extra: tasks in which every key is also searched.
        """
        whole = self.n_prompts <= max(MAX_READ_WHOLE, MAX_RATIO * len(labelled))
        if whole:
            return IndexSlice(self, namespace, self.load_names(namespace), is_whole=True)
        keys: dict[int, set[str]] = defaultdict(set)
        for task, key in labelled:
            keys[task].add(key)
            for further in extra:
                keys[further].add(key)
        names: dict[Name, int] = {}
        for task, own_keys in keys.items():
            names |= self.find(namespace, [task] if task >= 0 else self._tasks(), own_keys)
        return IndexSlice(self, namespace, names, is_whole=False)

    def stored_details(self, prompt_ids: list[int]) -> Iterator[tuple[int, Any]]:
        """Return further fields of a few prompts."""
        for part in split_keys(prompt_ids):
            query = sa.select(PROMPT.c.id, PROMPT.c.details)
            yield from self.session.execute(query.where(PROMPT.c.id.in_(part)))

    def stored_texts(self, prompt_ids: list[int]) -> Iterator[tuple[int, str | None, list[str] | None]]:
        """Return text and choices of a few prompts."""
        for part in split_keys(prompt_ids):
            query = sa.select(PROMPT.c.id, PROMPT.c.text, PROMPT.c.choices)
            yield from self.session.execute(query.where(PROMPT.c.id.in_(part)))

    def _names(self, namespace: str) -> sa.Select[Any]:
        return (
            sa.select(ALIAS.c.task_id, ALIAS.c.key, ALIAS.c.prompt_id)
            .join(TASK, TASK.c.id == ALIAS.c.task_id)
            .where(TASK.c.benchmark_id == self.benchmark_id, ALIAS.c.namespace == namespace)
        )

    def _tasks(self) -> list[int]:
        return list(self.session.scalars(sa.select(TASK.c.id).where(TASK.c.benchmark_id == self.benchmark_id)))


class IndexSlice:
    """The part of an index for one block of prompts, updated while the block is resolved.

    Attributes:
        names: keys of prompts by task and name: all of the namespace, or those that the block may mean.
        prompts: stored prompts by key, as far as they were loaded.
    """

    def __init__(self, index: PromptIndex, namespace: str, names: dict[Name, int], *, is_whole: bool) -> None:
        self.index, self.namespace, self.names, self.is_whole = index, namespace, names, is_whole
        self.prompts: dict[int, IndexedPrompt] = {}
        self._same: dict[tuple[int, str], list[int]] = defaultdict(list)
        self._looked_up: set[tuple[int, str]] = set()

    def load(self, task_ids: Collection[int], hashes: Collection[str]) -> None:
        """Load the prompts with the block's names or contents.

        Args:
            task_ids: tasks whose prompts may have the contents.
            hashes: hashes of the contents.
        """
        if self.is_whole:
            self._load(self._query())
            return
        self.load_prompts(self.names.values())
        all_hashes = {*hashes, *(content.hash for content in self.prompts.values() if content.hash)}
        for part in split_keys(all_hashes):
            self._load(self._query().where(PROMPT.c.task_id.in_(task_ids), PROMPT.c.content_hash.in_(part)))
        self._looked_up.update((task, hashed) for task in task_ids for hashed in all_hashes)

    def load_prompts(self, prompt_ids: Collection[int]) -> None:
        """Load some prompts."""
        for part in split_keys([key for key in prompt_ids if key not in self.prompts]):
            self._load(self._query().where(PROMPT.c.id.in_(part)))

    def content(self, prompt_id: int) -> IndexedPrompt:
        """Return the stored state of a prompt."""
        if prompt_id not in self.prompts:
            self._load(self._query().where(PROMPT.c.id == prompt_id))
        return self.prompts[prompt_id]

    def find_equal(self, task_id: int, hashed: str) -> list[int]:
        """Return the prompts of a task with this content."""
        place = (task_id, hashed)
        if not self.is_whole and place not in self._looked_up:
            self._load(self._query().where(PROMPT.c.task_id == task_id, PROMPT.c.content_hash == hashed))
            self._looked_up.add(place)
        return self._same[place]

    def put(self, prompt_id: int, content: IndexedPrompt, task_id: int, hashed: str | None) -> None:
        """Add a prompt to a task under a hash, with the next free occurrence."""
        if content.hash:
            self.find_equal(content.task_id, content.hash).remove(prompt_id)
        content.task_id, content.hash = task_id, hashed
        content.occurrence = 0
        if hashed:
            equal = self.find_equal(task_id, hashed)
            content.occurrence = 1 + max((self.prompts[key].occurrence for key in equal), default=-1)
            equal.append(prompt_id)
        self.prompts[prompt_id] = content

    def find_named(self, prompt_ids: Collection[int]) -> set[int]:
        """Return which prompts have a name in the namespace."""
        if self.is_whole:
            return set(self.names.values())
        with_names = set(self.names.values())
        for part in split_keys(prompt_ids):
            query = sa.select(ALIAS.c.prompt_id).where(ALIAS.c.namespace == self.namespace, ALIAS.c.prompt_id.in_(part))
            with_names.update(prompt for (prompt,) in fetch_raw_rows(self.index.session, query))
        return with_names

    def _query(self) -> sa.Select[Any]:
        p = PROMPT.c
        return (
            sa.select(p.id, p.task_id, p.content_hash, p.occurrence, p.answer, p.split, p.details.is_not(None))
            .join(TASK, TASK.c.id == p.task_id)
            .where(TASK.c.benchmark_id == self.index.benchmark_id)
            .order_by(p.id)
        )

    def _load(self, query: sa.Select[Any]) -> None:
        for key, *values in fetch_raw_rows(self.index.session, query):
            if key in self.prompts:
                continue
            content = self.prompts[key] = IndexedPrompt(*values)
            if content.hash:
                self._same[content.task_id, content.hash].append(key)
