"""Which prompt a file means: by the name it gives it, else by its content; those that are new are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import exc
from sqlmodel import Session

from tracker.errors import AmbiguousError, BadInputError, ConflictError
from tracker.ingest.measurement import Measurement, Prompts
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.duplicates import Name, disambiguate, strip_count
from tracker.ingest.resolve.file_duplicates import FileName, find_duplicates
from tracker.ingest.resolve.prompt_details import DetailsMerger
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT, IndexedPrompt, PromptIndex
from tracker.ingest.resolve.prompt_texts import (
    PromptContents,
    accepted_answers,
    content_hash,
    normalize_prompts,
    storable,
)
from tracker.ingest.write.bulk_rows import fresh_keys
from tracker.schema import Prompt


class PromptResolver:
    """The prompts that one file names, resolved to keys.

    Args:
        session: the store.
        identities: the names of its benchmarks and tasks.
        path: the file, for messages.
        on_conflict: what becomes of a gold answer that contradicts the stored one: ``update`` overwrites it,
            ``skip`` keeps it, anything else is an error.
        partial: whether prompts that contradict those stored are left out instead of refused with the file.

    Attributes:
        n_left_out: how many were.
        left_out: the first of them, in words.
    """

    def __init__(
        self, session: Session, identities: CatalogueResolver, path: Path, on_conflict: str, *, partial: bool = False
    ) -> None:
        self.session, self.identities, self.path, self.on_conflict = session, identities, path, on_conflict
        self.partial = partial
        self.n_new = self.n_left_out = 0
        self.left_out: list[str] = []
        self.warnings: list[str] = []
        self.details = DetailsMerger()
        self.duplicates: dict[FileName, dict[str, Any]] = {}
        self.renamed: dict[tuple[int, str, Name], dict[Name, Name]] = {}
        self._shelves: dict[int, PromptIndex] = {}
        self._resolved: WeakKeyDictionary[Prompts, dict[int, NDArray[np.int64]]] = WeakKeyDictionary()

    def expect(self, measurements: Sequence[Measurement]) -> None:
        """Look through a file for prompts that it calls alike; which is which depends on all of them."""
        if getattr(measurements, "has_alike", True):
            self.duplicates = find_duplicates(measurements)

    def keys(self, prompts: Prompts, benchmark_id: int) -> NDArray[np.int64]:
        """Keys of the prompts, ``(n,)`` int64, -1 for those left out; the same object is resolved once.

        Raises:
            AmbiguousError: a key means several prompts, because tasks are missing.
            BadInputError: text or gold answer contradict those stored.
            ConflictError: a prompt cannot move to the task that the file names.
        """
        resolved = self._resolved.setdefault(prompts, {})
        if benchmark_id not in resolved:
            shelf = self._shelves.setdefault(benchmark_id, PromptIndex(self.session, benchmark_id))
            resolved[benchmark_id] = np.array(_Resolution(self, shelf, prompts).keys(), dtype=np.int64)
        return resolved[benchmark_id]

    def leave_out(self, problems: Sequence[str]) -> None:
        """Count prompts that are left out, and keep the words of the first."""
        self.n_left_out += len(problems)
        self.left_out += problems[: BadInputError.shown - len(self.left_out)]


class _Resolution:
    """One block of prompts on its way into the store: changes are gathered, then written."""

    def __init__(self, book: PromptResolver, shelf: PromptIndex, prompts: Prompts) -> None:
        self.book, self.shelf, self.prompts = book, shelf, prompts
        self.namespace = storable(prompts.namespace)
        self.made: dict[int, dict[str, Any]] = {}
        self.aliases: list[dict[str, Any]] = []
        self.moved: dict[int, int] = {}
        self.filled: dict[int, dict[str, Any]] = defaultdict(dict)
        self.problems: dict[int, str] = {}
        self.doubtful: list[tuple[int, int, str]] = []
        self.detailed: list[tuple[int, int]] = []
        self.n_answers_changed = 0
        self.given = normalize_prompts(prompts)
        labels = list(map(storable, prompts.keys))
        if prompts.tasks is None:
            known = book.identities.tasks(shelf.benchmark_id)
            self.tasks = list(known.values())
            self.nowhere: int | None = None
            self.labelled = [(-1, label) for label in labels]
        else:
            known = book.identities.tasks(shelf.benchmark_id, dict.fromkeys(prompts.tasks))
            ids = {name: known[storable(name)] for name in set(prompts.tasks)}
            self.nowhere = known.get("")
            self.labelled = [(ids[task], label) for task, label in zip(prompts.tasks, labels, strict=True)]
            self.labelled = self._as_stored(self.labelled)
            self.tasks = sorted(set(ids.values()))
        extra = [] if self.nowhere is None else [self.nowhere]
        self.tasks = [*self.tasks, *(task for task in extra if task not in self.tasks)]
        self.page = shelf.page(self.namespace, self.labelled, extra)
        self.names = self.page.names

    def keys(self) -> list[int]:
        """Resolve, write, and return the keys."""
        if self.given:
            self.page.open(self.tasks, {one.hash for one in self.given if one.hash})
        if self.prompts.tasks is None:
            found = self._without_tasks([label for _, label in self.labelled])
        else:
            found = [self.names.get(pair) for pair in self.labelled]
        missing = [row for row, key in enumerate(found) if key is None]
        if missing:
            if self.prompts.tasks is None:
                none = self.book.identities.tasks(self.shelf.benchmark_id, [""])[""]
                self.labelled = [(none, label) for _, label in self.labelled]
            self._complete(found, missing, self.labelled, self.nowhere)
        keys = [key for key in found if key is not None]
        if self.given:
            for row, key in enumerate(keys):
                if key not in self.made or self.made[key]["row"] != row:
                    self._check(row, key)
            self._settle_doubts()
            self._complete_details()
        if self.problems:
            if not self.book.partial:
                few = list(self.problems.values())
                raise BadInputError(self.book.path, few, advice=self._advice())
            self.book.leave_out(list(self.problems.values()))
            keys = [-1 if row in self.problems else key for row, key in enumerate(keys)]
        self._write()
        return keys

    def _as_stored(self, labelled: list[Name]) -> list[Name]:
        """The names of prompts; those that are called alike as the store tells them apart."""
        field = self.prompts.disambiguated_by
        if field is None or not self.given:
            return labelled
        marked, in_file = self.shelf.marked(self.namespace), self.book.duplicates
        groups = dict.fromkeys(
            group for group in map(strip_count, labelled) if group in marked or self._in_file(group) in in_file
        )
        place = (self.shelf.benchmark_id, self.namespace)
        self._tell_apart([group for group in groups if (*place, group) not in self.book.renamed], field, labelled)
        return [
            self.book.renamed[*place, strip_count(name)].get(name, name) if strip_count(name) in groups else name
            for name in labelled
        ]

    def _tell_apart(self, groups: list[Name], field: str, labelled: list[Name]) -> None:
        if not groups:
            return
        keys: dict[int, set[str]] = defaultdict(set)
        told: dict[Name, Any] = {}
        for group in groups:
            keys[group[0]] |= {group[1], *self.shelf.marked(self.namespace).get(group, ())}
            numbers = self.book.duplicates.get(self._in_file(group), {})
            told.update({(group[0], key): number for key, number in numbers.items()})
        wanted = set(groups)
        for name, content in zip(labelled, self.given, strict=True):
            if strip_count(name) in wanted:
                told.setdefault(name, (content.details or {}).get(field))
        names: dict[Name, int] = {}
        for task, those in keys.items():
            names |= self.shelf.called(self.namespace, [task], those)
        held = dict(self.shelf.stored_details(list(names.values())))
        stored = {name: (held[key] or {}).get(field) for name, key in names.items()}
        renamed: dict[Name, dict[Name, Name]] = {group: {} for group in groups}
        for name, other in disambiguate(told, stored).items():
            renamed[strip_count(name)][name] = other
        for group, those_renamed in renamed.items():
            self.book.renamed[self.shelf.benchmark_id, self.namespace, group] = those_renamed

    def _in_file(self, group: Name) -> FileName:
        """What the file calls those that are alike."""
        return self.prompts.benchmark, self.namespace, self.book.identities.task_names[group[0]], group[1]

    def _advice(self) -> str:
        gold = any("gold answer" in problem for problem in self.problems.values())
        kept = (
            " --on-conflict skip keeps the stored gold answers, --on-conflict update overwrites them." if gold else ""
        )
        return f"Correct the file, or take it in as another benchmark.{kept}"

    def _without_tasks(self, labels: list[str]) -> list[int | None]:
        by_key: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (task, key), prompt in self.names.items():
            by_key[key].append((task, prompt))
        unclear = [label for label in labels if len(by_key.get(label, ())) > 1]
        if unclear:
            names = {key: name for name, key in self.book.identities.tasks(self.shelf.benchmark_id).items()}
            tasks = sorted(repr(names[task]) for task, _ in by_key[unclear[0]])
            raise AmbiguousError(
                f"{self.book.path}: the tasks {', '.join(tasks[:8])} all have a prompt {unclear[0]!r}"
                f"{f', and {len(unclear) - 1} more are unclear' if len(unclear) > 1 else ''}. "
                "Add a column 'task' that says which is meant."
            )
        return [by_key[label][0][1] if label in by_key else None for label in labels]

    def _complete(
        self, found: list[int | None], missing: list[int], labelled: list[tuple[int, str]], nowhere: int | None
    ) -> None:
        fresh = iter(fresh_keys(self.book.session, Prompt, len(missing)))
        claimed: dict[str, int] = {}
        without = {label for task, label in labelled if task == nowhere}
        if not self.given and nowhere is not None and any((nowhere, labelled[row][1]) in self.names for row in missing):
            self.page.open(self.tasks, ())
        taken = self.page.with_names(self.page.contents)
        for row in missing:
            task, label = labelled[row]
            if (task, label) not in self.names:
                if label in claimed and claimed[label] != task:
                    names = self.book.identities.task_names
                    raise AmbiguousError(
                        f"{self.book.path}: prompt {label!r} was stored without a task, and this file has it in both "
                        f"{names[claimed[label]]!r} and {names[task]!r}. Ingest the first file again with its tasks, "
                        "into a new store or as another benchmark."
                    )
                key = self.names.pop((nowhere, label), None) if nowhere is not None and label not in without else None
                if key is not None:
                    claimed[label] = task
                    self._move(key, task)
                else:
                    key = self._bound(row, task, nowhere, taken)
                    if key is None:
                        key = next(fresh)
                        self._make(row, key, task)
                    self.aliases.append({"task_id": task, "namespace": self.namespace, "key": label, "prompt_id": key})
                    taken.add(key)
                self.names[task, label] = key
            found[row] = self.names[task, label]

    def _bound(self, row: int, task: int, nowhere: int | None, taken: set[int]) -> int | None:
        """The first prompt with this content that has no name here yet."""
        hashed = self.given[row].hash if self.given else None
        if hashed is None:
            return None
        places = [task] if nowhere is None else [task, nowhere]
        if self.prompts.tasks is None:
            places = list(self.book.identities.tasks(self.shelf.benchmark_id).values())
        for place in places:
            free = [key for key in self.page.same(place, hashed) if key not in taken]
            if free:
                key = min(free, key=lambda k: self.page.content(k).occurrence)
                if self.prompts.tasks is not None and place != task:
                    self._move(key, task)
                return key
        return None

    def _move(self, key: int, task: int) -> None:
        content = self.page.content(key)
        self.page.put(key, content, task, content.hash)
        self.moved[key] = task

    def _make(self, row: int, key: int, task: int) -> None:
        told = self.given[row] if self.given else PromptContents()
        content = IndexedPrompt(task, answer=told.answer, split=told.split, has_details=told.details is not None)
        self.page.put(key, content, task, told.hash)
        self.made[key] = {
            "row": row, "id": key, "task_id": task, "content_hash": told.hash, "occurrence": content.occurrence,
            "text": told.text, "choices": told.choices, "answer": told.answer, "split": told.split,
            "details": told.details,
        }  # fmt: skip

    def _check(self, row: int, key: int) -> None:
        """Fill in what the store lacks of a prompt, and gather what contradicts it."""
        content = self.page.content(key)
        told = self.given[row]
        if told.hash is not None and content.hash is None:
            self.page.put(key, content, content.task_id, told.hash)
            self.filled[key] |= {"text": told.text, "content_hash": told.hash, "occurrence": content.occurrence}
            if told.choices is not None:
                self.filled[key]["choices"] = told.choices
        elif told.hash is not None and told.hash != content.hash:
            self.doubtful.append((row, key, "text"))
        if told.answer is not None and content.answer is None:
            content.answer = self.filled[key]["answer"] = told.answer
        elif told.answer is not None and told.answer != content.answer:
            self.doubtful.append((row, key, "answer"))
        if told.split is not None and content.split is None:
            content.split = self.filled[key]["split"] = told.split
        if told.details is not None:
            self.detailed.append((row, key))

    def _settle_doubts(self) -> None:
        """A text without its choices does not contradict the text with them, nor a letter its option."""
        if not self.doubtful:
            return
        held = {
            key: (text, choices) for key, text, choices in self.shelf.stored_texts([k for _, k, _ in self.doubtful])
        }
        for row, key, what in self.doubtful:
            stored_text, stored_choices = held.get(key, (None, None))
            waiting = self.made.get(key, {}) | self.filled.get(key, {})
            stored_text, stored_choices = waiting.get("text", stored_text), waiting.get("choices", stored_choices)
            text, choices, answer = self.given[row].text, self.given[row].choices, self.given[row].answer
            if what == "text":
                alike = text is not None and content_hash(text, None) == content_hash(stored_text or "", None)
                if alike and choices is not None and stored_choices is None:
                    hashed = content_hash(text or "", choices)
                    content = self.page.content(key)
                    self.page.put(key, content, content.task_id, hashed)
                    occurrence = content.occurrence
                    self.filled[key] |= {"choices": choices, "content_hash": hashed, "occurrence": occurrence}
                elif not alike or choices is not None:
                    self.problems[row] = f"{self._place(row)}: a prompt whose text contradicts the stored one"
                continue
            gold = self.page.content(key).answer or ""
            if answer is None or answer.strip() in accepted_answers(gold, choices or stored_choices):
                continue
            if self.book.on_conflict == "update":
                self.page.content(key).answer = self.filled[key]["answer"] = answer
                self.n_answers_changed += 1
            elif self.book.on_conflict == "skip":
                self.n_answers_changed += 1
            else:
                self.problems[row] = (
                    f"{self._place(row)}: its gold answer {answer!r} contradicts the stored one, {gold!r}"
                )
        if self.n_answers_changed:
            done = "overwritten" if self.book.on_conflict == "update" else "kept, against this file"
            self.book.warnings.append(f"{self.n_answers_changed} gold answers of the store were {done}")

    def _complete_details(self) -> None:
        contents = self.page.contents
        held = dict(self.shelf.stored_details([key for _, key in self.detailed if contents[key].has_details]))
        for row, key in self.detailed:
            waiting = self.made.get(key, {}) | self.filled.get(key, {})
            known = waiting.get("details") or held.get(key) or {}
            if completed := self.book.details.completed(known, self.given[row].details):
                self.filled[key]["details"], contents[key].has_details = completed, True

    def _write(self) -> None:
        connection = self.book.session.connection()
        if self.moved:
            moves = [{"key_": key, "task_id": task, "occurrence": self.page.content(key).occurrence}
                     for key, task in self.moved.items()]  # fmt: skip
            connection.execute(sa.update(PROMPT).where(PROMPT.c.id == sa.bindparam("key_")), moves)
            try:
                connection.execute(
                    sa.update(ALIAS).where(ALIAS.c.prompt_id == sa.bindparam("key_")),
                    [{"key_": move["key_"], "task_id": move["task_id"]} for move in moves],
                )
            except exc.IntegrityError as error:
                raise ConflictError(
                    f"{self.book.path}: it moves prompts that were stored without a task into tasks in which other "
                    "prompts have their names already. Take it in as another benchmark."
                ) from error
        if self.made:
            connection.execute(
                sa.insert(PROMPT), [{k: v for k, v in row.items() if k != "row"} for row in self._final_rows()]
            )
            self.book.n_new += len(self.made)
            self.shelf.grown(len(self.made))
        if self.aliases:
            connection.execute(sa.insert(ALIAS), self.aliases)
            self.shelf.add_marked(self.namespace, [(row["task_id"], row["key"]) for row in self.aliases])
        alike: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for key, values in self.filled.items():
            if key not in self.made:
                alike[tuple(sorted(values))].append({"key_": key, **values})
        for rows in alike.values():
            connection.execute(sa.update(PROMPT).where(PROMPT.c.id == sa.bindparam("key_")), rows)

    def _final_rows(self) -> Iterator[dict[str, Any]]:
        for key, row in self.made.items():
            yield row | self.filled.get(key, {})

    def _place(self, row: int) -> str:
        line = "" if self.prompts.lines is None else f"line {self.prompts.lines[row]}, "
        return f"{line}prompt {self.prompts.keys[row]!r}"
