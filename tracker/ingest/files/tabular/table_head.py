"""First rows of a table, by which formats recognize their files."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from tracker.errors import BadInputError, first_line
from tracker.ingest.files.file_contents import (
    DELIMITERS,
    GZIP,
    HEAD_BYTES,
    PARQUET,
    TABLE_SUFFIXES,
    UTF16,
    count_head_rows,
    detect_delimiter,
    read_first_records,
)
from tracker.ingest.files.tabular.parquet_files import open_parquet

MAX_TITLES = 10
"""Lines in which the names of the columns are looked for."""


@dataclass(frozen=True)
class TableHead:
    """First rows of a table as texts.

    Attributes:
        names: names of the columns.
        rows: up to a thousand rows; None for an empty cell.
        is_whole: whether these are all rows.
        delimiter: of a CSV file; '' for other files.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    is_whole: bool = True
    delimiter: str = ""

    @cached_property
    def cells(self) -> Mapping[str, Sequence[str | None]]:
        """Return the cells of each column in the first rows."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.names)
        return dict(zip(self.names, columns, strict=True))

    def column(self, name: str) -> list[str]:
        """Return the non-empty cells of a column in the first rows."""
        return [cell for cell in self.cells[name] if cell is not None]


def read_head(path: Path) -> TableHead | str:
    """Return the first rows of a table, or why the file is not one; reads at most 1 MB of a CSV file."""
    try:
        status = path.stat()
    except OSError as error:
        return f"cannot be opened: {error.strerror or error}"
    return _head(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _head(path: Path, _changed: int, _size: int) -> TableHead | str:
    if not path.is_file():
        return "is not a file"
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        return f"the name does not end in {', '.join(TABLE_SUFFIXES)} (also with .gz)"
    try:
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
    except OSError as error:
        return f"cannot be opened: {error.strerror or error}"
    whole = len(data) == _size
    if data.startswith(GZIP):
        gunzip = zlib.decompressobj(wbits=31)
        try:
            data = gunzip.decompress(data, HEAD_BYTES)
        except zlib.error as error:
            return f"the gzip data are damaged ({error})"
        whole = whole and gunzip.eof
    if not data.strip():
        return "is empty"
    return _parquet_head(path) if data.startswith(PARQUET) else _csv_head(data, whole)


def _csv_head(data: bytes, whole: bool) -> TableHead | str:
    if data.startswith(UTF16):
        return "is UTF-16 text; save it as UTF-8"
    if b"\0" in data:
        return "contains zero bytes, so it is not a CSV file"
    records = read_first_records(data, whole)
    if isinstance(records, str):
        return records
    if (n_titles := _count_titles(data, records)) is not None:
        return (
            f"begins with a title, not with the names of the columns; delete {n_titles} line{'s' * (n_titles > 1)}, "
            f"such as with: tail -n +{n_titles + 1} FILE > NEW_FILE"
        )
    names = tuple(name.strip() for name in records[0])
    rows = [(*(cell or None for cell in row), *[None] * len(names))[: len(names)] for row in records[1:]]
    text = data[: HEAD_BYTES >> 4].decode("utf-8-sig", errors="ignore")
    is_whole = whole and len(rows) < count_head_rows(len(names))
    return TableHead(names, tuple(rows), is_whole, detect_delimiter(text))


def _count_titles(data: bytes, records: Sequence[Sequence[str]]) -> int | None:
    """Return the number of lines above the names of the columns; None if the first line has them.

    A title fills only the first cell, while the names below it fill most cells of as many columns as the rows have.
    """
    if any(cell.strip() for cell in records[0][1:]) or not records[0][0].strip():
        return None
    lines = data[: HEAD_BYTES >> 4].decode("utf-8-sig", errors="ignore").splitlines()
    delimiter = max(DELIMITERS, key=lambda mark: sum(line.count(mark) for line in lines[:MAX_TITLES]))
    rows = list(csv.reader(lines, delimiter=delimiter))
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    names = next((place for place, n in enumerate(filled[:MAX_TITLES]) if n > 1), 0)
    is_table = names and len(rows) > names + 1 and len(rows[names]) == len(rows[names + 1]) > 2
    return names if is_table and filled[names + 1] > 2 else None


def _parquet_head(path: Path) -> TableHead | str:
    import pyarrow as pa

    try:
        with open_parquet(path) as parquet:
            names = tuple(str(name) for name in parquet.schema_arrow.names)
            n_rows = count_head_rows(len(names))
            batch = next(parquet.iter_batches(batch_size=n_rows), None)
            is_whole = parquet.metadata.num_rows <= n_rows
            columns = [] if batch is None else [_texts(column.to_pylist()) for column in batch.columns]
    except BadInputError as error:
        return error.problems[0]
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        return f"is not a readable Parquet file ({first_line(error)})"
    return TableHead(names, tuple(zip(*columns, strict=True)), is_whole)


def _texts(cells: Sequence[object]) -> list[str | None]:
    """Return cells as texts."""
    return [None if cell is None else str(cell) for cell in cells]
