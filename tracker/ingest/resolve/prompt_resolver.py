"""Resolution of prompts by name, else by content; unknown prompts are added."""

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
from sqlalchemy.orm import Session

from tracker.errors import AmbiguousError, BadInputError, ConflictError
from tracker.ingest.measurement import Measurement, Prompts
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.duplicates import Name, disambiguate, strip_count
from tracker.ingest.resolve.file_duplicates import FileName, find_duplicates
from tracker.ingest.resolve.prompt_details import DetailsMerger
from tracker.ingest.resolve.prompt_index import ALIAS, PROMPT, IndexedPrompt, PromptIndex
from tracker.ingest.resolve.prompt_texts import (
    PromptContents,
    hash_content,
    list_accepted_answers,
    make_storable,
    normalize_prompts,
)
from tracker.ingest.write.bulk_rows import reserve_keys
from tracker.ingest.write.undo_log import undo_log
from tracker.prompt_checks import PromptChecks
from tracker.schema import Prompt


class PromptResolver:
    """Resolves the prompts of one file to keys.

    Args:
        session: the store.
        catalogue: resolver of benchmarks and tasks.
        path: the file, for messages.
        on_conflict: what to do if a reference answer contradicts the stored one: ``update`` overwrites it, ``skip``
            keeps it, any other value raises.
        partial: whether to skip prompts that contradict stored ones, instead of rejecting the file.

    Attributes:
        n_omitted: number of skipped prompts.
        omitted: descriptions of the first of them.
    """

    def __init__(
        self, session: Session, catalogue: CatalogueResolver, path: Path, on_conflict: str, *, partial: bool = False
    ) -> None:
        self.session, self.catalogue, self.path, self.on_conflict = session, catalogue, path, on_conflict
        self.partial = partial
        self.n_new = self.n_omitted = 0
        self.omitted: list[str] = []
        self.warnings: list[str] = []
        self.checks: PromptChecks[str] = PromptChecks()
        self.details = DetailsMerger()
        self.duplicates: dict[FileName, dict[str, Any]] = {}
        self.renamed: dict[tuple[int, str, Name], dict[Name, Name]] = {}
        self._indexes: dict[int, PromptIndex] = {}
        self._resolved: WeakKeyDictionary[Prompts, dict[int, NDArray[np.int64]]] = WeakKeyDictionary()

    def expect(self, measurements: Sequence[Measurement]) -> None:
        """Collect the duplicate names of a file; their meaning depends on all of them."""
        if getattr(measurements, "has_duplicates", True):
            self.duplicates = find_duplicates(measurements)

    def resolve(self, prompts: Prompts, benchmark_id: int) -> NDArray[np.int64]:
        """Return the ``(n,)`` int64 keys of the prompts, -1 for skipped ones; the same object is resolved once.

        Raises:
            AmbiguousError: a key means several prompts, because tasks are missing.
            BadInputError: text or reference answer contradict the stored ones.
            ConflictError: a prompt cannot move to the task in the file.
        """
        resolved = self._resolved.setdefault(prompts, {})
        if benchmark_id not in resolved:
            index = self._indexes.setdefault(benchmark_id, PromptIndex(self.session, benchmark_id))
            resolved[benchmark_id] = np.array(_BlockResolution(self, index, prompts).resolve(), dtype=np.int64)
        return resolved[benchmark_id]

    def omit(self, problems: Sequence[str]) -> None:
        """Count skipped prompts, and keep the first descriptions."""
        self.n_omitted += len(problems)
        self.omitted += problems[: BadInputError.MAX_LISTED - len(self.omitted)]


class _BlockResolution:
    """Resolves one block of prompts: collects the changes, then writes them."""

    def __init__(self, resolver: PromptResolver, index: PromptIndex, prompts: Prompts) -> None:
        self.resolver, self.index, self.prompts = resolver, index, prompts
        self.namespace = make_storable(prompts.namespace)
        self.new: dict[int, dict[str, Any]] = {}
        self.aliases: list[dict[str, Any]] = []
        self.moved: dict[int, int] = {}
        self.filled: dict[int, dict[str, Any]] = defaultdict(dict)
        self.problems: dict[int, str] = {}
        self.conflicting: list[tuple[int, int, str]] = []
        self.detailed: list[tuple[int, int]] = []
        self.n_answers_changed = 0
        self.contents = normalize_prompts(prompts)
        labels = list(map(make_storable, prompts.keys))
        if prompts.tasks is None:
            known = resolver.catalogue.tasks(index.benchmark_id)
            self.tasks = list(known.values())
            self.taskless: int | None = None
            self.labelled = [(-1, label) for label in labels]
        else:
            known = resolver.catalogue.tasks(index.benchmark_id, dict.fromkeys(prompts.tasks))
            ids = {name: known[make_storable(name)] for name in set(prompts.tasks)}
            self.taskless = known.get("")
            self.labelled = [(ids[task], label) for task, label in zip(prompts.tasks, labels, strict=True)]
            self.labelled = self._as_stored(self.labelled)
            self.tasks = sorted(set(ids.values()))
        extra = [] if self.taskless is None else [self.taskless]
        self.tasks = [*self.tasks, *(task for task in extra if task not in self.tasks)]
        self.slice = index.load_slice(self.namespace, self.labelled, extra)
        self.names = self.slice.names

    def resolve(self) -> list[int]:
        """Resolve and write the prompts; return their keys."""
        if self.contents:
            self.slice.load(self.tasks, {content.hash for content in self.contents if content.hash})
        if self.prompts.tasks is None:
            keys_of_rows = self._without_tasks([label for _, label in self.labelled])
        else:
            keys_of_rows = [self.names.get(pair) for pair in self.labelled]
        missing = [row for row, key in enumerate(keys_of_rows) if key is None]
        if missing:
            if self.prompts.tasks is None:
                none = self.resolver.catalogue.tasks(self.index.benchmark_id, [""])[""]
                self.labelled = [(none, label) for _, label in self.labelled]
            self._complete(keys_of_rows, missing, self.labelled, self.taskless)
        keys = [key for key in keys_of_rows if key is not None]
        if self.contents:
            for row, key in enumerate(keys):
                if key not in self.new or self.new[key]["row"] != row:
                    self._check(row, key)
            self._resolve_conflicts()
            self._complete_details()
        if self.problems:
            if not self.resolver.partial:
                few = list(self.problems.values())
                raise BadInputError(self.resolver.path, few, advice=self._advice())
            self.resolver.omit(list(self.problems.values()))
            keys = [-1 if row in self.problems else key for row, key in enumerate(keys)]
        self._write()
        return keys

    def _as_stored(self, labelled: list[Name]) -> list[Name]:
        """Return the names of prompts; duplicate names as disambiguated in the store."""
        field = self.prompts.disambiguated_by
        if field is None or not self.contents:
            return labelled
        marked, in_file = self.index.marked(self.namespace), self.resolver.duplicates
        groups = dict.fromkeys(
            group for group in map(strip_count, labelled) if group in marked or self._in_file(group) in in_file
        )
        place = (self.index.benchmark_id, self.namespace)
        self._disambiguate([group for group in groups if (*place, group) not in self.resolver.renamed], field, labelled)
        return [
            self.resolver.renamed[*place, strip_count(name)].get(name, name) if strip_count(name) in groups else name
            for name in labelled
        ]

    def _disambiguate(self, groups: list[Name], field: str, labelled: list[Name]) -> None:
        if not groups:
            return
        keys: dict[int, set[str]] = defaultdict(set)
        numbers: dict[Name, Any] = {}
        for group in groups:
            keys[group[0]] |= {group[1], *self.index.marked(self.namespace).get(group, ())}
            in_file = self.resolver.duplicates.get(self._in_file(group), {})
            numbers.update({(group[0], key): number for key, number in in_file.items()})
        members = set(groups)
        for name, content in zip(labelled, self.contents, strict=True):
            if strip_count(name) in members:
                numbers.setdefault(name, (content.details or {}).get(field))
        names: dict[Name, int] = {}
        for task, duplicated in keys.items():
            names |= self.index.find(self.namespace, [task], duplicated)
        details = dict(self.index.stored_details(list(names.values())))
        stored = {name: (details[key] or {}).get(field) for name, key in names.items()}
        renamed: dict[Name, dict[Name, Name]] = {group: {} for group in groups}
        for name, new_name in disambiguate(numbers, stored).items():
            renamed[strip_count(name)][name] = new_name
        for group, new_names in renamed.items():
            self.resolver.renamed[self.index.benchmark_id, self.namespace, group] = new_names

    def _in_file(self, group: Name) -> FileName:
        """Return the file's names of the prompts with a duplicate name."""
        return self.prompts.benchmark, self.namespace, self.resolver.catalogue.task_names[group[0]], group[1]

    def _advice(self) -> str:
        gold = any("reference answer" in problem for problem in self.problems.values())
        kept = " --on-conflict skip keeps the stored answers, --on-conflict update overwrites them." if gold else ""
        return f"Correct the file, or ingest it as another benchmark.{kept}"

    def _without_tasks(self, labels: list[str]) -> list[int | None]:
        by_key: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (task, key), prompt in self.names.items():
            by_key[key].append((task, prompt))
        unclear = [label for label in labels if len(by_key.get(label, ())) > 1]
        if unclear:
            names = {key: name for name, key in self.resolver.catalogue.tasks(self.index.benchmark_id).items()}
            tasks = sorted(repr(names[task]) for task, _ in by_key[unclear[0]])
            raise AmbiguousError(
                f"{self.resolver.path}: the tasks {', '.join(tasks[:8])} all have a prompt {unclear[0]!r}"
                f"{f', and {len(unclear) - 1} more are ambiguous' if len(unclear) > 1 else ''}. "
                "Add a column 'task' to the file."
            )
        return [by_key[label][0][1] if label in by_key else None for label in labels]

    def _complete(
        self, keys_of_rows: list[int | None], missing: list[int], labelled: list[tuple[int, str]], taskless: int | None
    ) -> None:
        fresh = iter(reserve_keys(self.resolver.session, Prompt, len(missing)))
        claimed: dict[str, int] = {}
        without = {label for task, label in labelled if task == taskless}
        if (
            not self.contents
            and taskless is not None
            and any((taskless, labelled[row][1]) in self.names for row in missing)
        ):
            self.slice.load(self.tasks, ())
        with_names = self.slice.find_named(self.slice.prompts)
        for row in missing:
            task, label = labelled[row]
            if (task, label) not in self.names:
                if label in claimed and claimed[label] != task:
                    names = self.resolver.catalogue.task_names
                    raise AmbiguousError(
                        f"{self.resolver.path}: prompt {label!r} was stored without a task, and this file has it "
                        f"in both {names[claimed[label]]!r} and {names[task]!r}. Ingest the first file again with its "
                        "tasks, into a new store or as another benchmark."
                    )
                key = self.names.pop((taskless, label), None) if taskless is not None and label not in without else None
                if key is not None:
                    claimed[label] = task
                    self._move(key, task)
                else:
                    key = self._find_unnamed(row, task, taskless, with_names)
                    if key is None:
                        key = next(fresh)
                        self._make(row, key, task)
                    self.aliases.append({"task_id": task, "namespace": self.namespace, "key": label, "prompt_id": key})
                    with_names.add(key)
                self.names[task, label] = key
            keys_of_rows[row] = self.names[task, label]

    def _find_unnamed(self, row: int, task: int, taskless: int | None, with_names: set[int]) -> int | None:
        """Return the first prompt with this content and without a name in this namespace."""
        hashed = self.contents[row].hash if self.contents else None
        if hashed is None:
            return None
        places = [task] if taskless is None else [task, taskless]
        if self.prompts.tasks is None:
            places = list(self.resolver.catalogue.tasks(self.index.benchmark_id).values())
        for place in places:
            free = [key for key in self.slice.find_equal(place, hashed) if key not in with_names]
            if free:
                key = min(free, key=lambda k: self.slice.content(k).occurrence)
                if self.prompts.tasks is not None and place != task:
                    self._move(key, task)
                return key
        return None

    def _move(self, key: int, task: int) -> None:
        content = self.slice.content(key)
        self.slice.put(key, content, task, content.hash)
        self.moved[key] = task

    def _make(self, row: int, key: int, task: int) -> None:
        content = self.contents[row] if self.contents else PromptContents()
        indexed = IndexedPrompt(
            task, answer=content.answer, split=content.split, has_details=content.details is not None
        )
        self.slice.put(key, indexed, task, content.hash)
        self.new[key] = {
            "row": row, "id": key, "task_id": task, "content_hash": content.hash, "occurrence": indexed.occurrence,
            "text": content.text, "choices": content.choices, "answer": content.answer, "split": content.split,
            "details": content.details,
        }  # fmt: skip

    def _check(self, row: int, key: int) -> None:
        """Add missing content to a prompt, and collect contradictions."""
        indexed = self.slice.content(key)
        content = self.contents[row]
        if content.hash is not None and indexed.hash is None:
            self.slice.put(key, indexed, indexed.task_id, content.hash)
            self.filled[key] |= {"text": content.text, "content_hash": content.hash, "occurrence": indexed.occurrence}
            if content.choices is not None:
                self.filled[key]["choices"] = content.choices
        elif content.hash is not None and content.hash != indexed.hash:
            self.conflicting.append((row, key, "text"))
        if content.answer is not None and indexed.answer is None:
            indexed.answer = self.filled[key]["answer"] = content.answer
        elif content.answer is not None and content.answer != indexed.answer:
            self.conflicting.append((row, key, "answer"))
        if content.split is not None and indexed.split is None:
            indexed.split = self.filled[key]["split"] = content.split
        if content.details is not None:
            self.detailed.append((row, key))

    def _resolve_conflicts(self) -> None:
        """A text without choices does not contradict the text with them, nor a letter its option."""
        if not self.conflicting:
            return
        stored = {
            key: (text, choices) for key, text, choices in self.index.stored_texts([k for _, k, _ in self.conflicting])
        }
        for row, key, part in self.conflicting:
            stored_text, stored_choices = stored.get(key, (None, None))
            waiting = self.new.get(key, {}) | self.filled.get(key, {})
            stored_text, stored_choices = waiting.get("text", stored_text), waiting.get("choices", stored_choices)
            text, choices, answer = self.contents[row].text, self.contents[row].choices, self.contents[row].answer
            if part == "text":
                is_same_text = text is not None and hash_content(text, None) == hash_content(stored_text or "", None)
                if is_same_text and choices is not None and stored_choices is None:
                    hashed = hash_content(text or "", choices)
                    content = self.slice.content(key)
                    self.slice.put(key, content, content.task_id, hashed)
                    occurrence = content.occurrence
                    self.filled[key] |= {"choices": choices, "content_hash": hashed, "occurrence": occurrence}
                elif not is_same_text or choices is not None:
                    self.problems[row] = f"{self._place(row)}: its text contradicts the stored one"
                continue
            gold = self.slice.content(key).answer or ""
            if answer is None or answer.strip() in list_accepted_answers(gold, choices or stored_choices):
                continue
            if self.resolver.on_conflict == "update":
                self.slice.content(key).answer = self.filled[key]["answer"] = answer
                self.n_answers_changed += 1
            elif self.resolver.on_conflict == "skip":
                self.n_answers_changed += 1
            else:
                self.problems[row] = (
                    f"{self._place(row)}: its reference answer {answer!r} contradicts the stored one, {gold!r}"
                )
        if self.n_answers_changed:
            done = "overwritten" if self.resolver.on_conflict == "update" else "kept, not replaced"
            self.resolver.warnings.append(f"{self.n_answers_changed} stored reference answers were {done}")

    def _complete_details(self) -> None:
        indexed = self.slice.prompts
        stored = dict(self.index.stored_details([key for _, key in self.detailed if indexed[key].has_details]))
        for row, key in self.detailed:
            waiting = self.new.get(key, {}) | self.filled.get(key, {})
            known = waiting.get("details") or stored.get(key) or {}
            if merged := self.resolver.details.merge(known, self.contents[row].details):
                self.filled[key]["details"], indexed[key].has_details = merged, True

    def _write(self) -> None:
        connection, log = self.resolver.session.connection(), undo_log(self.resolver.session)
        if self.moved:
            if log is not None:
                log.replace_rows(
                    self.resolver.session, PROMPT, [(key,) for key in self.moved], ("task_id", "occurrence")
                )
            moves = [{"key_": key, "task_id": task, "occurrence": self.slice.content(key).occurrence}
                     for key, task in self.moved.items()]  # fmt: skip
            connection.execute(sa.update(PROMPT).where(PROMPT.c.id == sa.bindparam("key_")), moves)
            try:
                connection.execute(
                    sa.update(ALIAS).where(ALIAS.c.prompt_id == sa.bindparam("key_")),
                    [{"key_": move["key_"], "task_id": move["task_id"]} for move in moves],
                )
            except exc.IntegrityError as error:
                raise ConflictError(
                    f"{self.resolver.path}: it assigns prompts without a task to tasks in which other prompts "
                    "have their names. Ingest it as another benchmark."
                ) from error
        if self.new:
            connection.execute(
                sa.insert(PROMPT), [{k: v for k, v in row.items() if k != "row"} for row in self._final_rows()]
            )
            if log is not None:
                log.add_prompts(self.new)
            for row in self.new.values():
                name = self.prompts.keys[row["row"]]
                self.resolver.checks.add(name, row["content_hash"], row["choices"], row["answer"])
            self.resolver.n_new += len(self.new)
            self.index.count_added(len(self.new))
        if self.aliases:
            connection.execute(sa.insert(ALIAS), self.aliases)
            if log is not None:
                log.add_aliases([row for row in self.aliases if row["prompt_id"] not in self.new])
            self.index.add_marked(self.namespace, [(row["task_id"], row["key"]) for row in self.aliases])
        by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for key, values in self.filled.items():
            if key not in self.new:
                by_columns[tuple(sorted(values))].append({"key_": key, **values})
        for columns, rows in by_columns.items():
            if log is not None:
                log.replace_rows(self.resolver.session, PROMPT, [(row["key_"],) for row in rows], columns)
            connection.execute(sa.update(PROMPT).where(PROMPT.c.id == sa.bindparam("key_")), rows)

    def _final_rows(self) -> Iterator[dict[str, Any]]:
        for key, row in self.new.items():
            yield row | self.filled.get(key, {})

    def _place(self, row: int) -> str:
        line = "" if self.prompts.lines is None else f"line {self.prompts.lines[row]}, "
        return f"{line}prompt {self.prompts.keys[row]!r}"
