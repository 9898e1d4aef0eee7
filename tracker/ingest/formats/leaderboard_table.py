"""CSV or Parquet leaderboard: one row per model, one column of scores per task; or one row per task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import Codes, factorize
from tracker.ingest.files.tabular.run_rows import parse_runs
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.ingest.measurement import Measurement, ReadOptions, RunDescription, TaskScores
from tracker.ingest.tables import find_layout
from tracker.ingest.tables.layout import TableLayout
from tracker.ingest.tables.model_details import clean_model_name, name_variants, read_model_details
from tracker.ingest.tables.names.column_headings import clean_heading, mentions_summary
from tracker.ingest.tables.read_layout import describe_layout, require_layout, warn_of_columns
from tracker.ingest.tables.scores.task_matrix import TaskScoreMatrix, drop_averages, read_task_matrix
from tracker.ingest.tables.table_rows import (
    describe_rows,
    drop_settings,
    drop_side_rows,
    drop_summaries,
    drop_titles,
    select_splits,
)
from tracker.name_lists import join_names

NAME = "leaderboard-table"
SPECIFICITY = 10
RECOGNIZED_BY = "a column that names models; the other columns are tasks"
SUPPORTS_SPLITS = True
READS_COLUMNS = True
REPORTS_SCORES = False
MAX_NAMES = 5


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a leaderboard."""
    return find_layout.mismatch_reason(path, options, NAME)


def describe_reading(path: Path, options: ReadOptions) -> str | None:
    """Return what the rows and columns of the file are."""
    return describe_layout(path, options, NAME)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a block per model and metric: one model on all tasks."""
    layout = require_layout(path, options, NAME)
    if options.model:
        raise BadInputError(path, "holds several models; --model applies to files with a single model.")
    table = select_splits(read_table(path), layout.roles, options, is_single=True)
    table, settings = drop_settings(table, layout.values)
    if settings:
        yield f"skipped rows with settings instead of scores: {join_names(settings, MAX_NAMES)}"
    table, summaries = drop_summaries(table, layout.key)
    yield from warn_of_columns(layout)
    sides: list[str] = []
    if layout.orientation == "tasks":
        table, of_parts, sides = drop_side_rows(table, layout.key)
        summaries += of_parts
    if summaries:
        yield f"skipped rows that summarize the others: {describe_rows(summaries)}"
    if sides:
        yield f"skipped rows that describe the models: {describe_rows(sides)}"
    if layout.orientation == "tasks":
        yield from _models_in_columns(table, layout, options, beside=[*summaries, *sides])
    else:
        yield from _models_in_rows(table, layout, options)


def _read_models(
    table: FileTable, layout: TableLayout, options: ReadOptions
) -> tuple[FileTable, TaskScoreMatrix, TableProblems, list[str]]:
    """Return the rows of models, their scores, the problems, and messages about what was skipped or renamed."""
    messages: list[str] = []
    problems = TableProblems(table)
    matrix = read_task_matrix(table, layout, options, problems)
    if problems.count:
        return table, matrix, problems, messages
    if not options.task_columns:
        matrix, averages = drop_averages(table.path, matrix)
        if averages:
            names = join_names(map(repr, averages), MAX_NAMES)
            messages.append(f"skipped {names}: averages of other columns (--task-columns stores them too)")
        mentioned = [name for name in matrix.names if mentions_summary(name)]
        if mentioned and len(mentioned) < len(matrix.names):
            names = join_names(map(repr, mentioned), MAX_NAMES)
            kind = "named like averages, but no means of other columns (--ignore-columns skips them)"
            messages.append(f"stored {names}: {kind}")
    has_scores = np.asarray(np.isfinite(matrix.T).any(axis=0), dtype=bool)
    if has_scores.any() and not has_scores.all():
        table, titles = drop_titles(table, layout.key, has_scores)
        matrix = matrix.of_rows(has_scores)
        messages.append(f"skipped rows without scores: {describe_rows(titles)}")
    if not {"run", "variant", "metric", "benchmark", "few_shot"} & layout.roles.keys():
        table, column, variants = name_variants(table, layout.key, layout.details)
        if variants:
            names = describe_rows(variants)
            messages.append(f"several rows have one name; {column!r} distinguishes these models: {names}")
    return table, matrix, TableProblems(table), messages


def _models_in_rows(table: FileTable, layout: TableLayout, options: ReadOptions) -> Iterator[Measurement | str]:
    table, matrix, problems, messages = _read_models(table, layout, options)
    yield from messages
    models = factorize(table, layout.key)
    described = parse_runs(table, {**layout.roles, "model": layout.key}, options, problems)
    problems.check()
    facts, details = read_model_details(table, layout.details)
    runs: dict[tuple[int, int], list[int]] = {}
    repeated: dict[int, list[int]] = {}
    for row, code in enumerate(described.rows.tolist()):
        earlier = runs.setdefault((code, int(matrix.metric_of_row[row])), [])
        if any(np.array_equal(matrix.T[:, row], matrix.T[:, before], equal_nan=True) for before in earlier):
            repeated.setdefault(int(models.rows[row]), []).append(row)
            continue
        earlier.append(row)
        run = described.described[code]
        label = run.label if len(earlier) == 1 else f"{run.label} entry {len(earlier)}".strip()
        run = replace(
            run, model=clean_model_name(run.model), label=label, model_facts=facts[row], settings=details[row]
        )
        yield matrix.scores_of(row, run)
    several = {code: rows for (code, _), rows in runs.items() if len(rows) > 1}
    if reruns := {int(models.rows[rows[0]]): rows for rows in several.values()}:
        yield (
            f"{_places(table, models, reruns)} {'is' if len(reruns) == 1 else 'are'} listed with different scores: "
            "each row is stored as a run, and analyses use the last run of a model (choose with --runs)"
        )
    if repeated:
        yield f"skipped duplicate rows of models: {_places(table, models, repeated)}"


def _models_in_columns(
    table: FileTable, layout: TableLayout, options: ReadOptions, *, beside: Sequence[str]
) -> Iterator[Measurement | str]:
    problems = TableProblems(table)
    matrix = read_task_matrix(table, layout, options, problems, beside=beside)
    tasks = factorize(table, layout.key)
    if "" in tasks.names:
        problems.add(np.flatnonzero(tasks.rows == tasks.names.index("")), layout.key, ["the task has no name"])
    identity = list(zip(tasks.rows.tolist(), matrix.metric_of_row.tolist(), strict=True))
    first = {cell: row for row, cell in reversed(list(enumerate(identity)))}
    wrong = [row for row, cell in enumerate(identity) if first[cell] < row]
    problems.add(wrong, layout.key, ["the task is in an earlier row too; use --map metric=COLUMN if metrics differ"])
    problems.check()
    names = [clean_heading(tasks.names[code]) for code in tasks.rows]
    for place, model in enumerate(layout.values):
        run = RunDescription(
            model=clean_model_name(model), benchmark=options.benchmark, condition=options.condition_of_runs
        )
        for number in range(len(matrix.metrics)):
            rows = np.flatnonzero(matrix.metric_of_row == number)
            values = matrix.T[place, rows]
            if np.isnan(values).all():
                continue
            yield TaskScores(
                run=run,
                metric=matrix.metrics[number],
                tasks=[names[row] for row in rows],
                values=values,
                stderr=None if matrix.stderr is None else matrix.stderr[place, rows],
                n_prompts=None if matrix.n_prompts is None else [matrix.n_prompts[row] for row in rows.tolist()],
            )


def _places(table: FileTable, models: Codes, stand: Mapping[int, Sequence[int]]) -> str:
    """Return the models and the rows in which they occur."""
    places = (f"{models.names[code]!r} ({', '.join(table.place(row) for row in rows)})" for code, rows in stand.items())
    return join_names(places, MAX_NAMES, noun="more models")
