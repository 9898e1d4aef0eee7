"""Task scores of a leaderboard as a matrix, on one scale and with one direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import (
    NumberColumn,
    check_bounds,
    factorize,
    parse_number_columns,
    parse_numbers,
    parse_whole_numbers,
)
from tracker.ingest.files.tabular.column_means import column_means
from tracker.ingest.files.tabular.table import FileTable, TableProblems
from tracker.ingest.measurement import MetricDescription, ReadOptions, RunDescription, TaskScores, metric_description
from tracker.ingest.tables.layout import TableLayout
from tracker.ingest.tables.names.column_headings import clean_heading, is_summary_heading, mentions_summary
from tracker.ingest.tables.rejections import advise_columns
from tracker.ingest.tables.scores.averages import find_averages
from tracker.ingest.tables.scores.directions import apply_direction
from tracker.ingest.tables.scores.scales import (
    check_percent_signs,
    check_row_scales,
    check_scales,
    check_thousands_points,
    unify_percentages,
)
from tracker.name_lists import join_names

MAX_NAMES = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskScoreMatrix:
    """Scores in the columns of a leaderboard.

    Attributes:
        names: headings of the columns, without sort marks.
        T: ``(n_columns, n_rows)`` scores; NaN for missing ones.
        stderr: ``(n_columns, n_rows)`` standard errors; None without.
        metrics: the metrics.
        metric_of_row: ``(n_rows,)`` index of each row's metric.
        n_prompts: number of prompts of each row; None without.
    """

    names: Sequence[str]
    T: NDArray[np.float64]
    stderr: NDArray[np.float64] | None
    metrics: Sequence[MetricDescription]
    metric_of_row: NDArray[np.int64]
    n_prompts: Sequence[int | None] | None = None

    def scores_of(self, row: int, run: RunDescription) -> TaskScores:
        """Return the scores in a row of a table of models."""
        return TaskScores(
            run=run,
            metric=self.metrics[int(self.metric_of_row[row])],
            tasks=list(self.names),
            values=self.T[:, row].copy(),
            stderr=None if self.stderr is None else self.stderr[:, row].copy(),
        )

    def of_rows(self, rows: NDArray[np.bool_]) -> TaskScoreMatrix:
        """Return the scores in some rows."""
        counts = self.n_prompts
        return replace(
            self,
            T=self.T[:, rows],
            stderr=None if self.stderr is None else self.stderr[:, rows],
            metric_of_row=self.metric_of_row[rows],
            n_prompts=None if counts is None else [counts[row] for row in np.flatnonzero(rows).tolist()],
        )


def read_task_matrix(
    table: FileTable,
    layout: TableLayout,
    options: ReadOptions,
    problems: TableProblems,
    *,
    beside: Sequence[str] = (),
) -> TaskScoreMatrix:
    """Return the scores of a leaderboard.

    Args:
        table: the table.
        layout: its columns.
        options: how to read it.
        problems: collects cells that are not numbers, or out of bounds.
        beside: names of rows that were skipped, which may state the direction.

    Raises:
        BadInputError: the columns differ in scale or direction, or have equal headings.
    """
    names = [clean_heading(name) for name in layout.values]
    if repeated := [name for name, n in Counter(names).items() if n > 1]:
        raise BadInputError(table.path, f"columns have the same name apart from sort marks: {repeated[0]!r}.")
    default = metric_description(options.metric or "score", options)
    columns = unify_percentages(parse_number_columns(table, layout.values, problems), default)
    metric_names, metric_of_row = [""], np.zeros(len(table), dtype=np.int64)
    if "metric" in layout.roles:
        coded = factorize(table, layout.roles["metric"])
        metric_names, metric_of_row = coded.names, coded.rows
    metrics = [metric_description(name, options) if name else default for name in metric_names]
    by_heading = {name: column.values for name, column in zip(layout.values, columns, strict=True)}
    T = np.array([column.values for column in columns]).reshape(len(columns), len(table))
    are_rows = layout.orientation == "tasks"
    by_task = dict(zip(_names_of_rows(table, layout), T.T, strict=True)) if are_rows else by_heading
    beside = [*beside, *layout.details, *(name for name in layout.skipped if is_summary_heading(name))]
    metrics = [
        apply_direction(table.path, by_task, metric, options, are_rows=are_rows, beside=beside) for metric in metrics
    ]
    if not are_rows:
        check_percent_signs(table.path, dict(zip(layout.values, columns, strict=True)), options)
        check_thousands_points(table, layout.values, options)
    for number, metric in enumerate(metrics):
        rows = np.flatnonzero(metric_of_row == number)
        for name, values in by_heading.items():
            check_bounds(values[rows], metric, name, problems, rows)
        if not problems.count:
            _check_scales(table, layout, options, metric, by_heading, rows)
    n_prompts = None
    if "n_prompts" in layout.roles:
        counts = parse_whole_numbers(table, layout.roles["n_prompts"], problems, noun="number of prompts")
        n_prompts = [count if count >= 0 else None for count in counts.tolist()]
    stderr = _read_stderr(table, layout, columns, problems)
    return TaskScoreMatrix(
        names=names, T=T, stderr=stderr, metrics=metrics, metric_of_row=metric_of_row, n_prompts=n_prompts
    )


def drop_averages(path: Path, matrix: TaskScoreMatrix) -> tuple[TaskScoreMatrix, list[str]]:
    """Return a matrix without columns that are averages of others, and their headings.

    Args:
        path: the file, for messages.
        matrix: the scores.

    Raises:
        BadInputError: there are too few rows to distinguish an average from a task.
    """
    by_value = {average.column: average for average in find_averages(matrix.T.T)}
    averages = {place for place, average in by_value.items() if average.is_certain} | _find_mentioned(matrix, by_value)
    unclear = [place for place in by_value if place not in averages]
    if unclear:
        place = unclear[0]
        parts = join_names((repr(matrix.names[part]) for part in by_value[place].of), MAX_NAMES)
        raise BadInputError(
            path,
            f"{matrix.names[place]!r} equals the mean of {parts} in each row: an average, or a task. Nothing was "
            "stored.",
            advice=advise_columns(path, "averages", [matrix.names[place] for place in unclear], matrix.names),
        )
    rest = [place for place in range(len(matrix.names)) if place not in averages]
    kept = replace(
        matrix,
        names=[matrix.names[place] for place in rest],
        T=matrix.T[rest],
        stderr=None if matrix.stderr is None else matrix.stderr[rest],
    )
    return kept, [matrix.names[place] for place in sorted(averages)]


def _find_mentioned(matrix: TaskScoreMatrix, by_value: Collection[int]) -> set[int]:
    """Return the columns whose headings mention a summary, and that are averages by value."""
    mentioned = [place for place, name in enumerate(matrix.names) if mentions_summary(name)]
    if not mentioned or len(mentioned) == len(matrix.names):
        return set()
    means = {mean.column for mean in column_means(matrix.T.T, [[place] for place in range(len(matrix.names))])}
    return {place for place in mentioned if place in means or place in by_value}


def _check_scales(
    table: FileTable,
    layout: TableLayout,
    options: ReadOptions,
    metric: MetricDescription,
    columns: dict[str, NDArray[np.float64]],
    rows: NDArray[np.int64],
) -> None:
    chosen = {name: values[rows] for name, values in columns.items()}
    T = np.array(list(chosen.values()))
    names = _names_of_rows(table, layout)
    keys = [names[row] for row in rows.tolist()]
    if layout.orientation == "tasks":
        by_task: dict[str, NDArray[np.float64]] = {key: T[:, row] for row, key in enumerate(keys)}
        check_scales(table.path, by_task, options, metric, "tasks")
        return
    check_row_scales(table.path, T, keys, options)
    check_scales(table.path, chosen, options, metric, "columns")


def _names_of_rows(table: FileTable, layout: TableLayout) -> list[str]:
    return [str(key) for key in table.arrow[layout.key].to_pylist()]


def _read_stderr(
    table: FileTable, layout: TableLayout, columns: Sequence[NumberColumn], problems: TableProblems
) -> NDArray[np.float64] | None:
    stderr = np.full((len(columns), len(table)), np.nan)
    for place, (name, column) in enumerate(zip(layout.values, columns, strict=True)):
        if column.stderr is not None:
            stderr[place] = column.stderr
        elif name in layout.stderr:
            was_divided = column.percent is not None and np.nanmax(column.values, initial=0) <= 1
            stderr[place] = parse_numbers(table, layout.stderr[name], problems) / (100 if was_divided else 1)
    return None if np.isnan(stderr).all() else stderr
