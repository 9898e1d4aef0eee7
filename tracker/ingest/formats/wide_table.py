"""CSV or Parquet table with one row per prompt and one column per model: scores, or predicted answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import HEAD_ROWS
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.files.tabular.cells import (
    check_bounds,
    factorize,
    is_missing,
    is_number,
    parse_numbers,
    read_strings,
    shorten,
)
from tracker.ingest.files.tabular.headings import CONTENT, assign_roles, is_row_number
from tracker.ingest.files.tabular.prompt_columns import TablePrompts, parse_prompts
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.ingest.files.tabular.table_head import TableHead, read_head
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

RECOGNIZED_BY = "a column that names prompts; the other columns are models"

Column = tuple[NDArray[Any], NDArray[np.bool_]]
"""Cells of a column, and whether each is filled."""


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a wide table."""
    top = read_head(path)
    if isinstance(top, str):
        return top
    if options.orient == "models":
        return None if len(top.names) > 1 else "it has only one column"
    role = assign_roles(top.names)
    if "model" in role:
        return f"the column {role['model']!r} names models; if the columns are prompts, add --orient models"
    part = _parts(top)
    if isinstance(part, str):
        return part
    models = _models(top.names, part)
    if not models:
        return Mismatch("no column is left for the models", 1 / 3)
    if options.values == "predictions":
        return None
    example = ""
    for name in models:
        cells = [cell for cell in top.column(name) if not is_missing(cell)]
        if not cells or any(map(is_number, cells)):
            return None
        example = example or f"{name!r} has {shorten(cells[0], 20)!r}"
    return Mismatch(f"no column holds numbers: {example}; if these are answers, add --values predictions", 2 / 3)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a block per model; all share their prompts."""
    table = read_table(path)
    problems = TableProblems(table)
    metric = metric_description(
        options.metric or ("exact_match" if options.values == "predictions" else "score"), options
    )
    cells = _Answers() if options.values == "predictions" else _Numbers(metric)
    condition = options.condition_of_runs
    turned = options.orient == "models"
    prompts, columns = (_models_in_rows if turned else _prompts_in_rows)(table, options, problems, cells.column)
    problems.check(cells.advice(columns))
    if options.model and len(columns) > 1:
        raise BadInputError(path, f"holds {len(columns)} models; --model applies to files with a single model.")
    empty = [name for name, (_, present) in columns.items() if not present.any()]
    if empty:
        yield f"skipped models without scores: {', '.join(empty)}"
    for number, block in enumerate(prompts.blocks):
        part = slice(int(prompts.starts[number]), int(prompts.starts[number + 1]))
        for name, (values, present) in columns.items():
            if present[part].any():
                run = RunDescription(model=options.model or name, benchmark=block.benchmark, condition=condition)
                places = f"{'model' if turned else 'column'} {name!r}"
                yield cells.block(run, metric, block, values[part], present[part], places)


@dataclass(frozen=True)
class _Numbers:
    metric: MetricDescription

    def column(self, table: FileTable, name: str, problems: TableProblems) -> Column:
        values = parse_numbers(table, name, problems)
        check_bounds(values, self.metric, name, problems)
        return values, ~np.isnan(values)

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
    def column(self, table: FileTable, name: str, problems: TableProblems) -> Column:
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
    table: FileTable,
    options: ReadOptions,
    problems: TableProblems,
    column: Callable[[FileTable, str, TableProblems], Column],
) -> tuple[TablePrompts, dict[str, Column]]:
    rows = table.arrow.slice(0, HEAD_ROWS).to_pydict()
    first = zip(*([None if cell is None else str(cell) for cell in cells] for cells in rows.values()), strict=True)
    part = _parts(TableHead(tuple(table.names), tuple(first)))
    if isinstance(part, str):
        raise BadInputError(table.path, f"{part}.", advice="Rename the column of prompt names to prompt_id.")
    prompts = parse_prompts(table, part, options, problems)
    columns = {}
    for name in _models(table.names, part):
        values, present = column(table, name, problems)
        columns[name] = _folded(values, present, prompts, name, problems)
    if not columns:
        raise BadInputError(table.path, "no column is left for the models.")
    return prompts, columns


def _models_in_rows(
    table: FileTable,
    options: ReadOptions,
    problems: TableProblems,
    column: Callable[[FileTable, str, TableProblems], Column],
) -> tuple[TablePrompts, dict[str, Column]]:
    names = [name for name in table.names if not is_row_number(name)] or table.names
    header = assign_roles(names).get("model", names[0])
    keys = [name for name in names if name != header]
    if not keys:
        raise BadInputError(table.path, "it has only one column, so there are no prompts.")
    models = factorize(table, header)
    if "" in models.names:
        problems.add(np.flatnonzero(models.rows == models.names.index("")), header, ["the model has no name"])
    columns = [column(table, key, problems) for key in keys]
    values = np.array([cells for cells, _ in columns]).T
    present = np.array([is_measured for _, is_measured in columns]).T
    columns_by_model: dict[str, Column] = {}
    for row, code in enumerate(models.rows.tolist()):
        name = models.names[code]
        if name not in columns_by_model:
            columns_by_model[name] = values[row], present[row]
        elif not np.array_equal(values[row][present[row]], columns_by_model[name][0][present[row]]):
            problems.add([row], header, [f"{name!r} has different values in an earlier row"])
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


def _parts(top: TableHead) -> dict[str, str] | str:
    """Return the columns that name and describe prompts, or why no column names them."""
    role = {part: name for part, name in assign_roles(top.names).items() if part in ("prompt", *CONTENT)}
    if "prompt" in role or "text" in role:
        return role
    left = [name for name in top.names if name not in role.values()]
    for name in left:
        cells = top.column(name)
        if cells and not any(map(is_number, cells)) and len(set(cells)) == len(cells):
            return {**role, "prompt": name}
    if left and (cells := top.column(left[0])) and len(set(cells)) == len(cells) and len(left) > 1:
        return {**role, "prompt": left[0]}
    return "no column prompt_id, and the first column has duplicates"


def _models(names: Sequence[str], part: Mapping[str, str]) -> list[str]:
    return [name for name in names if name not in part.values() and not is_row_number(name)]
