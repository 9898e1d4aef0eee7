"""Prompts to which a file gives the same name: collected from all its blocks, and named as in the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from tracker.ingest.measurement import Measurement, Prompts
from tracker.ingest.resolve.duplicates import MARK, Name, disambiguate, strip_count
from tracker.ingest.resolve.prompt_index import PromptIndex
from tracker.ingest.resolve.prompt_texts import make_storable

FileName = tuple[str | None, str, str, str]
"""Benchmark, namespace, task and key in the file."""


def find_duplicates(measurements: Sequence[Measurement]) -> dict[FileName, dict[str, Any]]:
    """Return the numbers of prompts with duplicate names by key, for each common name."""

    def parts() -> Iterator[tuple[Prompts, list[FileName]]]:
        seen: WeakSet[Prompts] = WeakSet()
        for block in measurements:
            prompts = block if isinstance(block, Prompts) else getattr(block, "prompts", None)
            if prompts is None or prompts.disambiguated_by is None or prompts.tasks is None or prompts in seen:
                continue
            seen.add(prompts)
            tasks = {task: make_storable(task) for task in set(prompts.tasks)}
            space = (prompts.benchmark, make_storable(prompts.namespace))
            pairs = zip(prompts.tasks, prompts.keys, strict=True)
            yield prompts, [(*space, tasks[task], make_storable(key).partition(MARK)[0]) for task, key in pairs]

    marked = {
        group for prompts, names in parts() for key, group in zip(prompts.keys, names, strict=True) if MARK in key
    }
    numbers: dict[FileName, dict[str, Any]] = defaultdict(dict)
    for prompts, names in parts() if marked else ():
        field = prompts.disambiguated_by or ""
        for row, group in enumerate(names):
            if group in marked:
                details = None if prompts.details is None else prompts.details[row]
                numbers[group].setdefault(make_storable(prompts.keys[row]), (details or {}).get(field))
    return dict(numbers)


@dataclass
class FileDuplicates:
    """The prompts with duplicate names of one file.

    Attributes:
        numbers: by common name, the number of each prompt by key.
        renamed: by benchmark, namespace and common name, the stored name of each prompt; filled block by block.
    """

    numbers: Mapping[FileName, Mapping[str, Any]] = field(default_factory=dict)
    renamed: dict[tuple[int, str, Name], dict[Name, Name]] = field(default_factory=dict)


class DuplicateNames:
    """The duplicate names of one block.

    Args:
        duplicates: those of the file.
        index: stored prompts of the benchmark.
        prompts: the block.
        task_ids: key of each task by its name in the file.
    """

    def __init__(
        self, duplicates: FileDuplicates, index: PromptIndex, prompts: Prompts, task_ids: Mapping[str, int]
    ) -> None:
        self.duplicates, self.index, self.prompts = duplicates, index, prompts
        self.namespace = make_storable(prompts.namespace)
        self.task_names: dict[int, list[str]] = defaultdict(list)
        for name, key in task_ids.items():
            self.task_names[key].append(make_storable(name))

    def as_stored(self, labelled: list[Name], details: Sequence[Mapping[str, Any]]) -> list[Name]:
        """Return the names of prompts; duplicate names as disambiguated in the store.

        Args:
            labelled: name of each prompt in the file.
            details: its details, one of which is its number.
        """
        marked, place = self.index.marked(self.namespace), (self.index.benchmark_id, self.namespace)
        if not marked and not self.duplicates.numbers:
            return labelled
        groups = dict.fromkeys(group for group in map(strip_count, labelled) if group in marked or self._numbers(group))
        fresh = [group for group in groups if (*place, group) not in self.duplicates.renamed]
        if fresh:
            self._disambiguate(fresh, labelled, details)
        renamed = self.duplicates.renamed
        return [
            renamed[*place, strip_count(name)].get(name, name) if strip_count(name) in groups else name
            for name in labelled
        ]

    def _disambiguate(self, groups: list[Name], labelled: list[Name], details: Sequence[Mapping[str, Any]]) -> None:
        number = self.prompts.disambiguated_by or ""
        keys: dict[int, set[str]] = defaultdict(set)
        numbers: dict[Name, Any] = {}
        for group in groups:
            keys[group[0]] |= {group[1], *self.index.marked(self.namespace).get(group, ())}
            numbers.update({(group[0], key): value for key, value in self._numbers(group).items()})
        members = set(groups)
        for name, fields in zip(labelled, details, strict=True):
            if strip_count(name) in members:
                numbers.setdefault(name, fields.get(number))
        names: dict[Name, int] = {}
        for task, duplicated in keys.items():
            names |= self.index.find(self.namespace, [task], duplicated)
        known = dict(self.index.stored_details(list(names.values())))
        stored = {name: (known[key] or {}).get(number) for name, key in names.items()}
        renamed: dict[Name, dict[Name, Name]] = {group: {} for group in groups}
        for name, new_name in disambiguate(numbers, stored).items():
            renamed[strip_count(name)][name] = new_name
        for group, new_names in renamed.items():
            self.duplicates.renamed[self.index.benchmark_id, self.namespace, group] = new_names

    def _numbers(self, group: Name) -> dict[str, Any]:
        """Return the numbers of the file's prompts with a common name."""
        numbers: dict[str, Any] = {}
        for task in self.task_names[group[0]]:
            numbers |= self.duplicates.numbers.get((self.prompts.benchmark, self.namespace, task, group[1]), {})
        return numbers
