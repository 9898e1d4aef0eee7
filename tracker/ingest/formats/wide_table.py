"""CSV or Parquet table with one row per prompt and one column per model, or the reverse: scores or answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import (
    check_bounds,
    factorize,
    is_missing,
    parse_number_columns,
    read_strings,
    shorten,
)
from tracker.ingest.files.tabular.prompt_columns import TablePrompts, parse_prompts
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.ingest.measurement import (
    Answers,
    Measurement,
    MetricDescription,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    metric_description,
)
from tracker.ingest.tables import find_layout
from tracker.ingest.tables.layout import TableLayout
from tracker.ingest.tables.model_details import clean_model_name
from tracker.ingest.tables.read_layout import describe_layout, require_layout, warn_of_columns
from tracker.ingest.tables.scores.scales import check_scales, unify_percentages
from tracker.ingest.tables.table_rows import describe_rows, drop_summaries, select_splits

NAME = "wide-table"
RECOGNIZED_BY = "a column that names prompts; the other columns are models, or the reverse"
SUPPORTS_SPLITS = True
READS_COLUMNS = True
REPORTS_SCORES = False

Column = tuple[NDArray[Any], NDArray[np.bool_]]
"""Cells of a column, and whether each is filled."""


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a wide table."""
    return find_layout.mismatch_reason(path, options, NAME)


def describe_reading(path: Path, options: ReadOptions) -> str | None:
    """Return what the rows and columns of the file are."""
    return describe_layout(path, options, NAME)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a block per model; all share their prompts."""
    layout = require_layout(path, options, NAME)
    turned = layout.orientation == "models"
    table = read_table(path)
    if not turned:
        table = select_splits(table, layout.roles, options, is_single=False)
        table, summaries = drop_summaries(table, layout.key)
        if summaries:
            yield f"skipped rows that summarize the others: {describe_rows(summaries)}"
    problems = TableProblems(table)
    metric = metric_description(
        options.metric or ("exact_match" if options.values == "predictions" else "score"), options
    )
    cells = _Answers() if options.values == "predictions" else _Numbers(path, metric, options)
    condition = options.condition_of_runs
    prompts, columns = (_models_in_rows if turned else _prompts_in_rows)(table, layout, options, problems, cells)
    problems.check(cells.advice(columns))
    if options.model and len(columns) > 1:
        raise BadInputError(path, f"holds {len(columns)} models; --model applies to files with a single model.")
    yield from warn_of_columns(layout)
    empty = [name for name, (_, present) in columns.items() if not present.any()]
    if empty:
        yield f"skipped models without scores: {', '.join(empty)}"
    for number, block in enumerate(prompts.blocks):
        part = slice(int(prompts.starts[number]), int(prompts.starts[number + 1]))
        for name, (values, present) in columns.items():
            if present[part].any():
                run = RunDescription(
                    model=options.model or clean_model_name(name), benchmark=block.benchmark, condition=condition
                )
                places = f"{'model' if turned else 'column'} {name!r}"
                yield cells.block(run, metric, block, values[part], present[part], places)


@dataclass(frozen=True)
class _Numbers:
    path: Path
    metric: MetricDescription
    options: ReadOptions

    def columns(self, table: FileTable, names: Sequence[str], problems: TableProblems) -> list[Column]:
        columns = unify_percentages(parse_number_columns(table, names, problems), self.metric)
        has_bounds = self.metric.lower is not None or self.metric.upper is not None
        for name, column in zip(names, columns, strict=True):
            if column.stderr is not None:
                rows = np.flatnonzero(~np.isnan(column.stderr))
                problems.add(rows, name, ["the score of a prompt has no standard error"])
            if has_bounds:
                check_bounds(column.values, self.metric, name, problems)
        return [(column.values, ~np.isnan(column.values)) for column in columns]

    def check(self, columns: Mapping[str, Column], problems: TableProblems) -> None:
        """Check that all models have one scale."""
        if not problems.count:
            values = {name: np.where(present, cells, np.nan) for name, (cells, present) in columns.items()}
            check_scales(self.path, values, self.options, self.metric, "models")

    def advice(self, columns: Mapping[str, Column]) -> str:
        wordy = [name for name, (_, present) in columns.items() if not present.any()]
        if not wordy:
            return ""
        return (
            f"No cell of {wordy[0]!r} is a number. If the cells are answers, add --values predictions. "
            "If it is a description, remove the column."
        )

    def block(
        self,
        run: RunDescription,
        metric: MetricDescription,
        prompts: Prompts,
        values: NDArray[Any],
        present: NDArray[np.bool_],
        places: str,
    ) -> Measurement:
        measured = np.where(present, values, np.nan)
        return Scores(run=run, metric=metric, prompts=prompts, values=measured, places=places)


class _Answers:
    def columns(self, table: FileTable, names: Sequence[str], problems: TableProblems) -> list[Column]:
        return [self._column(table, name) for name in names]

    def check(self, columns: Mapping[str, Column], problems: TableProblems) -> None:
        """Answers have no scale."""

    def _column(self, table: FileTable, name: str) -> Column:
        values = np.array(read_strings(table, name).to_pylist(), dtype=object)
        answered = np.array([cell is not None for cell in values], dtype=bool)
        missing = np.array([cell is not None and is_missing(cell) for cell in values], dtype=bool)
        # A model without any filled cell was not evaluated; otherwise, an empty cell is an empty answer.
        return values, ~missing & (answered & ~missing).any()

    def advice(self, columns: Mapping[str, Column]) -> str:
        return ""

    def block(
        self,
        run: RunDescription,
        metric: MetricDescription,
        prompts: Prompts,
        values: NDArray[Any],
        present: NDArray[np.bool_],
        places: str,
    ) -> Measurement:
        text = [value if is_measured else None for value, is_measured in zip(values, present, strict=True)]
        return Answers(run=run, prompts=prompts, text=text, scored_as=metric, predicted=present, places=places)


def _prompts_in_rows(
    table: FileTable, layout: TableLayout, options: ReadOptions, problems: TableProblems, cells: _Numbers | _Answers
) -> tuple[TablePrompts, dict[str, Column]]:
    prompts = parse_prompts(table, layout.roles, options, problems, further=layout.details)
    columns = {
        name: _folded(values, present, prompts, name, problems)
        for name, (values, present) in zip(layout.values, cells.columns(table, layout.values, problems), strict=True)
    }
    cells.check(columns, problems)
    return prompts, columns


def _models_in_rows(
    table: FileTable, layout: TableLayout, options: ReadOptions, problems: TableProblems, cells: _Numbers | _Answers
) -> tuple[TablePrompts, dict[str, Column]]:
    keys, header = list(layout.values), layout.key
    models = factorize(table, header)
    if "" in models.names:
        problems.add(np.flatnonzero(models.rows == models.names.index("")), header, ["the model has no name"])
    columns = cells.columns(table, keys, problems)
    values = np.array([cells for cells, _ in columns]).T
    present = np.array([is_measured for _, is_measured in columns]).T
    columns_by_model: dict[str, Column] = {}
    for row, code in enumerate(models.rows.tolist()):
        name = models.names[code]
        if name not in columns_by_model:
            columns_by_model[name] = values[row], present[row]
        elif not np.array_equal(values[row][present[row]], columns_by_model[name][0][present[row]]):
            problems.add([row], header, [f"{name!r} has different values in an earlier row"])
    cells.check(columns_by_model, problems)
    prompts = Prompts(keys=keys, benchmark=options.benchmark)
    return TablePrompts(np.arange(len(keys)), [prompts], np.array([0, len(keys)])), columns_by_model


def _folded(
    values: NDArray[Any], present: NDArray[np.bool_], prompts: TablePrompts, name: str, problems: TableProblems
) -> Column:
    """Return a column with one cell per prompt; filled rows of the same prompt must agree."""
    measured = np.flatnonzero(present)
    row_of_prompt = np.full(len(prompts), -1, dtype=np.int64)
    row_of_prompt[prompts.rows[measured[::-1]]] = measured[::-1]
    earlier = row_of_prompt[prompts.rows[measured]]
    wrong = np.flatnonzero(values[measured] != values[earlier])
    if len(wrong):
        words = [
            f"prompt {prompts.name(prompts.rows[measured[at]])!r} has {shorten(str(values[measured[at]]))} here "
            f"and {shorten(str(values[earlier[at]]))} in {problems.table.place(earlier[at])}"
            for at in wrong[: BadInputError.MAX_LISTED]
        ]
        problems.add(measured[wrong], name, words)
    return values[row_of_prompt], row_of_prompt >= 0
