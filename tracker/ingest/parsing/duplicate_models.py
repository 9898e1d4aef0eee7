"""Detection of duplicates in a file: models or tasks with the same scores, and averages of tasks.

Nothing is removed, because equal scores may be correct. The warnings matter for rankings: each duplicate is ranked as a
model, or counts as a task.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from tracker.ingest.files.tabular.column_means import ColumnMean, column_means
from tracker.ingest.measurement import Answers, Measurement, Prompts, RunDescription, Scores, TaskScores
from tracker.name_lists import join_names

MIN_TASKS = 3
"""Minimal number of common tasks of equal models, and of common models of equal tasks."""

MIN_PROMPTS = 20
"""Minimal number of common prompts of equal models; fewer scores of 0 and 1 agree by chance."""

MAX_NAMES = 5
MAX_GROUPS = 8

Field = tuple[str | None, str, str]
"""Benchmark, condition, variant: only runs that share them are compared."""


@dataclass
class _RunMarks:
    model: str
    marks: dict[tuple[object, ...], bytes] = field(default_factory=dict)
    n_tasks: int = 0
    n_prompts: int = 0

    @property
    def is_comparable(self) -> bool:
        return self.n_tasks >= MIN_TASKS or self.n_prompts >= MIN_PROMPTS


class DuplicateModels:
    """Compares the blocks of a file as they come, and stores only their hashes."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Field, str, str], _RunMarks] = {}
        self._prompt_digests: WeakKeyDictionary[Prompts, bytes] = WeakKeyDictionary()
        self._tables: dict[tuple[Field, str], list[TaskScores]] = defaultdict(list)

    def add(self, block: Measurement) -> None:
        """Add a block."""
        if isinstance(block, Prompts):
            return
        run = self._runs.setdefault((_field(block.run), block.run.model, block.run.label), _RunMarks(block.run.model))
        if isinstance(block, TaskScores):
            self._tables[_field(block.run), block.metric.name].append(block)
            pairs = sorted(
                (task, value + 0.0)
                for task, value in zip(block.tasks, block.values.tolist(), strict=True)
                if value == value
            )
            run.n_tasks += len(pairs)
            run.marks["tasks", block.metric.name] = _digest([repr(pairs).encode()])
            return
        if block.prompts not in self._prompt_digests:
            self._prompt_digests[block.prompts] = _digest(_keys(block.prompts))
        prompts = self._prompt_digests[block.prompts]
        trials = str(block.trials) if isinstance(block.trials, int) else _digest([block.trials.tobytes()]).hex()
        if isinstance(block, Scores):
            measured = ~np.isnan(block.values)
            run.n_prompts += int(measured.sum())
            values = np.where(measured, block.values + 0.0, np.nan)
            run.marks["scores", block.metric.name, prompts, trials] = _digest([values.tobytes()])
        else:
            run.n_prompts += len(block.text) if block.predicted is None else int(np.count_nonzero(block.predicted))
            run.marks["answers", block.extraction, prompts, trials] = _digest(_answer_bytes(block))

    def warnings(self) -> Iterator[str]:
        """Return warnings about models, then tasks, with the same scores in all blocks."""
        yield from self._models()
        several_metrics = len({metric for _, metric in self._tables}) > 1
        several_benchmarks = len({compared[0] for compared, _ in self._tables}) > 1
        for ((benchmark, _, _), metric), blocks in self._tables.items():
            where = f"under {metric!r}: " if several_metrics else ""
            where = f"{benchmark}, {where}" if several_benchmarks else where
            yield from (where + text for text in _describe_tasks(blocks))

    def _models(self) -> Iterator[str]:
        groups: dict[tuple[Field, frozenset[object]], list[_RunMarks]] = defaultdict(list)
        for (compared, _, _), run in self._runs.items():
            if run.is_comparable:
                groups[compared, frozenset(run.marks.items())].append(run)
        names = [list(dict.fromkeys(run.model for run in group)) for group in groups.values()]
        if same := [models for models in names if len(models) > 1]:
            n = sum(map(len, same))
            kinds = "" if len(same) == 1 else f" in {len(same)} groups"
            yield (
                f"{n} models have the same scores as another model{kinds}: {_join_groups(map(_join_names, same))}. "
                "Each is ranked separately; to rank one of each group, select with --models."
            )


def _describe_tasks(blocks: Sequence[TaskScores]) -> Iterator[str]:
    """Return the equal task columns, and those that are means of others."""
    place: dict[str, int] = {}
    for block in blocks:
        for task in block.tasks:
            place.setdefault(task, len(place))
    names = list(place)
    table = np.full((len(blocks), len(names)), np.nan)
    for row, block in enumerate(blocks):
        table[row, [place[task] for task in block.tasks]] = block.values + 0.0
    if len(blocks) < MIN_TASKS:
        return
    groups: dict[bytes, list[int]] = defaultdict(list)
    for column, values in enumerate(table.T):
        groups[values.tobytes()].append(column)
    equal = list(groups.values())
    measured = np.count_nonzero(~np.isnan(table), axis=0)
    same = [group for group in equal if len(group) > 1 and measured[group[0]] >= MIN_TASKS]
    if same:
        n = sum(map(len, same))
        yield (
            f"{n} tasks have the same scores as another task: "
            f"{_join_groups(_join_task_names([names[column] for column in group]) for group in same)}. "
            f"{len(equal)} of {len(names)} tasks differ, and each duplicate counts as another task; "
            "to count one of each group, select with --tasks."
        )
    copied = {group[0]: group for group in equal}
    for mean in column_means(table, equal):
        yield _describe_mean(mean, [names[column] for column in copied[mean.column]], names, len(blocks))


def _describe_mean(mean: ColumnMean, copies: Sequence[str], names: Sequence[str], n_rows: int) -> str:
    of = "all other tasks" if mean.is_of_all else _join_task_names([names[column] for column in sorted(mean.of)])
    verb = "is" if len(copies) == 1 else "are each"
    rows = "" if mean.n_rows == n_rows else f", for the {mean.n_rows} models that have all of them"
    it, them = ("an average is", "it") if len(copies) == 1 else ("averages are", "them")
    return (
        f"{_join_task_names(copies)} {verb} the mean of {of}, within rounding{rows}. Here {it} stored like any other "
        f"task; to exclude {them}, select the others with --tasks."
    )


def _field(run: RunDescription) -> Field:
    return run.benchmark, run.condition, run.variant


def _answer_bytes(block: Answers) -> Iterator[bytes]:
    yield b"" if block.predicted is None else np.asarray(block.predicted).tobytes()
    for text in block.text:
        yield b"\1" if text is None else b"\2" + text.encode("utf-8", "surrogatepass")


def _keys(prompts: Prompts) -> Iterator[bytes]:
    yield repr((prompts.namespace, prompts.tasks is None)).encode()
    for texts in (prompts.keys, prompts.tasks or ()):
        yield "\0".join(texts).encode("utf-8", "surrogatepass")


def _digest(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _join_groups(groups: Iterable[str]) -> str:
    texts = list(groups)
    more = f"; and {len(texts) - MAX_GROUPS} more" if len(texts) > MAX_GROUPS else ""
    return "; ".join(texts[:MAX_GROUPS]) + more


def _join_names(names: Sequence[str]) -> str:
    return join_names(map(repr, names), MAX_NAMES)


def _join_task_names(names: Sequence[str]) -> str:
    """Return names as a list, or as 'Retrieval-1 … -15' if only a trailing number increases."""
    parts = [re.fullmatch(r"(.*?\D)(\d+)", name) for name in names]
    if len(names) > 2 and all(parts):
        stems = {part[1] for part in parts if part}
        numbers = [int(part[2]) for part in parts if part]
        if len(stems) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            stem = stems.pop()
            mark = stem[-1] if stem[-1] in "-_" else ""
            return f"{names[0]} … {mark}{numbers[-1]}"
    return _join_names(names)
