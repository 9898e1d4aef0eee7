"""CSV and Parquet files as one type of table: columns of text or numbers, and the place of each row.

CSV is UTF-8 with a header row; comma, semicolon or tab is detected from the header. Both may be gzipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError, first_line
from tracker.ingest.files.file_contents import (
    HEAD_BYTES,
    PARQUET,
    check_text,
    detect_delimiter,
    read_bytes,
    read_first_records,
)
from tracker.ingest.files.tabular.parquet_files import open_parquet
from tracker.settings.input_limits import current_limits, explain_limit

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table as read from a file, not interpreted yet.

    Attributes:
        path: the file.
        arrow: its columns; columns of a CSV file are texts with null for empty cells.
        csv: bytes of a CSV file after decompression; None for Parquet.
        known_lines: ``(n,)`` lines or row numbers of some rows of another table.
        counts_lines: whether these are lines.
    """

    path: Path
    arrow: pa.Table
    csv: bytes | None
    known_lines: NDArray[np.int64] | None = None
    counts_lines: bool = False

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    @cached_property
    def delimiter(self) -> str:
        """Return the delimiter of a CSV file; '' for other files."""
        return "" if self.csv is None else detect_delimiter(self.csv[:HEAD_BYTES].decode("utf-8-sig", "ignore"))

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.arrow.column_names)

    @cached_property
    def lines(self) -> NDArray[np.int64]:
        """Return the ``(n,)`` line of each row; for Parquet or unbalanced quotes, the row number from 1."""
        if self.known_lines is not None:
            return self.known_lines
        lines = self._lines
        return np.arange(1, len(self) + 1, dtype=np.int64) if lines is None else lines

    @cached_property
    def _lines(self) -> NDArray[np.int64] | None:
        if self.csv is None:
            return None
        lines = _record_lines(self.csv)[1:]
        return lines if len(lines) == len(self) else None

    @property
    def has_lines(self) -> bool:
        """Return whether rows have lines; else they are counted from 1."""
        return self.counts_lines if self.known_lines is not None else self._lines is not None

    def place(self, row: int, column: str | None = None) -> str:
        """Return the place of a row or cell, for messages."""
        word = "line" if self.has_lines else "row"
        return f"{word} {self.lines[row]}" + (f", column {column!r}" if column is not None else "")


class TableProblems:
    """Collector of problems in a table; all are counted, the first ten are kept."""

    def __init__(self, table: FileTable) -> None:
        self.table = table
        self.count = 0
        self._kept: list[tuple[int, str]] = []

    def add(self, rows: Iterable[int] | NDArray[np.int64], column: str | None, texts: Sequence[str]) -> None:
        """Add problems in rows of a column, with one text for all or one for each row; texts after the tenth are
        ignored.
        """
        row_list = [int(row) for row in rows]
        self.count += len(row_list)
        for index, row in enumerate(row_list[: BadInputError.MAX_LISTED]):
            text = texts[index if len(texts) > 1 else 0]
            self._kept.append((row, f"{self.table.place(row, column)}: {text}"))

    def check(self, advice: str = "") -> None:
        """Raise `BadInputError` if there are problems."""
        if self.count:
            texts = [text for _, text in sorted(self._kept, key=lambda kept: kept[0])]
            raise BadInputError(self.table.path, texts, count=self.count, advice=advice)


def read_table(path: Path) -> FileTable:
    """Read a CSV or Parquet file, gzipped or not.

    Raises:
        BadInputError: the file is unreadable or empty, or has rows of different lengths or duplicate columns.
    """
    data = read_bytes(path)
    table = _read_parquet(path, data) if data.startswith(PARQUET) else _read_csv(path, data)
    blank = {at for at, name in enumerate(table.names) if at and not name}
    unnamed = [at for at in sorted(blank) if table.arrow.column(at).null_count < len(table)]
    if len(unnamed) == 1 and "" not in table.names[:1] and _holds_names(table.arrow.column(unnamed[0])):
        blank.remove(unnamed.pop())
    if unnamed:
        raise BadInputError(path, f"column {unnamed[0] + 1} has values but no name; name the column or delete it.")
    if blank:  # left by spreadsheets after the last column
        kept = [at for at in range(len(table.names)) if at not in blank]
        table = FileTable(path, table.arrow.select(kept), table.csv)
    twice = [repr(name) for name, times in Counter(table.names).items() if times > 1]
    if twice:
        where = "" if table.csv is None else "line 1: "
        raise BadInputError(path, f"{where}duplicate column {', '.join(twice[:10])}; rename or delete one.")
    if len(table) == 0:
        raise BadInputError(path, "has a header but no rows.")
    _check_cells(table)
    return table


def _check_cells(table: FileTable) -> None:
    """Reject a cell that is longer than the limit.

    Raises:
        BadInputError: with its place.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = current_limits().value
    if (table.arrow.nbytes if table.csv is None else len(table.csv)) <= longest:  # counting bytes of columns takes time
        return
    for name, column in zip(table.names, table.arrow.columns, strict=True):
        if column.nbytes > longest and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
            if lengths.max(initial=0) > longest:
                place = table.place(int(lengths.argmax()), name[:40])
                text = f"{place}: the cell has {lengths.max():,} bytes"
                raise BadInputError(table.path, explain_limit("value", text))


def _holds_names(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds texts that are not numbers, as an unnamed index of models does."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return not any(cell.replace(".", "", 1).isdigit() for cell in column.to_pylist() if cell)


def _read_parquet(path: Path, data: bytes) -> FileTable:
    import pyarrow as pa

    try:
        with open_parquet(path, data) as file:
            arrow = file.read()
        arrow.validate(full=True)
        columns = [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in arrow.columns
        ]
        table = FileTable(path, pa.table(columns, names=[str(name) for name in arrow.column_names]), None)
    except BadInputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        text = f"is not a readable Parquet file, or is truncated ({first_line(error)})."
        raise BadInputError(path, text) from error
    return table


def _read_csv(path: Path, data: bytes) -> FileTable:
    import pyarrow as pa
    from pyarrow import csv as pc

    check_text(path, data)
    mark = detect_delimiter(data[:HEAD_BYTES].decode("utf-8-sig", errors="ignore"))
    quoted = b'"' in data
    wrong: list[Any] = []

    def keep(row: Any) -> str:
        wrong.append(row)
        return "skip"

    def parsed(columns: Sequence[str], **options: Any) -> pa.Table:
        return pc.read_csv(
            pa.BufferReader(data),
            read_options=pc.ReadOptions(block_size=1 << 24, use_threads=not options),
            parse_options=pc.ParseOptions(delimiter=mark, newlines_in_values=quoted, **options),
            convert_options=pc.ConvertOptions(
                column_types={name: pa.large_string() for name in columns},
                strings_can_be_null=True,
                null_values=[""],
            ),
        )

    limits = current_limits()
    n_columns = data.partition(b"\n")[0].count(mark.encode()) + 1
    if n_columns > limits.columns:
        raise BadInputError(path, explain_limit("columns", f"has {n_columns:,} columns"))
    records = read_first_records(data[:HEAD_BYTES], len(data) <= HEAD_BYTES)
    if isinstance(records, str):
        raise BadInputError(path, f"{records}.")
    try:
        arrow = parsed(records[0])
    except pa.ArrowException as error:
        try:
            parsed(records[0], invalid_row_handler=keep)
        except pa.ArrowException:
            wrong.clear()
        if not wrong:
            raise BadInputError(path, f"is not a valid CSV file ({first_line(error)}).") from error
        lines = _record_lines(data)
        texts = [
            f"line {lines[min(row.number, len(lines)) - 1]}: {row.actual_columns} fields, "
            f"the header has {row.expected_columns}"
            for row in wrong[: BadInputError.MAX_LISTED]
        ]
        raise BadInputError(path, texts, count=len(wrong)) from error
    return FileTable(path, arrow.rename_columns([name.strip() for name in arrow.column_names]), data)


def _record_lines(data: bytes) -> NDArray[np.int64]:
    """Return the line on which each record starts, including the header; blank lines are not records."""
    marks = np.frombuffer(data, dtype=np.uint8)
    newlines = np.flatnonzero(marks == ord("\n" if b"\n" in data else "\r"))
    ends = newlines
    if b'"' in data:
        within = np.cumsum(marks == ord('"'), dtype=np.uint8) & 1
        ends = newlines[within[newlines] == 0]
    starts = np.concatenate([[0], ends + 1])
    stops = np.concatenate([ends, [len(data)]])
    blank = stops <= starts
    blank |= (stops - starts == 1) & (marks[np.minimum(starts, len(marks) - 1)] == ord("\r"))
    lines: NDArray[np.int64] = np.searchsorted(newlines, starts[~blank]).astype(np.int64) + 1
    return lines
