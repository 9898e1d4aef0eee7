"""Scales of scores: percent signs, and columns in 0–1 and 0–100 under one metric."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import NumberColumn, is_missing
from tracker.ingest.files.tabular.table import FileTable
from tracker.ingest.measurement import MetricDescription, ReadOptions
from tracker.ingest.tables.names.name_shapes import name_kind
from tracker.name_lists import join_names

MIN_PERCENT = 10.0
"""Scores above this number are not on a scale of 0 to 1."""
MIN_CELLS = 20.0
"""A single score within 0 and 1 beside scores from this number on has another scale."""
MIN_BINARY, MIN_HUNDRED = 12, 50.0
MAX_PERCENT = 101.0
DIGITS = 14
"""Decimals of percentages as fractions: 71.2 / 100 is 0.712, not 0.7120000000000001."""
MAX_NAMES = 5
THOUSANDS, HUNDREDS = re.compile(r"[1-9]\d{0,2}\.\d{3}"), re.compile(r"[1-9]\d{2}")
RATING = re.compile(r"(?:^|[^a-z])(?:elo|ratings?|glicko|trueskill)(?:$|[^a-z])", re.I)


def unify_percentages(columns: Sequence[NumberColumn], metric: MetricDescription) -> list[NumberColumn]:
    """Return columns on one scale: 71.2% is 0.712 if other scores, or the bounds of the metric, are within 0 and 1."""
    if all(column.percent is None for column in columns):
        return list(columns)
    plain = [column.values if column.percent is None else column.values[~column.percent] for column in columns]
    numbers = np.concatenate([values[~np.isnan(values)] for values in plain] or [np.zeros(0)])
    has_bounds = metric.upper is not None and metric.upper <= 1
    has_fractions = bool(len(numbers)) and bool((np.abs(numbers) <= 1).all() and (numbers % 1 != 0).any())
    if not has_bounds and not has_fractions:
        return list(columns)
    return [_divide(column) for column in columns]


def _divide(column: NumberColumn) -> NumberColumn:
    if column.percent is None:
        return column
    scale = np.where(column.percent, 100.0, 1.0)
    return replace(
        column,
        values=np.round(column.values / scale, DIGITS),
        stderr=None if column.stderr is None else np.round(column.stderr / scale, DIGITS),
    )


def check_scales(
    path: Path, columns: Mapping[str, NDArray[np.float64]], options: ReadOptions, metric: MetricDescription, noun: str
) -> None:
    """Check that scores under one metric have one scale.

    Args:
        path: the file, for messages.
        columns: scores by name of the column, task or model.
        options: explicit bounds state the scale, so that nothing is checked.
        metric: the metric.
        noun: what the names stand for.

    Raises:
        BadInputError: some columns are within 0 and 1, others are not.
    """
    if options.lower is not None or options.upper is not None or metric.upper is not None:
        return
    units, larger, binary, hundreds = [], [], [], []
    for name, values in columns.items():
        numbers = values[~np.isnan(values)]
        if not len(numbers):
            continue
        highest = float(numbers.max())
        if highest > MIN_PERCENT:
            larger.append(name)
            if highest >= MIN_HUNDRED:
                hundreds.append(name)
        elif numbers.min() < 0:
            continue
        elif highest <= 1 and (numbers % 1 != 0).any():
            units.append(name)
        elif highest == 1 and len(numbers) >= MIN_BINARY:
            binary.append(name)
    if hundreds:
        units += binary
    if units and larger:
        raise BadInputError(
            path,
            f"{noun} with scores in 0–1: {join_names(map(repr, units), MAX_NAMES)}; with larger scores: "
            f"{join_names(map(repr, larger), MAX_NAMES)}. One metric has one scale.",
            advice="Skip columns that hold no scores with --ignore-columns NAME, or import each scale with "
            "--task-columns NAME --metric NAME. If all have one scale, add its bounds: --bounds 0 100",
        )
    large = [name for name in larger if float(np.nanmax(columns[name])) > MAX_PERCENT]
    if large and len(large) < len(larger):
        small = [name for name in larger if name not in large]
        raise BadInputError(
            path,
            f"{noun} with scores up to 100: {join_names(map(repr, small), MAX_NAMES)}; with larger numbers: "
            f"{join_names(map(repr, large), MAX_NAMES)}. One metric has one scale.",
            advice="Skip columns that hold no scores with --ignore-columns NAME, or import each scale with "
            "--task-columns NAME --metric NAME.",
        )


def check_percent_signs(path: Path, columns: Mapping[str, NumberColumn], options: ReadOptions) -> None:
    """Check that no column of whole numbers, such as counts, stands beside columns of percentages.

    Args:
        path: the file, for messages.
        columns: scores by heading.
        options: explicit bounds or columns state that all are scores.

    Raises:
        BadInputError: such a column is not named like a task.
    """
    if options.lower is not None or options.upper is not None or options.task_columns:
        return
    percent = [name for name, column in columns.items() if column.percent is not None]
    counts = [
        name
        for name, column in columns.items()
        if column.percent is None
        and name_kind(name) != "task"
        and len(numbers := column.values[~np.isnan(column.values)]) > 2
        and (numbers % 1 == 0).all()
        and numbers.max() > 1
    ]
    if percent and counts:
        raise BadInputError(
            path,
            f"columns in percent: {join_names(map(repr, percent), MAX_NAMES)}; with whole numbers: "
            f"{join_names(map(repr, counts), MAX_NAMES)}. One metric has one scale.",
            advice="Skip columns that hold no scores with --ignore-columns NAME, or state that all are scores: "
            "--bounds 0 100",
        )


def check_thousands_points(table: FileTable, names: Sequence[str], options: ReadOptions) -> None:
    """Check that no column of texts may be read as whole numbers with a thousands point, such as an Elo of 1.200.

    Args:
        table: the table.
        names: its columns of scores.
        options: explicit bounds state that the points are decimal ones.

    Raises:
        BadInputError: every cell of a column of ratings has three decimals, or some have and others are whole.
    """
    if options.lower is not None or options.upper is not None:
        return
    for name in names:
        kind = str(table.arrow[name].type)
        cells = {cell.strip() for cell in table.arrow[name].unique().to_pylist() if cell} if "string" in kind else set()
        filled = {cell for cell in cells if not is_missing(cell)}
        points = sorted(cell for cell in filled if THOUSANDS.fullmatch(cell))
        whole = [cell for cell in filled if HUNDREDS.fullmatch(cell)]
        if points and len(points) + len(whole) == len(filled) and (whole or RATING.search(name)):
            cell, number = points[-1], points[-1].replace(".", "")
            raise BadInputError(
                table.path,
                f"column {name!r} has {cell!r}: {number} with a thousands point, or a decimal. Nothing was stored.",
                advice=f"Write {number}. If it is a decimal, add the bounds, such as --bounds 0 10, or skip the "
                f"column: {shlex.join(['--ignore-columns', name])}",
            )


def advise_percentages(path: Path, values: NDArray[np.float64], metric: MetricDescription) -> str:
    """Return the command that reads percentages under a metric that is a fraction; '' if the scores are none."""
    numbers = values[~np.isnan(values)]
    is_percent = len(numbers) and numbers.min() >= 0 and MIN_PERCENT < numbers.max() <= MAX_PERCENT
    if metric.upper != 1 or not is_percent:
        return ""
    return (
        f"If these are percentages, import them under another metric:\n"
        f"  suffrage ingest {shlex.quote(str(path))} --metric {shlex.quote(metric.name + '_percent')}"
    )


def check_row_scales(path: Path, T: NDArray[np.float64], rows: Sequence[str], options: ReadOptions) -> None:
    """Check that no row is in 0–1 while the others are in 0–100.

    Args:
        path: the file, for messages.
        T: ``(n_tasks, n_rows)`` scores.
        rows: names of the rows.
        options: explicit bounds state the scale, so that nothing is checked.

    Raises:
        BadInputError: a row with two or more scores has another scale.
    """
    if options.lower is not None or options.upper is not None or T.shape[0] < 2 or T.shape[1] < 2:
        return
    measured = ~np.isnan(T)
    highest = np.where(measured, T, -np.inf).max(axis=0)
    fractions = (measured & (T % 1 != 0)).any(axis=0)
    is_unit = (highest <= 1) & (highest > 0) & fractions & (measured.sum(axis=0) > 1)
    if is_unit.any() and (highest > MIN_PERCENT).any():
        names = [rows[row] for row in np.flatnonzero(is_unit).tolist()]
        raise BadInputError(
            path,
            f"rows with scores in 0–1: {join_names(map(repr, names), MAX_NAMES)}; the other rows have larger scores.",
            advice="Write all scores on one scale. If they are, add its bounds: --bounds 0 100",
        )
    _check_single_cells(path, T, rows)


def _check_single_cells(path: Path, T: NDArray[np.float64], rows: Sequence[str]) -> None:
    """Check that no score is -1 among scores of 0 or more, or the one fraction in a column of percentages."""
    measured = T[~np.isnan(T)]
    if (measured == -1).any() and not ((measured < 0) & (measured != -1)).any() and (measured > 1).any():
        names = [rows[row] for row in np.flatnonzero((T == -1).any(axis=0)).tolist()]
        raise BadInputError(
            path,
            f"-1 stands for a missing score, or is a score, in the rows {join_names(map(repr, names), MAX_NAMES)}.",
            advice="Leave the cells of missing scores empty. If -1 is a score, add the bounds: --bounds -1 100",
        )
    for column in T:
        smallest, second = (*np.sort(column[~np.isnan(column)])[:2], np.nan, np.nan)[:2]
        if 0 < smallest < 1 and second >= MIN_CELLS and second / 2 <= 100 * smallest:
            row = rows[int(np.flatnonzero(column == smallest)[0])]
            raise BadInputError(
                path,
                f"{smallest:g} in the row {row!r} stands among scores from {second:g} on.",
                advice="Write all scores on one scale. If they are, add its bounds: --bounds 0 100",
            )
