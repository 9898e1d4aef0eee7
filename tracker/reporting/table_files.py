"""Tables as CSV, JSON Lines and Parquet, and files that are there whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tracker.errors import OutputError

if TYPE_CHECKING:
    import pyarrow as pa


class _Lines:
    """Where the CSV writer writes to: its lines, which end in CR LF, are ended by LF alone."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def write(self, line: str) -> None:
        self._to.write(f"{line[:-2]}\n")


def write_csv(to: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Rows as CSV, a line each that ends in LF."""
    # The writer quotes the characters that its own lines end in, and those only: a text with a CR must be quoted too.
    csv.writer(_Lines(to), lineterminator="\r\n").writerows(rows)


def as_csv(table: pa.Table) -> bytes:
    """UTF-8 with a header; lists are JSON, as ``suffrage ingest`` reads them, a null or an empty list is empty."""
    text = io.StringIO()
    write_csv(text, [table.column_names, *([_cell(value) for value in row] for row in _rows(table))])
    # Halves of surrogate pairs and NUL are in no store.
    return text.getvalue().encode()


def as_json_lines(table: pa.Table) -> bytes:
    """One object in each line."""
    names = table.column_names
    lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in _rows(table))
    return "".join(f"{line}\n" for line in lines).encode()


def as_parquet(table: pa.Table) -> bytes:
    """Parquet, compressed."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


WRITERS: Mapping[str, Callable[[pa.Table], bytes]] = {
    "csv": as_csv,
    "jsonl": as_json_lines,
    "parquet": as_parquet,
}


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a place where nothing can or may be written, before work is done for it.

    Raises:
        OutputError: something is there and may not be replaced, or the folder is not there.
    """
    try:
        is_there, is_file, has_folder = path.exists(), path.is_file(), path.parent.is_dir()
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. Give --output another name.") from error
    if is_there and not is_file:
        raise OutputError(f"{path} is no plain file. Give --output another name.")
    if is_there and not force:
        raise OutputError(f"{path} is there already. Give --output another name, or replace it with --force.")
    if not has_folder:
        raise OutputError(f"There is no folder {path.parent}. Make it, or give --output another name.")


def write_whole(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file beside its place, then put it there, so that nobody ever sees a part of it.

    Raises:
        OutputError: something is there and may not be replaced, or it cannot be written.
    """
    check_free(path, force=force)
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}. Give --output another name.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _cell(value: Any) -> Any:
    if value is None or value == []:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
