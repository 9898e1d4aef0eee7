"""CSV, Parquet or JSON Lines with one row per model and task: task scores with standard errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.ingest.files.tabular.cells import (
    Codes,
    check_bounds,
    compress_codes,
    factorize,
    parse_number_column,
    parse_numbers,
    parse_whole_numbers,
)
from tracker.ingest.files.tabular.json_lines import read_rows
from tracker.ingest.files.tabular.run_rows import TableRuns, parse_runs
from tracker.ingest.files.tabular.table import FileTable, TableProblems
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, TaskScores, metric_description
from tracker.ingest.tables import find_layout
from tracker.ingest.tables.layout import TableLayout, metric_of_columns
from tracker.ingest.tables.read_layout import describe_layout, require_layout, warn_of_columns
from tracker.ingest.tables.scores.directions import apply_direction
from tracker.ingest.tables.scores.scales import advise_percentages, check_scales, unify_percentages
from tracker.ingest.tables.table_rows import (
    describe_filled,
    describe_rows,
    drop_filled,
    drop_summaries,
    select_splits,
)

NAME = "task-score-table"
SPECIFICITY = 25
RECOGNIZED_BY = "columns for model, task and score, none for prompts"
SUPPORTS_SPLITS = True
READS_COLUMNS = True
REPORTS_SCORES = False


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a table of task scores."""
    return find_layout.mismatch_reason(path, options, NAME)


def describe_reading(path: Path, options: ReadOptions) -> str | None:
    """Return what the columns of the file are."""
    return describe_layout(path, options, NAME)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a block per run and metric."""
    layout = require_layout(path, options, NAME)
    role = layout.roles
    table, n_filled = drop_filled(select_splits(read_rows(path), role, options, is_single=True), role)
    if n_filled:
        yield describe_filled(n_filled, role)
    table, summaries = drop_summaries(table, role["task"])
    if summaries:
        yield f"skipped rows that summarize the others: {describe_rows(summaries)}"
    problems = TableProblems(table)
    runs = parse_runs(table, role, options, problems)
    tasks = factorize(table, role["task"])
    if "" in tasks.names:
        problems.add(np.flatnonzero(tasks.rows == tasks.names.index("")), role["task"], ["the task has no name"])
    counts = None
    if "n_prompts" in role:
        numbers = parse_whole_numbers(table, role["n_prompts"], problems, noun="number of prompts")
        counts = [count if count >= 0 else None for count in numbers.tolist()]
    reader = _TaskScoreReader(table, runs, tasks, counts, problems)
    blocks = [
        block
        for column, name in metric_of_columns(layout).items()
        for block in reader.read(column, name, layout, options)
    ]
    problems.check("\n".join(dict.fromkeys(filter(None, reader.advice))))
    yield from blocks
    yield from warn_of_columns(layout)


@dataclass(frozen=True, eq=False)
class _TaskScoreReader:
    """Reads columns of task scores.

    Attributes:
        table: the table.
        runs: the run of each row.
        tasks: the task of each row.
        counts: number of prompts of each row; None without.
        problems: collects invalid and contradictory cells.
        advice: how to read scores out of bounds.
    """

    table: FileTable
    runs: TableRuns
    tasks: Codes
    counts: list[int | None] | None
    problems: TableProblems
    advice: list[str] = field(default_factory=list)

    def read(
        self, column: str, metric_name: str | None, layout: TableLayout, options: ReadOptions
    ) -> Iterator[TaskScores]:
        """Yield the scores in a column, a block per run and metric."""
        role, table = layout.roles, self.table
        coded = Codes(np.zeros(len(table), dtype=np.int64), [""])
        if "metric" in role:
            coded = factorize(table, role["metric"])
        default = options.metric or metric_name or "score"
        metrics = [metric_description(name or default, options) for name in coded.names]
        (numbers,) = unify_percentages([parse_number_column(table, column, self.problems)], metrics[0])
        values = numbers.values
        errors = np.full(len(table), np.nan) if numbers.stderr is None else numbers.stderr
        if "stderr" in role and len(layout.values) == 1:
            errors = parse_numbers(table, role["stderr"], self.problems)
        for code in range(len(metrics)):
            rows = np.flatnonzero(coded.rows == code)
            by_task = self._values_by_task(values, rows)
            metric = metrics[code] = apply_direction(table.path, by_task, metrics[code], options, are_rows=True)
            check_bounds(values[rows], metric, column, self.problems, rows)
            self.advice.append(advise_percentages(table.path, values[rows], metric))
            if not self.problems.count:
                check_scales(table.path, by_task, options, metric, "tasks")
        groups, first = compress_codes(
            self.runs.rows * len(metrics) + coded.rows, len(self.runs.described) * len(metrics)
        )
        for group, start in enumerate(first.tolist()):
            rows = np.flatnonzero((groups == group) & ~np.isnan(values))
            if len(rows):
                yield self._block(rows, start, metrics[coded.rows[start]], values, errors, column)

    def _values_by_task(
        self, values: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> Mapping[str, NDArray[np.float64]]:
        order = rows[np.argsort(self.tasks.rows[rows], kind="stable")]
        starts = np.flatnonzero(np.diff(self.tasks.rows[order], prepend=-1))
        parts = np.split(values[order], starts[1:])
        return {
            self.tasks.names[self.tasks.rows[order[start]]]: part for start, part in zip(starts, parts, strict=True)
        }

    def _block(
        self,
        rows: NDArray[np.int64],
        start: int,
        metric: MetricDescription,
        values: NDArray[np.float64],
        errors: NDArray[np.float64],
        column: str,
    ) -> TaskScores:
        _, kept = np.unique(self.tasks.rows[rows], return_index=True)
        kept = rows[np.sort(kept)]
        value_of = dict(zip(self.tasks.rows[kept].tolist(), values[kept].tolist(), strict=True))
        wrong = [row for row in rows.tolist() if values[row] != value_of[int(self.tasks.rows[row])]]
        self.problems.add(wrong, column, ["the task has a different score in an earlier row"])
        return TaskScores(
            run=self.runs.described[self.runs.rows[start]],
            metric=metric,
            tasks=self.tasks.names_of(kept),
            values=values[kept],
            stderr=errors[kept],
            n_prompts=None if self.counts is None else [self.counts[row] for row in kept.tolist()],
        )
