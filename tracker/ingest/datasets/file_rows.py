"""Rows of JSON Lines, JSON, CSV, Parquet and Arrow files, streamed if the format allows it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError, first_line
from tracker.ingest.datasets.files import SourceFile, get_suffix
from tracker.ingest.datasets.row import SPLITS, DatasetRow
from tracker.ingest.files.file_contents import UTF16, check_expansion, detect_delimiter, open_file
from tracker.ingest.files.json_files import iterate_json_lines, read_json
from tracker.ingest.files.tabular.parquet_files import open_parquet
from tracker.settings.input_limits import current_limits, explain_limit

Numbered = Iterator[tuple[int, Mapping[str, Any]]]
ROWS_AT_ONCE = 1_000
ARROW_FILE = b"ARROW1"


def read_file_rows(file: SourceFile, columns: Sequence[str] = ()) -> Iterator[DatasetRow]:
    """Yield the rows of a file.

    Args:
        file: the data file.
        columns: column names of a CSV file without a header; empty if it has one.

    Raises:
        BadInputError: the file is invalid, with the line; raised after the valid rows before it.
    """
    suffix = get_suffix(file.path)
    if suffix == ".json":
        yield from _json(file)
        return
    read: Callable[[Path], Numbered] = {
        ".jsonl": _lines, ".parquet": _parquet, ".pq": _parquet, ".arrow": _arrow,
    }.get(suffix, lambda path: _csv(path, columns))  # fmt: skip
    word = "row" if suffix in (".parquet", ".pq", ".arrow") else "line"
    for number, fields in read(file.path):
        yield _row(file, number, fields, f"{word} {number}", file.split)


def _row(file: SourceFile, number: int, fields: Mapping[str, Any], where: str, split: str) -> DatasetRow:
    return DatasetRow(fields=fields, place=f"{file.name}, {where}", line=number, split=split, hints=file.hints)


def _lines(path: Path) -> Numbered:
    for number, value in iterate_json_lines(path):
        if not isinstance(value, dict):
            raise BadInputError(path, f"line {number}: is not a JSON object.")
        yield number, value


def _json(file: SourceFile) -> Iterator[DatasetRow]:
    """Yield the objects of a list, or of an object with one list per split."""
    value = read_json(file.path)
    if isinstance(value, dict) and value and all(name.lower() in SPLITS for name in value):
        parts = [(SPLITS[name.lower()], f"{name}, ", part) for name, part in value.items()]
    else:
        parts = [(file.split, "", value)]
    for split, prefix, rows in parts:
        if not isinstance(rows, list):
            raise BadInputError(file.path, "is not a JSON list of objects.")
        for number, fields in enumerate(rows, start=1):
            if not isinstance(fields, dict):
                raise BadInputError(file.path, f"{prefix}entry {number}: is not a JSON object.")
            yield _row(file, number, fields, f"{prefix}entry {number}", split)


def _csv(path: Path, columns: Sequence[str]) -> Numbered:
    with open_file(path) as raw:
        start = raw.read(2)
        if start in UTF16:
            raise BadInputError(path, "is UTF-16 text; save it as UTF-8.")
    with open_file(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
        number = 0
        try:
            longest = current_limits().value
            header = text.readline(longest)
            mark = detect_delimiter(header) if not columns else ","
            if header.count(mark) >= current_limits().columns:
                raise BadInputError(path, explain_limit("columns", f"has {header.count(mark) + 1:,} columns"))
            text.seek(0)
            records = csv.reader(text, delimiter=mark)
            names: list[str] | None = None
            while True:
                number = records.line_num + 1
                record = next(records, None)
                if record is None:
                    break
                if not record:
                    continue
                if names is None:
                    if not columns or columns[0] in map(str.lower, record):
                        names = [name.strip() for name in record]
                        if len(set(names)) < len(names):
                            raise BadInputError(path, f"line {number}: two columns have the same name.")
                        continue
                    names = list(columns)
                if len(record) != len(names):
                    raise BadInputError(path, f"line {number}: {len(record)} fields; the header has {len(names)}.")
                yield number, dict(zip(names, record, strict=True))
        except csv.Error as error:
            raise BadInputError(path, f"line {number}: {error}.") from error
        except UnicodeDecodeError as error:
            problem = f"byte 0x{error.object[error.start]:02x} is not UTF-8 text"
            raise BadInputError(path, f"after line {number}: {problem}.", advice="Save the file as UTF-8.") from error


def _parquet(path: Path) -> Numbered:
    import pyarrow as pa

    try:
        with open_parquet(path) as file:
            yield from _batches(file.iter_batches(batch_size=ROWS_AT_ONCE))
    except BadInputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise BadInputError(path, f"is not a readable Parquet file ({first_line(error)}).") from error


def _arrow(path: Path) -> Numbered:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as memory:
            if memory.read(len(ARROW_FILE)) == ARROW_FILE:
                whole = pa.ipc.open_file(memory)
                batches = (whole.get_batch(number) for number in range(whole.num_record_batches))
            else:
                memory.seek(0)
                batches = iter(pa.ipc.open_stream(memory))
            yield from _batches(_limit_batches(path, batches))
    except BadInputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInputError(path, f"is not a readable Arrow file ({first_line(error)}).") from error


def _limit_batches(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches, up to the size that a file of this size may expand to."""
    size, packed = 0, path.stat().st_size
    for batch in batches:
        size += batch.nbytes
        check_expansion(path, size, packed)
        yield batch


def _batches(batches: Iterator[Any]) -> Numbered:
    number = 0
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            for fields in batch.slice(start, ROWS_AT_ONCE).to_pylist():
                number += 1
                yield number, fields
