"""Prompts of a store, found in the target or added to it.

A prompt is found by any of its names, else by its content: the first prompt of its task with the same content and
without a different name in the same namespace. Missing content is added to the target, and contradictions are reported,
as for any file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.copying.merging.merged_names import MergedNames
from tracker.database import split_keys
from tracker.ingest.measurement import Prompts
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT
from tracker.ingest.resolve.prompt_resolver import PromptResolver
from tracker.ingest.write.bulk_rows import fetch_raw_rows, insert_records, reserve_keys
from tracker.ingest.write.undo_log import undo_log
from tracker.schema import Prompt, PromptAlias

Name = tuple[str, str]
"""Namespace and name of a prompt."""
Row = Mapping[str, Any]
CONTENT = ("text", "choices", "answer", "split", "details")


class MergedPrompts:
    """Resolves the prompts of a store to keys of the target.

    Args:
        names: resolved names of the source.
        on_conflict: what to do if a reference answer contradicts the stored one.

    Attributes:
        keys: the target's key of each prompt, by key of the source.
        n_new: number of prompts added.
        n_names_added: number of names added to stored prompts.
        warnings: messages for the user.
    """

    def __init__(self, names: MergedNames, on_conflict: str) -> None:
        self.session, self.source, self.names, self.on_conflict = names.session, names.source, names, on_conflict
        self.keys: dict[int, int] = {}
        self.n_new = self.n_names_added = 0
        self.warnings: list[str] = []
        self._owners = {row["id"]: names.keys["benchmark"][row["benchmark_id"]] for row in self.source.rows("task")}
        self._claimed: set[int] = set()
        self._nameless = self._without_names()
        self._first_new = 1 + (self.session.scalar(sa.select(sa.func.max(PROMPT.c.id))) or 0)

    def store(self) -> None:
        """Find or add all prompts.

        Raises:
            BadInputError: the source contradicts itself or a stored prompt.
        """
        for rows, row_names in self._with_names():
            self._store_rows(rows, row_names)
        if self._claimed:
            self._complete()

    def map_keys(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the target's keys of prompts, ``(n,)``."""
        return np.fromiter(map(self.keys.__getitem__, prompt_ids.tolist()), dtype=np.int64, count=len(prompt_ids))

    def _with_names(self) -> Iterator[tuple[list[dict[str, Any]], list[list[Name]]]]:
        """Yield batches of prompts, and the names of each."""
        for rows in self.source.batches("prompt"):
            names: dict[int, list[Name]] = defaultdict(list)
            between = ALIAS.c.prompt_id.between(rows[0]["id"], rows[-1]["id"])
            for alias in self.source.rows("prompt_alias", [between]):
                names[alias["prompt_id"]].append((alias["namespace"], alias["key"]))
            yield rows, [sorted(names[row["id"]]) for row in rows]

    def _store_rows(self, rows: list[dict[str, Any]], row_names: list[list[Name]]) -> None:
        tasks = [self.names.keys["task"][row["task_id"]] for row in rows]
        hashes = [row["content_hash"] for row in rows]
        index = _StoredPrompts(self.session, tasks, hashes, row_names, self._first_new)
        fresh = iter(reserve_keys(self.session, Prompt, len(rows)))
        new: list[dict[str, Any]] = []
        aliases: list[dict[str, Any]] = []
        for row, task, names in zip(rows, tasks, row_names, strict=True):
            key = self._find(row, task, names, index)
            if key is None:
                key = next(fresh)
                occurrence = index.put(key, task, row["content_hash"], row["occurrence"])
                new.append({**row, "id": key, "task_id": task, "occurrence": occurrence})
            else:
                self._claimed.add(key)
            for name in names:
                if index.names.setdefault((task, name), key) != key:
                    raise self.source.error("prompt", row["id"], f"{name[1]!r} is also the name of another prompt")
                if (task, name) not in index.stored:
                    index.stored.add((task, name))
                    aliases.append({"task_id": task, "namespace": name[0], "key": name[1], "prompt_id": key})
                    self.n_names_added += key < self._first_new
            self.keys[row["id"]] = key
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

    def _find(self, row: Row, task: int, names: Sequence[Name], index: _StoredPrompts) -> int | None:
        """Return the key of the stored prompt that a row means; None if there is none."""
        candidates = {index.names[task, name] for name in names if (task, name) in index.names}
        if len(candidates) > 1:
            text = f"{names[0][1]!r} and its other names match {len(candidates)} prompts of the store"
            raise self.source.error("prompt", row["id"], text)
        key = next(iter(candidates), None)
        if key is not None and (key >= self._first_new or key in self._claimed):
            raise self.source.error("prompt", row["id"], f"{names[0][1]!r} matches the same prompt as another row")
        if key is None and row["content_hash"] is not None:
            return index.find_equal(task, row["content_hash"], row["occurrence"], names, self._claimed)
        if key is None and not names and self._nameless[task]:
            return self._nameless[task].pop(0)
        return key

    def _complete(self) -> None:
        """Add missing content to stored prompts."""
        resolver = PromptResolver(self.session, self.names.catalogue, self.source.path, self.on_conflict)
        for rows, row_names in self._with_names():
            by_block: dict[tuple[int, str], list[tuple[Row, Name]]] = defaultdict(list)
            for row, names in zip(rows, row_names, strict=True):
                if names and self.keys[row["id"]] in self._claimed:
                    by_block[self._owners[row["task_id"]], names[0][0]].append((row, names[0]))
            for (benchmark, namespace), chosen in by_block.items():
                task_names, tasks = self.names.catalogue.task_names, self.names.keys["task"]
                contents: dict[str, Any] = {name: [row[name] for row, _ in chosen] for name in CONTENT}
                block = Prompts(
                    keys=[name for _, (_, name) in chosen],
                    tasks=[task_names[tasks[row["task_id"]]] for row, _ in chosen],
                    namespace=namespace,
                    lines=np.array([row["id"] for row, _ in chosen], dtype=np.int64),
                    **contents,
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


class _StoredPrompts:
    """Stored prompts that may match prompts of a merged store.

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
