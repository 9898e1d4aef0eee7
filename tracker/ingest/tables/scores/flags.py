"""Columns of 0 and 1 beside columns of scores: flags of the models, such as whether the weights are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.ingest.files.tabular.number_cells import parse_number_cell
from tracker.ingest.measurement import KnownNames
from tracker.ingest.tables.names.name_shapes import name_kind, number_stem
from tracker.ingest.tables.table_columns import ColumnRole, TableColumn, TableColumns

MAX_FLAG, MAX_UNCLEAR = 1e-4, 0.02
"""Chances that each cell of a task is 0 or 1: below the first, the column is a flag; below the second, it may be."""
MAX_NOTATIONS = 8


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Columns of 0 and 1 beside columns of scores.

    Attributes:
        certain: columns that are flags of the models.
        unclear: columns that are flags, or tasks.
    """

    certain: Sequence[str] = ()
    unclear: Sequence[str] = ()


def find_flags(table: TableColumns, values: Sequence[str], known: KnownNames | None) -> Flags:
    """Return the columns of a leaderboard that may be flags.

    A column of 0 and 1 is a flag unless the other columns make it likely that all scores of a task are 0 or 1. Columns
    that are named like tasks are tasks, as are columns of 0 and 1 that outnumber the others.

    Args:
        table: the columns.
        values: the columns of scores.
        known: names in the store.
    """
    columns = [table.columns[name] for name in values if table.columns[name].role == ColumnRole.NUMBERS]
    binary = [column for column in columns if _is_binary(column)]
    scored = [column for column in columns if column not in binary]
    if not binary or len(binary) > len(scored):
        return Flags()
    n_cells = sum(len(column.cells) for column in scored)
    p = (sum(map(_count_binary, scored)) + 1) / (n_cells + 2)
    stems = {number_stem(column.heading) for column in scored} - {""}
    candidates = {
        column.name: p ** len(column.cells)
        for column in binary
        if not column.is_explicit
        and "task" not in (name_kind(column.heading), known.kind(column.heading) if known is not None else None)
        and number_stem(column.heading) not in stems
    }
    return Flags(
        certain=[name for name, chance in candidates.items() if chance < MAX_FLAG],
        unclear=[name for name, chance in candidates.items() if MAX_FLAG <= chance < MAX_UNCLEAR],
    )


def _is_binary(column: TableColumn) -> bool:
    """Return whether the cells are 0 and 1, and both occur."""
    if len(column.counts) > MAX_NOTATIONS or column.share_of_numbers < 1:
        return False
    numbers = [parse_number_cell(cell) for cell in column.counts]
    return {number.value for number in numbers if number is not None and not number.is_percent} == {0.0, 1.0} and all(
        number is not None and number.value in (0, 1) and number.stderr != number.stderr for number in numbers
    )


def _count_binary(column: TableColumn) -> int:
    return sum(
        count
        for cell, count in column.counts.items()
        if (number := parse_number_cell(cell)) is not None and number.value in (0, 1)
    )
