"""Resolution of prompts by name, else by content; unknown prompts are added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import AmbiguousError, BadInputError
from tracker.ingest.measurement import Measurement, Prompts
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.content_conflicts import ContentConflicts
from tracker.ingest.resolve.file_duplicates import DuplicateNames, FileDuplicates, find_duplicates
from tracker.ingest.resolve.prompt_changes import PromptChanges
from tracker.ingest.resolve.prompt_details import DetailsMerger
from tracker.ingest.resolve.prompt_index import PromptIndex
from tracker.ingest.resolve.prompt_texts import PromptContents, make_all_storable, make_storable, normalize_prompts
from tracker.ingest.resolve.questions.comparison import have_equal_references
from tracker.ingest.resolve.questions.question_index import QuestionIndex, QuestionMatch
from tracker.ingest.write.bulk_rows import reserve_keys
from tracker.name_lists import join_names
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
        n_undecorated: number of prompts that were found by their question without decoration.
        similar: names of new prompts with the question of a stored prompt that is not the same one.
    """

    MAX_SIMILAR = 5

    def __init__(
        self, session: Session, catalogue: CatalogueResolver, path: Path, on_conflict: str, *, partial: bool = False
    ) -> None:
        self.session, self.catalogue, self.path, self.on_conflict = session, catalogue, path, on_conflict
        self.partial = partial
        self.n_new = self.n_omitted = 0
        self.omitted: list[str] = []
        self.warnings: list[str] = []
        self.n_undecorated = 0
        self.similar: list[str] = []
        self.checks: PromptChecks[str] = PromptChecks()
        self.details = DetailsMerger()
        self.duplicates = FileDuplicates()
        self._indexes: dict[int, PromptIndex] = {}
        self._questions: dict[tuple[int, str], QuestionIndex] = {}
        self._resolved: WeakKeyDictionary[Prompts, dict[int, NDArray[np.int64]]] = WeakKeyDictionary()

    def expect(self, measurements: Sequence[Measurement]) -> None:
        """Collect the duplicate names of a file; their meaning depends on all of them."""
        if getattr(measurements, "has_duplicates", True):
            self.duplicates = FileDuplicates(find_duplicates(measurements))

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

    def questions(self, index: PromptIndex, namespace: str) -> QuestionIndex | None:
        """Return the index of questions for a namespace; None if the benchmark was empty before the file."""
        place = (index.benchmark_id, namespace)
        if place not in self._questions and index.n_prompts and not index.was_empty:
            self._questions[place] = QuestionIndex(self.session, namespace)
        return self._questions.get(place)

    def describe_matches(self) -> Iterator[str]:
        """Return warnings about prompts whose text is not the stored one."""
        if n := self.n_undecorated:
            yield (
                f"{n:,} prompt{'s have' if n != 1 else ' has'} the question of a stored prompt, apart from decoration "
                'such as "Question: … Answer:", options or white space. They are one prompt; the stored text stays.'
            )
        if self.similar:
            names = join_names(self.similar, self.MAX_SIMILAR)
            yield (
                f"{len(self.similar):,} new prompt{'s have' if len(self.similar) != 1 else ' has'} the question of a "
                f"stored prompt, but another reference answer or other options: {names}. They are stored separately."
            )

    def omit(self, problems: Sequence[str]) -> None:
        """Count skipped prompts, and keep the first descriptions."""
        self.n_omitted += len(problems)
        self.omitted += problems[: BadInputError.MAX_LISTED - len(self.omitted)]


class _BlockResolution:
    """Resolves one block of prompts: collects the changes, then writes them."""

    def __init__(self, resolver: PromptResolver, index: PromptIndex, prompts: Prompts) -> None:
        self.resolver, self.index, self.prompts = resolver, index, prompts
        self.namespace = make_storable(prompts.namespace)
        self.contents = normalize_prompts(prompts)
        labels = make_all_storable(prompts.keys)
        if prompts.tasks is None:
            known = resolver.catalogue.tasks(index.benchmark_id)
            self.tasks = list(dict.fromkeys(known.values()))
            self.taskless: int | None = None
            self.labelled = [(-1, label) for label in labels]
        else:
            known = resolver.catalogue.tasks(index.benchmark_id, dict.fromkeys(prompts.tasks))
            ids = {name: known[make_storable(name)] for name in set(prompts.tasks)}
            self.taskless = known.get("")
            self.labelled = list(zip(map(ids.__getitem__, prompts.tasks), labels, strict=True))
            if prompts.disambiguated_by is not None and self.contents:
                names = DuplicateNames(resolver.duplicates, index, prompts, ids)
                self.labelled = names.as_stored(self.labelled, [content.details or {} for content in self.contents])
            self.tasks = sorted(set(ids.values()))
        extra = [] if self.taskless is None else [self.taskless]
        self.tasks = [*self.tasks, *(task for task in extra if task not in self.tasks)]
        self.slice = index.load_slice(self.namespace, self.labelled, extra)
        self.names = self.slice.names
        self.changes = PromptChanges(self.slice)
        self.questions = resolver.questions(index, self.namespace) if self.contents else None
        self.matches: dict[int, QuestionMatch] = {}
        self.matched_rows: set[int] = set()

    def resolve(self) -> list[int]:
        """Resolve and write the prompts; return their keys."""
        if self.contents:
            self.slice.load(self.tasks, {content.hash for content in self.contents if content.hash})
        if self.prompts.tasks is None:
            keys_of_rows = self._without_tasks([label for _, label in self.labelled])
        else:
            keys_of_rows = list(map(self.names.get, self.labelled))
        if None in keys_of_rows:
            missing = [row for row, key in enumerate(keys_of_rows) if key is None]
            if self.prompts.tasks is None:
                none = self.resolver.catalogue.tasks(self.index.benchmark_id, [""])[""]
                self.labelled = [(none, label) for _, label in self.labelled]
            self._complete(keys_of_rows, missing, self.labelled, self.taskless)
        keys = [key for key in keys_of_rows if key is not None]
        if self.contents:
            problems = self._compare_contents(keys)
            keys = [-1 if row in problems else key for row, key in enumerate(keys)]
        self.changes.write(self.resolver.session, self.resolver.path)
        new_rows = list(self.changes.new_rows())
        for row in new_rows:
            name = self.prompts.keys[row["row"]]
            self.resolver.checks.add(name, row["content_hash"], row["choices"], row["answer"])
        self.resolver.n_new += len(new_rows)
        self.index.count_added(len(new_rows))
        self.index.add_marked(self.namespace, [(row["task_id"], row["key"]) for row in self.changes.aliases])
        return keys

    def _compare_contents(self, keys: Sequence[int]) -> set[int]:
        """Compare each row with its prompt; return the rows to skip.

        Raises:
            BadInputError: a text or reference answer contradicts the stored one.
        """
        resolver = self.resolver
        conflicts = ContentConflicts(self.changes, self.contents, resolver.on_conflict, self.matched_rows)
        for row, key in enumerate(keys):
            if key not in self.changes.new or self.changes.new[key]["row"] != row:
                conflicts.check(row, key)
        conflicts.resolve()
        if n := conflicts.n_answers_changed:
            done = "overwritten" if resolver.on_conflict == "update" else "kept, not replaced"
            resolver.warnings.append(f"{n} stored reference answers were {done}")
        conflicts.complete_details(resolver.details)
        problems = [f"{self._place(row)}: {problem}" for row, problem in sorted(conflicts.problems.items())]
        if problems and not resolver.partial:
            raise BadInputError(resolver.path, problems, advice=_advise(problems))
        resolver.omit(problems)
        return set(conflicts.problems)

    def _without_tasks(self, labels: list[str]) -> list[int | None]:
        by_key: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (task, key), prompt in self.names.items():
            by_key[key].append((task, prompt))
        unclear = [label for label in labels if len(by_key.get(label, ())) > 1]
        if unclear:
            names = self.resolver.catalogue.task_names
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
        self._match_questions(missing, taskless, with_names)
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
                    self.changes.move(key, task)
                else:
                    key = self._find_unnamed(row, task, taskless, with_names)
                    if key is None:
                        key = next(fresh)
                        self.changes.add(row, key, task, self.contents[row] if self.contents else PromptContents())
                    self.changes.add_name(task, label, key)
                    with_names.add(key)
                    if self.questions is not None:
                        self.questions.discard(key)
                self.names[task, label] = key
            keys_of_rows[row] = self.names[task, label]

    def _places(self, row: int, taskless: int | None) -> list[int]:
        """Return the tasks in which the prompt of a row may be stored."""
        if self.prompts.tasks is None:
            return self.tasks
        task = self.labelled[row][0]
        return [task] if taskless is None else [task, taskless]

    def _match_questions(self, missing: Sequence[int], taskless: int | None, with_names: set[int]) -> None:
        """Compare the questions of rows whose content is not stored with those of stored prompts."""
        if self.questions is None:
            return
        rows = [row for row in missing if self.contents[row].hash is not None]
        places = {row: self._places(row, taskless) for row in rows}
        unknown = {row: self.contents[row] for row in rows if not self._find_equal(row, places[row], with_names)}
        if not self.questions.load({task for row in unknown for task in places[row]}):
            return
        hashes = {self.contents[row].hash or "" for row in rows}
        self.matches = self.questions.match(unknown, places, hashes)
        matched = {key for match in self.matches.values() for key in match.keys}
        self.slice.load_prompts(matched)
        with_names |= self.slice.find_named(matched)

    def _find_equal(self, row: int, places: Sequence[int], with_names: set[int]) -> list[int]:
        """Return the prompts with the content of a row and without a name in this namespace, in one of some tasks."""
        hashed = self.contents[row].hash
        for place in places if hashed is not None else ():
            if free := [key for key in self.slice.find_equal(place, hashed or "") if key not in with_names]:
                return free
        return []

    def _find_unnamed(self, row: int, task: int, taskless: int | None, with_names: set[int]) -> int | None:
        """Return the first prompt with this content, else this question, and without a name in this namespace."""
        if not self.contents:
            return None
        answer, choices = self.contents[row].answer, self.contents[row].choices

        def preference(key: int) -> tuple[bool, int]:
            stored = self.slice.content(key)
            return have_equal_references(answer, stored.answer, choices) is False, stored.occurrence

        free = self._find_equal(row, self._places(row, taskless), with_names)
        key = min(free, key=preference) if len(free) > 1 else next(iter(free), None)
        if key is None and (match := self.matches.get(row)) is not None:
            key = next((key for key in match.keys if key not in with_names), None)
            if key is not None:
                self.resolver.n_undecorated += 1
                self.matched_rows.add(row)
            elif match.is_similar:
                self.resolver.similar.append(self.prompts.keys[row])
        if key is not None and self.prompts.tasks is not None and self.slice.content(key).task_id != task:
            self.changes.move(key, task)
        return key

    def _place(self, row: int) -> str:
        line = "" if self.prompts.lines is None else f"line {self.prompts.lines[row]}, "
        return f"{line}prompt {self.prompts.keys[row]!r}"


def _advise(problems: Sequence[str]) -> str:
    has_references = any("reference answer" in problem for problem in problems)
    kept = " --on-conflict skip keeps the stored answers, --on-conflict update overwrites them."
    return f"Correct the file, or ingest it as another benchmark.{kept if has_references else ''}"
