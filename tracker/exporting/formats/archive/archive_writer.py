"""Write catalogue and measurements of a store to one file, from which another store can restore them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import known_versions
from tracker.exporting.formats.archive.archived_rows import ArchivedRows
from tracker.ingest.archives.layout import MANIFEST, MARK, ROW_ORDER, VERSION, archive_schema, member_name
from tracker.queries.resolution import BenchmarkKey
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import snapshot

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every member of the zip file: the same store gives the same bytes."""


@dataclass(frozen=True, kw_only=True)
class ArchiveSummary:
    """The content of an archive.

    Attributes:
        n_rows: rows by table.
        n_findings: findings of the store, which are not included.
        n_files_left_out: source files of which the archive holds only a part, and which it does not list.
    """

    n_rows: Mapping[str, int]
    n_findings: int
    n_files_left_out: int = 0


def write_archive(
    session: Session,
    to: BinaryIO,
    benchmarks: Sequence[BenchmarkKey] = (),
    progress: Callable[[int, int], None] | None = None,
) -> ArchiveSummary:
    """Write catalogue and measurements of the store's current state.

    Args:
        session: the store; only committed data are visible.
        to: an empty file.
        benchmarks: benchmarks to include; empty includes everything.
        progress: called with the number of written tables, and of all tables.
    """
    keys = [benchmark.id for benchmark in benchmarks] or None
    members: dict[str, dict[str, object]] = {}
    with (
        snapshot(session) as reading,
        zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(MARK, FIRST_DAY), f"{VERSION}\n")
        rows = ArchivedRows(reading, keys)
        for place, table in enumerate(ROW_ORDER):
            with archive.open(zipfile.ZipInfo(member_name(table), FIRST_DAY), "w", force_zip64=True) as raw:
                file = _HashedFile(raw)
                n_rows = _write_table(file, table, rows)
            members[table] = {"rows": n_rows, "sha256": file.digest()}
            if progress is not None:
                progress(place + 1, len(ROW_ORDER))
        manifest = {"format": MARK, "version": VERSION, "schema": known_versions()[-1], "tables": members}
        archive.writestr(zipfile.ZipInfo(MANIFEST, FIRST_DAY), json.dumps(manifest, indent=2) + "\n")
    count = sa.select(sa.func.count())
    about = [] if keys is None else [tables.finding.c.benchmark_id.in_(keys)]
    n_files = 0
    if keys is not None:
        run_ids = sa.select(tables.run.c.id).where(tables.run.c.benchmark_id.in_(keys))
        of_mine = tables.run_source.c.run_id.in_(run_ids)
        source_count = sa.select(sa.func.count(tables.run_source.c.source_id.distinct())).where(of_mine)
        n_files = (session.scalar(source_count) or 0) - len(rows.keys["source"])
    return ArchiveSummary(
        n_rows={table: int(str(entry["rows"])) for table, entry in members.items()},
        n_findings=session.scalar(count.select_from(tables.finding).where(*about)) or 0,
        n_files_left_out=n_files,
    )


def _write_table(file: _HashedFile, table: str, rows: ArchivedRows) -> int:
    import pyarrow.parquet as pq

    n_rows = 0
    with pq.ParquetWriter(file, archive_schema(table), compression="zstd") as writer:
        for batch in rows.batches(table):
            kept = _without_lost(batch)
            writer.write_batch(kept)
            n_rows += kept.num_rows
    return n_rows


def _without_lost(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop references to rows outside of the archive; a run may come from a file that the archive does not list."""
    import pyarrow.compute as pc

    lost = None
    for column, field in zip(batch.columns, batch.schema, strict=True):
        if not field.nullable and column.null_count:
            lost = pc.is_null(column) if lost is None else pc.or_(lost, pc.is_null(column))
    return batch if lost is None else batch.filter(pc.invert(lost))


class _HashedFile(io.RawIOBase):
    """A file that computes the SHA-256 of its content; the caller closes the underlying file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash, self._n_bytes = file, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        self._file.write(data)
        self._n_bytes += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """The position, which cannot be changed: by this Python finds out where a file stands."""
        return self._n_bytes

    def digest(self) -> str:
        return self._hash.hexdigest()
