"""CSV or Parquet leaderboard: one row per model, one column of scores per task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.mismatch import first_missing
from tracker.ingest.files.tabular.cells import (
    Codes,
    check_bounds,
    factorize,
    is_missing,
    is_number,
    parse_numbers,
    read_strings,
)
from tracker.ingest.files.tabular.headings import assign_roles, is_row_number, normalize_heading
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.ingest.files.tabular.table_head import TableHead, read_head
from tracker.ingest.measurement import Measurement, ReadOptions, RunDescription, TaskScores, metric_description
from tracker.name_lists import join_names

SPECIFICITY = 10
RECOGNIZED_BY = "a column for the model; the other columns are tasks"
MAX_NAMES = 5
SUMMARIES = ("average", "avg", "mean", "overall", "rank", "#")


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a leaderboard."""
    top = read_head(path)
    if isinstance(top, str):
        return top
    if options.orient == "models":
        return "--orient models reads the columns as prompts"
    if options.values == "predictions":
        return "--values predictions reads the cells as answers"
    role = assign_roles(top.names)
    if "prompt" in role or "text" in role:
        return f"the column {role.get('prompt') or role['text']!r} identifies prompts"
    has_scores = bool(_candidates(top, role.get("model", "")))
    return first_missing([("model" in role, "no column model"), (has_scores, "no column of numbers beside the models")])


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a block per row: one model on all tasks."""
    table = read_table(path)
    role = assign_roles(table.names)
    if "model" not in role:
        raise BadInputError(path, "no column model.")
    if options.model:
        raise BadInputError(path, "holds several models; --model applies to files with a single model.")
    problems = TableProblems(table)
    condition = options.condition_of_runs
    tasks, passed_over = _task_columns(table, role["model"])
    if passed_over:
        yield f"skipped columns without task scores: {', '.join(passed_over)}"
    if not tasks:
        raise BadInputError(path, "no column of numbers beside the models.")
    metric = metric_description(options.metric or "score", options)
    T = np.empty((len(tasks), len(table)))
    for place, name in enumerate(tasks):
        T[place] = parse_numbers(table, name, problems)
        check_bounds(T[place], metric, name, problems)
    models = factorize(table, role["model"])
    if "" in models.names:
        problems.add(np.flatnonzero(models.rows == models.names.index("")), role["model"], ["the model has no name"])
    problems.check()
    if T.size and np.isin(T[~np.isnan(T)], (0, 1)).all():
        yield "every score is 0 or 1; if the columns are prompts instead of tasks, add --orient models"
    runs: dict[int, list[int]] = {}
    repeated: dict[int, list[int]] = {}
    for row, code in enumerate(models.rows.tolist()):
        earlier = runs.setdefault(code, [])
        if any(np.array_equal(T[:, row], T[:, row_before], equal_nan=True) for row_before in earlier):
            repeated.setdefault(code, []).append(row)
            continue
        earlier.append(row)
        label = "" if len(earlier) == 1 else f"entry {len(earlier)}"
        run = RunDescription(model=models.names[code], benchmark=options.benchmark, condition=condition, label=label)
        yield TaskScores(run=run, metric=metric, tasks=tasks, values=T[:, row].copy())
    if reruns := {code: rows for code, rows in runs.items() if len(rows) > 1}:
        yield (
            f"{_places(table, models, reruns)} {'is' if len(reruns) == 1 else 'are'} listed with different scores: "
            "each row is stored as a run, and analyses use the last run of a model (choose with --runs)"
        )
    if repeated:
        yield f"skipped duplicate rows of models: {_places(table, models, repeated)}"


def _places(table: FileTable, models: Codes, stand: Mapping[int, Sequence[int]]) -> str:
    """Return the models and the rows in which they occur."""
    places = (f"{models.names[code]!r} ({', '.join(table.place(row) for row in rows)})" for code, rows in stand.items())
    return join_names(places, MAX_NAMES, noun="more models")


def _candidates(top: TableHead, model: str) -> list[str]:
    candidates = []
    for name in top.names:
        cells = [cell for cell in top.column(name) if not is_missing(cell)]
        if (
            name != model
            and not is_row_number(name)
            and normalize_heading(name) not in SUMMARIES
            and any(map(is_number, cells))
        ):
            candidates.append(name)
    return candidates


def _task_columns(table: FileTable, model: str) -> tuple[list[str], list[str]]:
    """Return the columns with numbers and the others; summaries of the row are excluded."""
    tasks: list[str] = []
    text_columns: list[str] = []
    for name in table.names:
        if name == model or is_row_number(name):
            continue
        cells_of_column: Sequence[str | None] = (
            [] if normalize_heading(name) in SUMMARIES else read_strings(table, name).to_pylist()
        )
        cells = [cell for cell in cells_of_column if cell is not None and not is_missing(cell)]
        (tasks if any(map(is_number, cells)) else text_columns).append(name)
    return tasks, text_columns
