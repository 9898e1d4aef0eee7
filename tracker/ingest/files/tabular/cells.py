"""Cells of table columns as numbers, names, texts and codes; invalid cells are reported with their place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.number_cells import MAYBE_NUMBER, has_decimal_comma, parse_number_cell
from tracker.ingest.files.tabular.table import FileTable, TableProblems
from tracker.ingest.measurement import MetricDescription
from tracker.schema.measurements import CONDITIONS

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = ("", "na", "n/a", "n.a.", "<na>", "#n/a", "null", "none", "-", "--", "–", "—", "−", "?", "tbd", "tba", "n/r")
MANY_COLUMNS = 100
WHOLE = 2.0**53
"""Floats from here on cannot represent every integer."""
DIGITS = re.compile(r"[+-]?\d+(?:\.0*)?")
"""A whole number that is written with all of its digits."""
NOT_FINITE = "is not a finite number; leave the cell empty if there is no score"


@dataclass(frozen=True, eq=False)
class Codes:
    """A column of names encoded as integers.

    Attributes:
        rows: ``(n,)`` int64, index of each row's name in ``names``.
        names: distinct names; '' for an empty cell.
    """

    rows: NDArray[np.int64]
    names: list[str]

    def names_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the names in some rows."""
        return [self.names[code] for code in self.rows[rows].tolist()]


def is_missing(cell: str | None) -> bool:
    """Return whether a cell is missing: empty, a dash, NA, null, None, TBD or ?, in any letter case."""
    return cell is None or cell.strip().lower() in MISSING


def is_number(cell: str) -> bool:
    """Return whether a cell is a number or a boolean, in any notation; so are NaN and infinity."""
    if MAYBE_NUMBER.match(cell) is None:
        return False
    try:
        float(cell)
    except ValueError:
        return parse_number_cell(cell) is not None
    return True


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers, as written.

    Attributes:
        values: ``(n,)`` float64, NaN for missing cells; 71.2 for ``71.2%``.
        stderr: ``(n,)`` numbers after ±, NaN without; None if no cell has one.
        percent: ``(n,)`` whether a percent sign follows the number; None if no cell has one.
    """

    values: NDArray[np.float64]
    stderr: NDArray[np.float64] | None = None
    percent: NDArray[np.bool_] | None = None


def parse_numbers(table: FileTable, name: str, problems: TableProblems) -> NDArray[np.float64]:
    """Return a column as ``(n,)`` float64, with NaN for missing cells.

    Other values that are not finite numbers are reported, including NaN and infinity, and numbers with percent signs or
    standard errors.
    """
    column = parse_number_column(table, name, problems)
    for cells, text in ((column.percent, "a percentage"), (column.stderr, "a number with ±")):
        if cells is not None and (rows := np.flatnonzero(cells if cells.dtype == bool else ~np.isnan(cells))).size:
            problems.add(rows, name, [f"is {text}; write a plain number"])
    return column.values


def parse_number_column(table: FileTable, name: str, problems: TableProblems) -> NumberColumn:
    """Return a column of numbers in any notation.

    Other values that are not finite numbers are reported, including NaN and infinity.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.arrow[name]
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _numbers_of_texts(table, name, problems)
    if pa.types.is_null(kind):
        return NumberColumn(np.full(len(table), np.nan))
    measured = column.is_valid().to_numpy()
    if not (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    ):
        problems.add(np.flatnonzero(measured), name, [f"a {kind} is not a number"])
        return NumberColumn(np.full(len(table), np.nan))
    values = _float64(pc.cast(column, pa.float64(), safe=False))
    wrong = np.flatnonzero(measured & ~np.isfinite(values))
    if len(wrong):
        problems.add(wrong, name, [f"{values[row]} {NOT_FINITE}" for row in wrong[: BadInputError.MAX_LISTED]])
        values[wrong] = np.nan
    if not pa.types.is_floating(kind):
        _check_digits(table, name, values, problems)
    return NumberColumn(values)


def parse_number_columns(table: FileTable, names: Sequence[str], problems: TableProblems) -> list[NumberColumn]:
    """Return several columns of numbers; many columns of plain numbers are parsed at once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = {name: number for number, name in enumerate(table.names)}
    columns = [table.arrow.column(place[name]) for name in names]
    if len(names) > MANY_COLUMNS and len({column.type for column in columns}) == 1:
        kind = columns[0].type
        if pa.types.is_large_string(kind) or pa.types.is_string(kind):
            joined = pa.chunked_array([chunk for column in columns for chunk in column.chunks], kind)
            try:
                values = _float64(pc.cast(joined, pa.float64())).reshape(len(names), len(table))
            except pa.ArrowInvalid:
                values = np.full((1, 1), np.nan)
            if np.isfinite(values).sum() + joined.null_count == len(joined) and not (np.abs(values) >= WHOLE).any():
                return [NumberColumn(row) for row in values]
    return [parse_number_column(table, name, problems) for name in names]


def _numbers_of_texts(table: FileTable, name: str, problems: TableProblems) -> NumberColumn:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.arrow[name]
    try:
        values = _float64(pc.cast(column, pa.float64()))
        if np.isfinite(values).sum() + column.null_count == len(values):
            _check_digits(table, name, values, problems)
            return NumberColumn(values)
    except pa.ArrowInvalid:
        pass
    coded = factorize(table, name, trim=False)
    parsed = np.full((2, len(coded.names)), np.nan)
    percent = np.zeros(len(coded.names), dtype=bool)
    reasons: dict[int, str] = {}
    has_commas = table.delimiter == ";" or any(map(has_decimal_comma, coded.names))
    for place, cell in enumerate(coded.names):
        if is_missing(cell):
            continue
        number = parse_number_cell(cell)
        if number is None:
            reasons[place] = f"{shorten(cell)!r} {_describe_invalid(cell)}"
        elif has_commas and "," in cell:
            reasons[place] = f"{shorten(cell)!r} has a comma; write decimals with a point, and no thousands separators"
        else:
            parsed[:, place] = number.value, number.stderr
            percent[place] = number.is_percent
    if reasons:
        wrong = np.flatnonzero(np.isin(coded.rows, list(reasons)))
        problems.add(wrong, name, [reasons[coded.rows[row]] for row in wrong[: BadInputError.MAX_LISTED]])
    values, stderr = parsed[:, coded.rows]
    _check_digits(table, name, values, problems)
    return NumberColumn(
        values, None if np.isnan(stderr).all() else stderr, percent[coded.rows] if percent.any() else None
    )


def _describe_invalid(cell: str) -> str:
    try:
        return "is not a number" if "_" in cell or math.isfinite(float(cell)) else NOT_FINITE
    except ValueError:
        return "is not a number"


def _check_digits(table: FileTable, name: str, values: NDArray[np.float64], problems: TableProblems) -> None:
    """Report integers with more digits than a float keeps."""
    column = table.arrow[name]
    wrong = []
    for row in np.flatnonzero(np.abs(values) >= WHOLE).tolist():
        written = column[row].as_py()
        digits = re.sub(r"[,\s]", "", str(written))
        if DIGITS.fullmatch(digits) and int(float(values[row])) != Decimal(digits):
            wrong.append(row)
    if wrong:
        first = wrong[: BadInputError.MAX_LISTED]
        texts = [f"{column[row].as_py()} has too many digits for a 64-bit float" for row in first]
        problems.add(np.array(wrong), name, texts)
        values[wrong] = np.nan


def parse_whole_numbers(table: FileTable, name: str, problems: TableProblems, *, noun: str) -> NDArray[np.int64]:
    """Return a column of counts as ``(n,)`` int64, -1 for missing cells; report negative numbers and fractions."""
    values = parse_numbers(table, name, problems)
    wrong = np.flatnonzero((values < 0) | (values != np.floor(values)) & ~np.isnan(values) | (values > 2**53))
    if len(wrong):
        texts = [
            f"{values[row]:g} is not a {noun}: use a whole number, 0 or larger"
            for row in wrong[: BadInputError.MAX_LISTED]
        ]
        problems.add(wrong, name, texts)
        values[wrong] = np.nan
    return np.nan_to_num(values, nan=-1).astype(np.int64)


def check_bounds(values: NDArray[np.float64], metric: MetricDescription, name: str, problems: TableProblems,
                 rows: NDArray[np.int64] | None = None) -> None:  # fmt: skip
    """Report values outside the metric's bounds; ``rows`` are their rows, by default all."""
    low = -math.inf if metric.lower is None else metric.lower
    high = math.inf if metric.upper is None else metric.upper
    wrong = np.flatnonzero((values < low) | (values > high))
    if len(wrong):
        bounds = f"outside [{low:g}, {high:g}], the bounds of {metric.name!r}"
        texts = [f"{values[at]:g} is {bounds}" for at in wrong[: BadInputError.MAX_LISTED]]
        problems.add(wrong if rows is None else rows[wrong], name, texts)


def read_strings(table: FileTable, name: str, *, trim: bool = True) -> pa.Array:
    """Return a column as texts, null for empty cells; integers stored as 70.0 become '70'."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.arrow[name]
    kind = column.type
    if pa.types.is_floating(kind):
        values = _float64(pc.cast(column, pa.float64(), safe=False))
        measured = values[~np.isnan(values)]
        if np.array_equal(measured, np.floor(measured)) and np.all(np.abs(measured) < 2**53):
            column = pc.cast(column, pa.int64(), safe=False)
            if len(measured) < len(values):
                column = pc.if_else(pa.array(np.isnan(values)), None, column)
    elif pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        column = pa.chunked_array(
            [
                [
                    None if cell is None else json.dumps(cell, ensure_ascii=False, default=str)
                    for cell in column.to_pylist()
                ]
            ],
            pa.large_string(),
        )
    column = pc.cast(column, pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if trim:
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(column, ""), None, column)
    return column


def read_names(table: FileTable, name: str, *, trim: bool = True) -> pa.Array:
    """Return a column of names as texts, null for empty cells.

    Raises:
        BadInputError: the names are floats from 2^53 on, where different whole numbers may be one float.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.arrow[name]
    if pa.types.is_floating(column.type):
        rows = np.flatnonzero(np.abs(_float64(pc.cast(column, pa.float64(), safe=False))) >= WHOLE)
        if len(rows):
            row = int(rows[0])
            raise BadInputError(
                table.path,
                f"{table.place(row)}, column {name!r}: {column[row].as_py():.0f} is a float, which cannot represent "
                "every whole number of this size, so different names may be equal.",
                advice="Store the column as integers or texts.",
            )
    return read_strings(table, name, trim=trim)


def factorize(table: FileTable, name: str, *, trim: bool = True) -> Codes:
    """Return a column of names encoded as integers."""
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(pc.fill_null(read_names(table, name, trim=trim), ""))
    return Codes(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist())


def parse_choices(cell: str) -> list[str] | None:
    """Return the options in a cell; None if it is not a JSON list of texts."""
    try:
        options = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    if not isinstance(options, list) or any(isinstance(option, (list, dict)) or option is None for option in options):
        return None
    return [str(option).strip() for option in options]


def compress_codes(rows: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Renumber integers below ``size`` from 0 without gaps, in the same order.

    Returns:
        New number of each row, and first row of each new number.
    """
    if size > 8 * len(rows) + 1024:
        _, first, renumbered = np.unique(rows, return_index=True, return_inverse=True)
        return renumbered.astype(np.int64).ravel(), first.astype(np.int64)
    first_row = np.full(size, -1, dtype=np.int64)
    first_row[rows[::-1]] = np.arange(len(rows) - 1, -1, -1)
    used = first_row >= 0
    return (np.cumsum(used) - 1)[rows], first_row[used]


def parse_condition(word: str) -> str | None:
    """Return the condition that a cell names; None if it is unknown."""
    plain = word.strip().lower().replace("-", "_").replace(" ", "_")
    plain = {"": "full", "choices_only": "answer_only", "answers_only": "answer_only"}.get(plain, plain)
    return plain if plain in CONDITIONS else None


def shorten(text: str, width: int = 60) -> str:
    """Return a text cut to a length that fits a message."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _float64(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.array(column.to_numpy(), dtype=np.float64)
