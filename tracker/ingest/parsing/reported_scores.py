"""Comparison of the scores that a harness reports with those computed from its rows, in one place for all formats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.measurement import (
    Measurement,
    Prompts,
    ReportedDifference,
    RunDescription,
    Scores,
    TaskScores,
)
from tracker.ingest.parsing.aggregations import TaskRows, aggregate, sample_stderr, summarize
from tracker.ingest.reported_score import ReportedCount, ReportedScore

PRECISION = 1e-6
"""Largest difference, relative above 1, from a number that is reported to full precision."""
MAX_LISTED = 5
NO_NAME = -1
"""Number of a task or split without rows."""

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _PromptCodes:
    """Numbers of the prompts of a block, of their tasks and of their splits; ``(n,)``, or ``(1,)`` where all agree."""

    prompts: Codes
    tasks: Codes
    splits: Codes


@dataclass(frozen=True, eq=False)
class _RowBlock:
    """The scores of a block as the harness counts them."""

    run: RunDescription
    codes: _PromptCodes
    values: NDArray[np.float64]
    trials: Codes
    weights: Mapping[str, NDArray[np.float64]]
    groups: Mapping[str, Codes]

    def select(self, chosen: NDArray[np.bool_]) -> TaskRows:
        """Return some of its rows."""
        columns = (self.codes.prompts, self.trials, self.codes.tasks)
        prompts, trials, tasks = (np.broadcast_to(column, self.values.shape)[chosen] for column in columns)
        weights = {name: weight[chosen] for name, weight in self.weights.items()}
        groups = {name: numbers[chosen] for name, numbers in self.groups.items()}
        return TaskRows(self.values[chosen], prompts, trials, tasks, weights, groups)


@dataclass(eq=False)
class ReportedScores:
    """Collects the rows and the reported scores of a file, and compares them.

    Attributes:
        is_expected: whether the format may report scores; rows are kept only then.
        differences: reported scores that differ from the rows.
    """

    is_expected: bool = True
    differences: list[ReportedDifference] = field(default_factory=list)
    _reported: list[ReportedScore] = field(default_factory=list)
    _rows: dict[str, list[_RowBlock]] = field(default_factory=lambda: defaultdict(list))
    _codes: WeakKeyDictionary[Prompts, _PromptCodes] = field(default_factory=WeakKeyDictionary)
    _names: dict[str | None, int] = field(default_factory=dict)

    def add(self, part: Measurement | ReportedScore | ReportedCount) -> None:
        """Add a reported number, or the rows of a block.

        Raises:
            TypeError: the format declares that it reports nothing.
        """
        if not self.is_expected:
            if isinstance(part, (ReportedScore, ReportedCount)):
                raise TypeError(f"a format with REPORTS_SCORES = False yields a {type(part).__name__}")
            return
        if isinstance(part, ReportedScore):
            self._reported.append(part)
            return
        if isinstance(part, ReportedCount):
            if part.value not in part.counted:
                text = f"the file reports {part.value:,} {part.name}, but holds {part.counted[0]:,}"
                self.differences.append(ReportedDifference(part.run, text))
            return
        prompts = part if isinstance(part, Prompts) else getattr(part, "prompts", None)
        if prompts is None:
            return
        codes = self._codes.get(prompts)
        if codes is None:
            codes = self._codes[prompts] = self._encode(prompts)
        if isinstance(part, Scores):
            values = np.asarray(part.values if part.logged is None else part.logged, dtype=np.float64)
            trials = np.asarray(part.trials, dtype=np.int64)
            groups = {name: self._encode_names(labels, len(prompts)) for name, labels in part.groups.items()}
            self._rows[part.metric.name].append(_RowBlock(part.run, codes, values, trials, part.weights, groups))

    def check(self, path: Path, *, n_prompts: int, n_scores: int) -> Iterator[TaskScores | str]:
        """Compare all reported scores; yield as task scores those that the rows do not hold, then warnings.

        Args:
            path: the file, for messages.
            n_prompts, n_scores: how many prompts and scores the file holds.

        Raises:
            BadInputError: the file holds prompts and reports means of their scores, but holds no scores.
        """
        stored: list[ReportedScore] = []
        without_rows: list[ReportedScore] = []
        for reported in self._reported:
            rows = self._find_rows(reported) if reported.aggregations else None
            if rows is not None:
                self._compare(reported, rows)
            elif reported.aggregations and reported.is_stored and all(task in self._names for task in reported.tasks):
                without_rows.append(reported)
            if reported.is_stored and reported.tasks and (rows is None or not reported.is_mean_of_rows):
                stored.append(reported)
        without_rows = without_rows if n_prompts else []
        if without_rows and not n_scores:
            first = without_rows[0]
            problem = f"reports {_describe(first)} = {first.value:g}, but its {n_prompts:,} prompts have no scores."
            raise BadInputError(path, problem, advice="Ingest the file as the harness wrote it, with all its fields.")
        yield from _as_task_scores(stored)
        texts = [f"{difference.text}; the run is unverified" for difference in self.differences]
        texts += [f"{_describe(reported)}: {_explain_without_rows(reported)}" for reported in without_rows]
        yield from texts[:MAX_LISTED]
        if len(texts) > MAX_LISTED:
            yield f"and {len(texts) - MAX_LISTED:,} more reported scores like these"

    def _encode(self, prompts: Prompts) -> _PromptCodes:
        tasks = self._encode_names(prompts.tasks or ("",))
        keys = np.fromiter(map(hash, prompts.keys), dtype=np.int64, count=len(prompts))
        return _PromptCodes(keys ^ (tasks << 32), tasks, self._encode_names(prompts.split or (None,)))

    def _encode_names(self, names: Sequence[str | None], n_min: int = 1) -> Codes:
        first = names[0] if names else None
        if n_min == 1 and all(name == first for name in names):
            names = (first,)
        return np.array([self._names.setdefault(name, len(self._names)) for name in names], dtype=np.int64)

    def _find_rows(self, reported: ReportedScore) -> TaskRows | None:
        """Return the rows that a reported score covers; None without any."""
        tasks = [] if reported.group else [self._names.get(task, NO_NAME) for task in reported.tasks]
        parts = []
        for block in self._rows.get(reported.row_metric, ()):
            other_task = tasks and len(block.codes.tasks) == 1 and block.codes.tasks[0] not in tasks
            if other_task or (reported.run is not None and block.run != reported.run):
                continue
            chosen = ~np.isnan(block.values)
            if tasks:
                chosen &= np.isin(block.codes.tasks, tasks)
            if reported.split is not None:
                chosen &= block.codes.splits == self._names.get(reported.split, NO_NAME)
            if reported.group:
                field_name, value = reported.group
                groups = block.groups.get(field_name, np.array([NO_NAME]))
                chosen &= groups == self._names.get(value, NO_NAME - 1)
            if chosen.any():
                parts.append(block.select(chosen))
        return TaskRows.join(parts) if parts else None

    def _compare(self, reported: ReportedScore, rows: TaskRows) -> None:
        computed = [_compute(reported, rows, aggregation) for aggregation in reported.aggregations]
        if not any(_agree(reported.value, value, reported.decimals) for value in computed):
            self._add_difference(reported, "", reported.value, computed[0])
        if reported.has_sample_stderr and not math.isnan(reported.stderr):
            stderr = sample_stderr(rows.prompt_means())
            if not _agree(reported.stderr, stderr, reported.decimals):
                self._add_difference(reported, "the standard error of ", reported.stderr, stderr)

    def _add_difference(self, reported: ReportedScore, prefix: str, value: float, computed: float) -> None:
        first, second = _distinct(value, computed)
        text = f"the file reports {prefix}{_describe(reported)} as {first}, but its scores give {second}"
        self.differences.append(ReportedDifference(reported.run, text))


def _compute(reported: ReportedScore, rows: TaskRows, aggregation: str) -> float:
    """Return the number that a reported one must equal; NaN if it is undefined."""
    if reported.mean_of:
        groups = rows.by_group(reported.mean_of)
        values = [summarize(part, aggregation, reported.statistic, reported.clusters) for part in groups]
        return math.fsum(values) / len(values) if values else math.nan
    if reported.statistic == "mean":
        return aggregate(rows, aggregation, reported.metric.name.partition(",")[0])
    return summarize(rows, aggregation, reported.statistic, reported.clusters)


def _agree(reported: float, computed: float, decimals: int | None) -> bool:
    """Return whether a number agrees with a reported one, to its decimals or to `PRECISION`."""
    if math.isnan(computed):
        return True  # undefined for these rows, such as pass@k with fewer trials
    if decimals is None:
        return abs(reported - computed) <= PRECISION * max(1.0, abs(reported))
    return abs(reported - computed) <= 0.5 * 10.0**-decimals + 1e-9 * max(1.0, abs(reported))


def _distinct(first: float, second: float) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to distinguish them, at least six."""
    for digits in range(6, 18):
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _describe(reported: ReportedScore) -> str:
    """Return the name of a reported score, with its task."""
    name = reported.name or reported.metric.name
    return f"{name} of {reported.tasks[0]}" if len(reported.tasks) == 1 else name


def _explain_without_rows(reported: ReportedScore) -> str:
    """Return why a reported score without rows is only a task score, or is not stored."""
    if reported.tasks:
        return "only the task score was read"
    return f"reported as {reported.value:g}, but the file has no scores to compute it from; not stored"


def _as_task_scores(stored: Sequence[ReportedScore]) -> Iterator[TaskScores]:
    """Yield reported scores as task scores, a block for each run and metric."""
    blocks: dict[tuple[RunDescription | None, str], list[ReportedScore]] = {}
    for reported in stored:
        blocks.setdefault((reported.run, reported.metric.name), []).append(reported)
    for block in blocks.values():
        run = block[0].run
        assert run is not None, "a reported score that is stored belongs to a run"
        yield TaskScores(
            run=run,
            metric=block[0].metric,
            tasks=[reported.tasks[0] for reported in block],
            values=np.array([reported.value for reported in block]),
            stderr=np.array([reported.stderr for reported in block]),
            n_prompts=[reported.n_prompts for reported in block],
        )
