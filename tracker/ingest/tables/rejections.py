"""Reasons why a table has no layout, with the fix."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tracker.ingest.files.tabular.cells import is_number, shorten
from tracker.ingest.files.tabular.number_cells import has_decimal_comma
from tracker.ingest.measurement import KnownNames, ReadOptions
from tracker.ingest.tables.evidence import CrossReading
from tracker.ingest.tables.layout import TableRejection
from tracker.ingest.tables.long_layout import NO_SCORE_COLUMN
from tracker.ingest.tables.names.column_headings import is_outcome_heading
from tracker.ingest.tables.table_columns import TableColumns
from tracker.name_lists import join_names

MAX_NAMES = 5


def reject_scores(names: Sequence[str]) -> TableRejection | None:
    """Return that columns beside prompts look like scores."""
    if not names:
        return None
    listing = join_names(map(repr, names), MAX_NAMES)
    return TableRejection(
        f"a table of prompts whose {'column' if len(names) == 1 else 'columns'} {listing} may hold scores of models. "
        "Nothing was stored.",
        "Add --orient prompts if the columns are models, --format prompt-table to keep them as details of the prompts, "
        "or --ignore-columns NAME to skip a column.",
        "prompt-table",
        0.9,
        is_final=True,
    )


def reject_unread_scores(table: TableColumns, used: Collection[str]) -> TableRejection | None:
    """Return that a column holds numbers in a notation that is not read; None if there is no such column."""
    unused = (column for name, column in table.columns.items() if name not in used)
    column = next((column for column in unused if column.looks_like_scores()), None)
    if column is None:
        return None
    cell = column.cells[0]
    form = "decimals with a point" if has_decimal_comma(cell) else "one number per cell, such as 71.2 or 71.2 ± 0.3"
    return TableRejection(
        f"column {column.name!r} has {shorten(cell, 20)!r}, which is not a number. Nothing was stored.",
        f"Write {form}, or skip the column: {shlex.join(['--ignore-columns', column.name])}",
        "leaderboard-table",
        0.9,
        is_final=True,
    )


def reject_flags(path: Path, names: Sequence[str], values: Sequence[str]) -> TableRejection:
    """Return that columns of 0 and 1 beside scores are flags of the models, or tasks.

    Args:
        path: the file, for the commands.
        names: the columns.
        values: all columns of scores.
    """
    listing = join_names(map(repr, names), MAX_NAMES)
    verb = "hold" if len(names) > 1 else "holds"
    return TableRejection(
        f"{listing} {verb} 0 and 1 beside other scores: flags of the models, or tasks. Nothing was stored.",
        advise_columns(path, "flags", names, values),
        "leaderboard-table",
        0.9,
        is_final=True,
    )


def advise_columns(path: Path, noun: str, names: Sequence[str], values: Sequence[str]) -> str:
    """Return the command that skips columns, and the one that stores them as tasks.

    Args:
        path: the file.
        noun: what the columns are if they are no tasks.
        names: the columns.
        values: all columns of scores.
    """
    command = ["suffrage", "ingest", str(path)]
    skip = shlex.join(command + [part for name in names for part in ("--ignore-columns", name)])
    store = shlex.join(command + [part for name in values[:MAX_NAMES] for part in ("--task-columns", name)])
    more = f" … (and the {len(values) - MAX_NAMES} other tasks)" if len(values) > MAX_NAMES else ""
    return f"Choose a reading:\n  {noun}: {skip}\n  tasks: {store}{more}"


def explain_unnamed_model(table: TableColumns, best: CrossReading, known: KnownNames | None) -> TableRejection | None:
    """Return that the scores of one model lack its name, if the only column of scores is not named like a model."""
    if best.orientation not in ("prompts", "tasks") or len(best.values) != 1:
        return None
    score = best.values[0]
    heading = table.columns[score].heading
    is_score = score == table.roles.get("score")
    if not is_score and (not is_outcome_heading(heading) or (known is not None and known.kind(heading) == "model")):
        return None
    if score in table.explicit.values() or (is_score and best.orientation == "tasks"):
        return TableRejection("no column model", "Name the model with --model NAME.", "task-score-table", 2 / 3)
    option = "" if is_score else f" {shlex.join(['--map', f'score={score}'])}"
    model = "" if is_score else f" If {score!r} is the model, add --orient {best.orientation}."
    return TableRejection(
        f"no column model: {score!r} holds the scores of one model, which has no name.",
        f"Name the model with --model NAME{option}.{model}",
        "long-table",
        2 / 3,
        is_final=True,
    )


def explain_long(table: TableColumns, options: ReadOptions, format: str) -> TableRejection:
    """Return which column a table of single scores lacks."""
    roles = table.roles
    has_score = any(part in roles for part in ("score", "predicted", "gold_probability"))
    features = [("model" in roles or bool(options.model), "no column model")]
    if format == "long-table":
        features += [
            ("prompt" in roles or "text" in roles, "no column prompt_id or text"),
            (has_score, NO_SCORE_COLUMN),
        ]
    else:
        features += [("task" in roles, "no column task"), ("score" in roles, "no column score")]
    missing = next((reason for present, reason in features if not present), "each row is another model")
    advice = "Name the columns with --map FIELD=COLUMN, such as --map model=NAME."
    return TableRejection(missing, advice, format, min(0.9, sum(present for present, _ in features) / len(features)))


def explain_lines(table: TableColumns, options: ReadOptions) -> TableRejection:
    """Return which field JSON Lines lack."""
    explained = explain_long(table, options, "long-table")
    problem = explained.problem.replace("column", "field")
    return TableRejection(problem, explained.advice, "long-table", explained.similarity)


def explain_cross(table: TableColumns, options: ReadOptions) -> TableRejection:
    """Return why a table has no reading: no column of numbers, or nothing that names the rows."""
    unread = reject_unread_scores(table, ()) if len(table.columns) > 1 else None
    if unread is not None:
        return unread
    roles: Mapping[str, str] = table.roles
    long = explain_long(table, options, "long-table")
    if long.similarity >= 0.5 and ("model" in roles or options.model):
        return TableRejection(long.problem, long.advice, long.format, long.similarity)
    task = explain_long(table, options, "task-score-table")
    if task.similarity >= 0.5:
        return TableRejection(task.problem, task.advice, task.format, task.similarity)
    columns = (column for name, column in table.columns.items() if name not in roles.values() and column.cells)
    column = next(columns, None)
    if column is None:
        return TableRejection("no column is left for the models", format="wide-table", similarity=1 / 3)
    example = f"{column.name!r} has {shorten(column.cells[0], 20)!r}"
    if any(map(is_number, column.cells)) or "model" in roles:
        text = "no column of numbers beside the models"
        return TableRejection(text, format="leaderboard-table", similarity=1 / 2)
    text = f"no column holds numbers: {example}; if these are answers, add --values predictions"
    return TableRejection(text, format="wide-table", similarity=2 / 3)
