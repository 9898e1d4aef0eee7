"""What a file holds more than once: models with the same scores, tasks with the same scores, averages of tasks.

Nothing is left out for it: equal scores may be right. Whoever ranks models should know, since each copy is one more
model to be ranked, or one more task that counts.
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

LEAST_TASKS = 3
"""Models that are alike on fewer tasks, and tasks on which fewer models are alike, are not spoken of."""

LEAST_PROMPTS = 20
"""Models that are alike on fewer prompts are not spoken of: scores of 0 and 1 are, by chance."""

N_NAMED = 5
N_GROUPS = 8

Field = tuple[str | None, str, str]
"""Benchmark, condition, variant: only runs that have them in common are compared."""


@dataclass
class _Run:
    model: str
    marks: dict[tuple[object, ...], bytes] = field(default_factory=dict)
    n_tasks: int = 0
    n_prompts: int = 0

    @property
    def tells(self) -> bool:
        return self.n_tasks >= LEAST_TASKS or self.n_prompts >= LEAST_PROMPTS


def describe_duplicates(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Sentences about the models, then the tasks, that are the same in all that a file says of them.

    Args:
        measurements: blocks of one file.
    """
    seen = DuplicateModels()
    for block in measurements:
        seen.add(block)
    return seen.warnings()


class DuplicateModels:
    """Looks at the blocks of one file as they come, and keeps marks of them only."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Field, str, str], _Run] = {}
        self._asked: WeakKeyDictionary[Prompts, bytes] = WeakKeyDictionary()
        self._tables: dict[tuple[Field, str], list[TaskScores]] = defaultdict(list)

    def add(self, block: Measurement) -> None:
        """Look at one more block."""
        if isinstance(block, Prompts):
            return
        run = self._runs.setdefault((_field(block.run), block.run.model, block.run.label), _Run(block.run.model))
        if isinstance(block, TaskScores):
            self._tables[_field(block.run), block.metric.name].append(block)
            said = sorted(
                (task, value + 0.0)
                for task, value in zip(block.tasks, block.values.tolist(), strict=True)
                if value == value
            )
            run.n_tasks += len(said)
            run.marks["tasks", block.metric.name] = _digest([repr(said).encode()])
            return
        if block.prompts not in self._asked:
            self._asked[block.prompts] = _digest(_keys(block.prompts))
        prompts = self._asked[block.prompts]
        trials = str(block.trials) if isinstance(block.trials, int) else _digest([block.trials.tobytes()]).hex()
        if isinstance(block, Scores):
            measured = ~np.isnan(block.values)
            run.n_prompts += int(measured.sum())
            values = np.where(measured, block.values + 0.0, np.nan)
            run.marks["scores", block.metric.name, prompts, trials] = _digest([values.tobytes()])
        else:
            run.n_prompts += len(block.text) if block.predicted is None else int(np.count_nonzero(block.predicted))
            run.marks["answers", block.extraction, prompts, trials] = _digest(_said(block))

    def warnings(self) -> Iterator[str]:
        """Sentences about the models, then the tasks, that are the same in all that was said of them."""
        yield from self._models()
        for ((benchmark, _, _), metric), blocks in self._tables.items():
            several = len({name for (_, name) in self._tables}) > 1
            where = f"under {metric!r}: " if several else ""
            where = f"{benchmark}, {where}" if len({one for (one, _, _), _ in self._tables}) > 1 else where
            yield from (where + note for note in _tasks(blocks))

    def _models(self) -> Iterator[str]:
        groups: dict[tuple[Field, frozenset[object]], list[_Run]] = defaultdict(list)
        for (compared, _, _), run in self._runs.items():
            if run.tells:
                groups[compared, frozenset(run.marks.items())].append(run)
        named = [list(dict.fromkeys(run.model for run in group)) for group in groups.values()]
        if same := [models for models in named if len(models) > 1]:
            n = sum(map(len, same))
            kinds = "" if len(same) == 1 else f", {len(same)} sorts of them"
            yield (
                f"{n} models have the same scores as another{kinds}: {_listed(map(_named, same))}. "
                "Each is ranked as a model of its own; to rank one of a sort, choose with --models."
            )


def _tasks(blocks: Sequence[TaskScores]) -> Iterator[str]:
    """Of whole tasks: which are alike, and which are means of others."""
    place: dict[str, int] = {}
    for block in blocks:
        for task in block.tasks:
            place.setdefault(task, len(place))
    names = list(place)
    table = np.full((len(blocks), len(names)), np.nan)
    for row, block in enumerate(blocks):
        table[row, [place[task] for task in block.tasks]] = block.values + 0.0
    if len(blocks) < LEAST_TASKS:
        return
    groups: dict[bytes, list[int]] = defaultdict(list)
    for column, values in enumerate(table.T):
        groups[values.tobytes()].append(column)
    alike = list(groups.values())
    measured = np.count_nonzero(~np.isnan(table), axis=0)
    same = [group for group in alike if len(group) > 1 and measured[group[0]] >= LEAST_TASKS]
    if same:
        n = sum(map(len, same))
        yield (
            f"{n} tasks have the same scores as another: "
            f"{_listed(_tasks_named([names[one] for one in group]) for group in same)}. "
            f"{len(alike)} of {len(names)} tasks differ, and each copy counts as one more task; "
            "to count one of a sort, choose with --tasks."
        )
    copied = {group[0]: group for group in alike}
    for mean in column_means(table, alike):
        yield _mean_said(mean, [names[one] for one in copied[mean.column]], names, len(blocks))


def _mean_said(mean: ColumnMean, called: Sequence[str], names: Sequence[str], n_rows: int) -> str:
    of = "all other tasks" if mean.is_of_all else _tasks_named([names[one] for one in sorted(mean.of)])
    verb = "is" if len(called) == 1 else "are each"
    rows = "" if mean.n_rows == n_rows else f", for the {mean.n_rows} models that have all of them"
    it, them = ("an average is", "it") if len(called) == 1 else ("averages are", "them")
    return (
        f"{_tasks_named(called)} {verb} the mean of {of}, within rounding{rows}. Here {it} stored as any other task: "
        f"to leave {them} out, choose the others with --tasks."
    )


def _field(run: RunDescription) -> Field:
    return run.benchmark, run.condition, run.variant


def _said(block: Answers) -> Iterator[bytes]:
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


def _listed(groups: Iterable[str]) -> str:
    told = list(groups)
    more = f"; and {len(told) - N_GROUPS} more" if len(told) > N_GROUPS else ""
    return "; ".join(told[:N_GROUPS]) + more


def _named(names: Sequence[str]) -> str:
    return join_names(map(repr, names), N_NAMED)


def _tasks_named(names: Sequence[str]) -> str:
    """Names one by one, or as 'Retrieval-1 … -15' where only a number at their end counts up."""
    parts = [re.fullmatch(r"(.*?\D)(\d+)", name) for name in names]
    if len(names) > 2 and all(parts):
        stems = {part[1] for part in parts if part}
        numbers = [int(part[2]) for part in parts if part]
        if len(stems) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            stem = stems.pop()
            mark = stem[-1] if stem[-1] in "-_" else ""
            return f"{names[0]} … {mark}{numbers[-1]}"
    return _named(names)
