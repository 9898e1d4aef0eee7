"""Archive files: opening them, and validation of their checksums and rows.

Validation covers what a store never writes. Conflicts with the target store are detected when the archive is stored.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tracker.errors import BadInputError, first_line
from tracker.ingest.archives.layout import (
    MANIFEST,
    MARK,
    ROW_ORDER,
    VERSION,
    archive_columns,
    archive_schema,
    member_name,
)

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 1 << 20
MAX_MANIFEST_BYTES = 1 << 20
LOCAL_HEADER = 30
NEWER = "A newer version of Suffrage wrote it. Upgrade in the folder of its sources: git pull && pip install ."
AGAIN = "Copy or download it again, or export it again with `suffrage export archive`."
YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Smallest and largest valid time in microseconds, from year 1 to year 9999."""


def starts_like_archive(head: bytes) -> bool:
    """Return whether a file's first bytes are those of an archive."""
    return head.startswith(b"PK\x03\x04") and head[LOCAL_HEADER : LOCAL_HEADER + len(MARK)] == MARK.encode()


@dataclass(frozen=True, eq=False)
class StoreArchive:
    """An archive with verified checksums.

    Attributes:
        path: the file.
        file: the open file; the caller that opened it closes it.
        places: start and length of each table in bytes.
        n_rows: number of rows of each table.
    """

    path: Path
    file: IO[bytes]
    places: Mapping[str, tuple[int, int]]
    n_rows: Mapping[str, int]

    def close(self) -> None:
        """Release the file."""
        self.file.close()

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """Return the validated rows of a table in batches.

        Raises:
            BadInputError: a row is invalid.
        """
        import pyarrow as pa

        first = 0
        try:
            with self._parquet(table) as parquet:
                for group in range(parquet.num_row_groups):
                    for batch in parquet.read_row_group(group).to_batches(max_chunksize=65_536):
                        batch.validate(full=True)
                        whole = _completed(table, batch)
                        self._check(table, whole, first)
                        first += whole.num_rows
                        yield whole
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            if isinstance(error, BadInputError):
                raise
            raise self._damaged(f"{member_name(table)} cannot be read ({first_line(error)}).") from error

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Return the rows of a small table as mappings."""
        for batch in self.batches(table):
            yield from batch.to_pylist()

    def error(self, table: str, row: int, problem: str) -> BadInputError:
        """Return the error for a row."""
        return BadInputError(
            self.path, f"{member_name(table)}, row {row + 1}: {problem}.", advice="Nothing was stored."
        )

    def check_tables(self) -> None:
        """Check that each table has the expected columns and number of rows.

        Raises:
            BadInputError: a table differs.
        """
        import pyarrow as pa

        for table in ROW_ORDER:
            try:
                with self._parquet(table) as parquet:
                    schema, n_rows = parquet.schema_arrow, int(parquet.metadata.num_rows)
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
                raise self._damaged(f"{member_name(table)} cannot be read ({first_line(error)}).") from error
            expected = {column.name: column for column in archive_columns(table)}
            unknown = [name for name in schema.names if name not in expected]
            if unknown or len(set(schema.names)) < len(schema.names):
                names = ", ".join(map(repr, unknown or schema.names))
                raise BadInputError(self.path, f"{member_name(table)} has the unknown columns {names}.", advice=NEWER)
            for name, column in expected.items():
                if name not in schema.names and not column.nullable:
                    raise self._damaged(f"{member_name(table)} has no column {name!r}.")
                if name in schema.names and schema.field(name).type != column.arrow:
                    raise self._damaged(
                        f"{member_name(table)}, column {name!r}: has the type {schema.field(name).type}."
                    )
            if n_rows != self.n_rows[table]:
                raise self._damaged(f"{member_name(table)} has {n_rows:,} rows, not {self.n_rows[table]:,}.")

    def _parquet(self, table: str) -> Any:
        import pyarrow.parquet as pq

        start, size = self.places[table]
        return pq.ParquetFile(_Part(self.file, start, size))

    def _damaged(self, problem: str) -> BadInputError:
        return BadInputError(self.path, problem, advice=AGAIN)

    def _check(self, table: str, batch: pa.RecordBatch, first: int) -> None:
        """Reject nulls, references, texts and numbers that no store writes."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for column, values in zip(archive_columns(table), batch.columns, strict=True):
            wrong: tuple[str, pa.Array] | None = None
            if not column.nullable and values.null_count:
                wrong = "is missing", pc.is_null(values)
            elif column.refers_to is not None:
                known = self.n_rows[column.refers_to]
                wrong = (
                    f"is not one of the {known:,} rows of {column.refers_to}",
                    pc.or_(pc.less(values, 0), pc.greater_equal(values, known)),
                )
            elif pa.types.is_string(values.type):
                wrong = "contains a zero byte", pc.match_substring(values, "\0")
            elif pa.types.is_floating(values.type):
                wrong = "is not a finite number", pc.invert(pc.is_finite(values))
            elif pa.types.is_timestamp(values.type):
                instants = pc.cast(values, pa.int64())
                wrong = "is not a valid time", pc.or_(pc.less(instants, YEARS[0]), pc.greater(instants, YEARS[1]))
            elif pa.types.is_date(values.type):
                days = pc.cast(pc.cast(values, pa.int32()), pa.int64())
                low, high = (year // 86_400_000_000 for year in YEARS)
                wrong = "is not a valid date", pc.or_(pc.less(days, low), pc.greater(days, high))
            elif column.name in ("trial", "occurrence", "dimensions", "n_scores"):
                wrong = "is negative", pc.less(values, 0)
            if wrong is not None and pc.any(wrong[1]).as_py():
                row = pc.index(pc.fill_null(wrong[1], False), True).as_py()
                raise self.error(table, first + row, f"{column.name} {wrong[0]}")


def open_archive(path: Path) -> StoreArchive:
    """Open an archive and verify its checksums.

    Raises:
        BadInputError: the file is not an archive, is damaged, or was written by a newer version.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadInputError(path, f"cannot be opened: {error.strerror or error}.") from error
    try:
        places = _members(path, file)
        tables = _manifest(path, file, places)
        n_rows = {}
        for table in ROW_ORDER:
            start, size = places[member_name(table)]
            file.seek(start)
            hashed = hashlib.sha256()
            remaining = size
            while remaining and (chunk := file.read(min(CHUNK, remaining))):
                hashed.update(chunk)
                remaining -= len(chunk)
            n_table_rows, expected_hash = tables[table]
            if hashed.hexdigest() != expected_hash:
                raise BadInputError(path, f"{member_name(table)} does not match its checksum.", advice=AGAIN)
            n_rows[table] = n_table_rows
        archive = StoreArchive(path, file, {table: places[member_name(table)] for table in ROW_ORDER}, n_rows)
        archive.check_tables()
    except BaseException:
        file.close()
        raise
    return archive


def _members(path: Path, file: IO[bytes]) -> dict[str, tuple[int, int]]:
    """Return the start and length of each member in bytes."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, OverflowError) as error:
        raise BadInputError(path, f"is not a complete archive ({first_line(error)}).", advice=AGAIN) from error
    size = file.seek(0, io.SEEK_END)
    places: dict[str, tuple[int, int]] = {}
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            text = f"member {info.filename!r} is compressed, so another program has repacked it."
            raise BadInputError(path, text, advice=AGAIN)
        file.seek(max(info.header_offset, 0))
        header = file.read(LOCAL_HEADER)
        start = info.header_offset + LOCAL_HEADER
        start += int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        if info.header_offset < 0 or len(header) < LOCAL_HEADER or start + info.file_size > size:
            raise BadInputError(path, "is not a complete archive.", advice=AGAIN)
        places[info.filename] = start, info.file_size
    expected = {MARK, MANIFEST, *map(member_name, ROW_ORDER)}
    if lacking := sorted(expected - places.keys()):
        raise BadInputError(path, f"lacks the members {', '.join(lacking)}.", advice=AGAIN)
    return places


def _manifest(path: Path, file: IO[bytes], places: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, str]]:
    """Return the number of rows and the SHA-256 of each table."""
    start, size = places[MANIFEST]
    file.seek(start)
    try:
        manifest = json.loads(file.read(min(size, MAX_MANIFEST_BYTES)))
        version = manifest["version"]
        assert manifest["format"] == MARK
        assert isinstance(version, int)
    except (ValueError, RecursionError, KeyError, TypeError, AssertionError) as error:
        raise BadInputError(path, f"{MANIFEST} does not match its checksum.", advice=AGAIN) from error
    if version > VERSION:
        raise BadInputError(
            path, f"is an archive of version {version}; this version of Suffrage reads {VERSION}.", advice=NEWER
        )
    try:
        tables = {
            table: (manifest["tables"][table]["rows"], manifest["tables"][table]["sha256"]) for table in ROW_ORDER
        }
        assert all(isinstance(rows, int) and 0 <= rows < 2**40 for rows, _ in tables.values())
    except (KeyError, TypeError, AssertionError) as error:
        raise BadInputError(path, f"{MANIFEST} does not match its checksum.", advice=AGAIN) from error
    if more := sorted(set(manifest["tables"]) - set(ROW_ORDER)):
        raise BadInputError(path, f"holds unknown tables: {', '.join(more)}.", advice=NEWER)
    return tables


def _completed(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with all columns in order; columns that are newer than the archive are null."""
    import pyarrow as pa

    columns = [
        batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
        for field in archive_schema(table)
    ]
    return pa.RecordBatch.from_arrays(columns, names=archive_schema(table).names)


class _Part(io.RawIOBase):
    """A part of a file as a file object."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def size(self) -> int:
        return self._size

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._at)
        n = max(0, min(len(buffer), self._size - self._at))
        read = self._file.read(n)
        buffer[: len(read)] = read
        self._at += len(read)
        return len(read)
