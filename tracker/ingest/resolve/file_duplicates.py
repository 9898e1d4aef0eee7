"""Collects the prompts with the same name from all blocks of a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakSet

from tracker.ingest.measurement import Measurement, Prompts
from tracker.ingest.resolve.duplicates import MARK
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
