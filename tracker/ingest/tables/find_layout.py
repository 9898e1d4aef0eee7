"""Search for the layout of a table file."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.files.tabular.headings import CONTENT, is_row_number, normalize_heading
from tracker.ingest.files.tabular.json_lines import is_json_lines, read_rows_head
from tracker.ingest.files.tabular.table_head import TableHead
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.tables.ambiguity import reject_ambiguous
from tracker.ingest.tables.evidence import CONTRADICTION, MARGIN, CrossReading, CrossReadings
from tracker.ingest.tables.layout import FORMATS, Orientation, TableLayout, TableRejection
from tracker.ingest.tables.long_layout import LongTable
from tracker.ingest.tables.names.column_headings import is_side_heading, stderr_stem
from tracker.ingest.tables.names.name_shapes import name_kind
from tracker.ingest.tables.names.vocabulary import PROMPT_DETAILS
from tracker.ingest.tables.rejections import (
    explain_cross,
    explain_lines,
    explain_long,
    explain_unnamed_model,
    reject_flags,
    reject_scores,
    reject_unread_scores,
)
from tracker.ingest.tables.scores.flags import find_flags
from tracker.ingest.tables.table_columns import ColumnError, ColumnRole, TableColumns, profile_columns
from tracker.ingest.tables.unsupported_tables import find_vote_columns, find_weight_columns
from tracker.name_lists import join_names

LONG_FORMATS = ("long-table", "task-score-table")
MAX_READINGS = 3
MAX_NAMES = 3
KEPT_ROLES: Mapping[Orientation, Sequence[str]] = {
    "prompts": ("task", "benchmark", "text", "choices", "answer", "split"),
    "models": ("few_shot", "variant", "condition", "run"),
    "leaderboard": ("benchmark", "metric", "split", "few_shot", "variant", "condition", "run"),
    "tasks": ("metric", "n_prompts", "split"),
}
"""Roles of further columns that each kind of table has."""


def find_layout(path: Path, options: ReadOptions, format: str | None = None) -> TableLayout | TableRejection | str:
    """Return the layout of a table, or why it has none.

    Args:
        path: the file.
        options: how to read it.
        format: name of the format that reads it; None to detect it.

    Returns:
        A text if the file is no table at all.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        return f"cannot be opened: {error.strerror or error}"
    key = json.dumps(options.as_json(), sort_keys=True)
    return _find(path, _OptionsKey(key, options), format, status.st_mtime_ns, status.st_size)


def mismatch_reason(path: Path, options: ReadOptions, format: str) -> str | None:
    """Return why a file is not a table of a format; None if it is."""
    layout = find_layout(path, options)
    if isinstance(layout, str):
        return layout
    if isinstance(layout, TableLayout):
        return None if layout.format == format else f"it is a {layout.format}"
    return Mismatch(layout.problem, layout.similarity) if layout.format == format else layout.problem


def find_rejection(path: Path, options: ReadOptions) -> TableRejection | None:
    """Return why a table of results cannot be read without a decision by the user; None if it is no such table."""
    layout = find_layout(path, options)
    return layout if isinstance(layout, TableRejection) and layout.is_final else None


class _OptionsKey:
    """Options that are equal if they read files in the same way."""

    def __init__(self, key: str, options: ReadOptions) -> None:
        self.key, self.options = (key, id(options.known_names)), options

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, second: object) -> bool:
        return isinstance(second, _OptionsKey) and self.key == second.key


@lru_cache(maxsize=32)
def _find(
    path: Path, options: _OptionsKey, format: str | None, _changed: int, _size: int
) -> TableLayout | TableRejection | str:
    head = read_rows_head(path)
    return head if isinstance(head, str) else classify_table(path, head, options.options, format)


def classify_table(
    path: Path, head: TableHead, options: ReadOptions, format: str | None = None
) -> TableLayout | TableRejection:
    """Return the layout of a table, by its first rows.

    Args:
        path: the file, for messages.
        head: its first rows.
        options: how to read it.
        format: name of the format that reads it; None to detect it.
    """
    if (votes := find_vote_columns(head.names)) and not options.columns and format is None:
        return TableRejection(
            f"holds pairwise votes ({', '.join(votes)}); battles cannot be imported yet.", is_final=True
        )
    if (weights := find_weight_columns(head.names)) and not options.columns and not options.task_columns:
        return TableRejection(
            f"holds weights of a regression ({join_names(weights, MAX_NAMES)}), not scores.",
            "Ingest the table of scores, such as *_leaderboard.csv of AlpacaEval. If these are scores, name them with "
            "--task-columns NAME.",
            is_final=True,
        )
    try:
        table = profile_columns(head, options, is_json=is_json_lines(path))
    except ColumnError as error:
        return TableRejection(str(error), is_final=True)
    if format in (None, *LONG_FORMATS) and options.orient is None and not options.task_columns:
        layout = LongTable(table, options).find()
        if isinstance(layout, TableRejection) and (format is not None or not is_json_lines(path)):
            return replace(layout, advice=_list_commands(path, layout.advice))
        if isinstance(layout, TableLayout) and format in (None, layout.format):
            return layout
    if format in LONG_FORMATS:
        return explain_long(table, options, format)
    if format in (None, "prompt-table"):
        prompts = _find_prompts(path, table, options, is_forced=format is not None)
        if prompts is not None:
            return prompts
    if is_json_lines(path):
        return explain_lines(table, options)
    return _find_cross(path, table, options, format)


def _list_commands(path: Path, options: str) -> str:
    """Return the command of each line of options."""
    file = shlex.quote(str(path))
    return "\n".join(["Choose one:", *(f"  suffrage ingest {file} {line}" for line in options.splitlines())])


def _find_cross(
    path: Path, table: TableColumns, options: ReadOptions, format: str | None
) -> TableLayout | TableRejection:
    takes_texts = options.values == "predictions"
    orientations = _orientations(table, options, format)
    known = CrossReadings(table, options.known_names, takes_texts)
    readings = known.rank(orientations)
    if not readings:
        return explain_cross(table, options)
    best = readings[0]
    if len(orientations) > 1 and not takes_texts:
        unnamed = explain_unnamed_model(table, best, options.known_names)
        if unnamed is not None:
            return unnamed
        nearest: dict[Orientation, CrossReading] = {}
        for reading in readings:
            nearest.setdefault(reading.orientation, reading)
        alternatives = [reading for reading in nearest.values() if reading.orientation != best.orientation]
        rivals = [reading for reading in alternatives if reading.evidence > best.evidence - MARGIN]
        if best.orientation == "models" and len(best.values) == 1 and name_kind(best.values[0]) != "prompt":
            # The column may be a flag of each model, not a prompt.
            rivals = [reading for reading in alternatives if reading.orientation == "leaderboard"]
        if best.contradiction <= CONTRADICTION and best.evidence < 2 * -CONTRADICTION:
            rivals = rivals or alternatives[:1]
            return reject_ambiguous(path, table, [best, *rivals])
        if rivals:
            return reject_ambiguous(path, table, [best, *rivals][:MAX_READINGS])
    if not takes_texts and not any(column.is_explicit for column in table.columns.values()):
        unread = reject_unread_scores(table, {best.key, *best.values, *table.roles.values()})
        if unread is not None:
            return unread
    if best.orientation == "leaderboard" and not takes_texts:
        flags = find_flags(table, best.values, options.known_names)
        if flags.unclear:
            return reject_flags(path, flags.unclear, best.values)
        best = replace(best, values=[name for name in best.values if name not in flags.certain])
    return _cross_layout(table, best, takes_texts=takes_texts)


def _orientations(table: TableColumns, options: ReadOptions, format: str | None) -> list[Orientation]:
    """Return the orientations that the options leave open."""
    allowed: list[Orientation] = ["prompts", "leaderboard", "models", "tasks"]
    if options.values == "predictions":
        return ["models" if options.orient == "models" else "prompts"]
    if options.orient is not None:
        return [orientation for orientation in allowed if orientation == options.orient]
    if format is not None:
        allowed = [orientation for orientation in allowed if FORMATS[orientation] == format]
    if options.task_columns:
        return [orientation for orientation in allowed if orientation == "leaderboard"]
    return allowed if format != "leaderboard-table" or "task" in table.explicit else ["leaderboard"]


def _cross_layout(table: TableColumns, reading: CrossReading, *, takes_texts: bool) -> TableLayout:
    """Return the layout of a chosen reading, with a use for each further column."""
    roles = dict(table.roles)
    part = {"prompts": "prompt", "tasks": "task"}.get(reading.orientation, "model")
    if not (part == "prompt" and roles.get("text") == reading.key):
        roles = {role: name for role, name in roles.items() if name != reading.key} | {part: reading.key}
    values = list(reading.values)
    stderr = _find_stderr(table, values) if reading.orientation == "leaderboard" else {}
    used = {reading.key, *values, *stderr.values()}
    kept = KEPT_ROLES[reading.orientation]
    used.discard(roles.get("text", "") if part == "prompt" else "")
    roles = {role: name for role, name in roles.items() if role == part or (role in kept and name not in used)}
    used.add(reading.key)
    rest = [name for name in table.columns if name not in used and name not in roles.values()]
    details: list[str] = []
    skipped: list[str] = []
    for name in rest:
        column = table.columns[name]
        is_detail = bool(column.cells) and column.role not in (ColumnRole.SUMMARY, ColumnRole.ROW_NUMBER)
        (details if is_detail and reading.orientation != "tasks" and not takes_texts else skipped).append(name)
    return TableLayout(
        format=FORMATS[reading.orientation],
        orientation=reading.orientation,
        roles=roles,
        key=reading.key,
        values=values,
        details=details,
        stderr=stderr,
        skipped=[name for name in skipped if not is_row_number(name) or table.columns[name].cells],
    )


def _find_stderr(table: TableColumns, values: Sequence[str]) -> dict[str, str]:
    """Return the column of standard errors of each column of scores."""
    headings = {table.columns[name].heading.casefold(): name for name in values}
    found_columns: dict[str, str] = {}
    before, scores = "", set(values)
    for name, column in table.columns.items():
        if name in scores:
            before = name
        elif column.role == ColumnRole.STDERR:
            stem = stderr_stem(column.heading)
            target = headings.get(stem.casefold(), "") if stem else before
            if target and target not in found_columns:
                found_columns[target] = name
    return found_columns


def _find_prompts(
    path: Path, table: TableColumns, options: ReadOptions, *, is_forced: bool
) -> TableLayout | TableRejection | None:
    """Return the layout of a table of prompts; None if it holds results."""
    roles = dict(table.roles)
    if "text" not in roles and "prompt" in roles and normalize_heading(roles["prompt"]) == "prompt":
        roles["text"] = roles.pop("prompt")
    if "prompt" not in roles and "text" not in roles:
        return TableRejection("no column prompt_id or text.", format="prompt-table") if is_forced else None
    known = {roles[part] for part in ("prompt", *CONTENT) if part in roles}
    further = [name for name in table.columns if name not in known and not is_row_number(name)]
    layout = TableLayout(format="prompt-table", orientation="prompts", roles=roles, details=further)
    if is_forced:
        return layout
    if any(part in roles for part in ("model", "score", "predicted")) or options.orient is not None:
        return None
    if (options.values == "predictions" and "text" not in roles) or options.task_columns:
        return None
    has_content = "choices" in roles or "answer" in roles
    if is_json_lines(path) and not (has_content and "text" in roles):
        return None
    columns = [table.columns[name] for name in further]
    numbers = [column for column in columns if column.share_of_numbers >= 0.5]
    like_scores = [
        column for column in numbers
        if normalize_heading(column.heading) not in PROMPT_DETAILS and not is_side_heading(column.heading)
    ]  # fmt: skip
    models = [column.name for column in like_scores if name_kind(column.heading) == "model"]
    if models:
        return None
    if has_content or "text" in roles:
        if not has_content and len(like_scores) > 1 and len(like_scores) == len(columns):
            return None
        return reject_scores([column.name for column in like_scores]) or layout
    return layout if ("task" in roles or "split" in roles) and not numbers else None
