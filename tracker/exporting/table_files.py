"""Write tables as CSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from tracker.exporting.text_rows import format_csv_lines, format_json_lines

if TYPE_CHECKING:
    import pyarrow as pa


class _Lines:
    """Output of the CSV writer: replaces its CR LF line ends by LF."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def write(self, line: str) -> None:
        self._to.write(f"{line[:-2]}\n")


def write_csv(to: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Format rows as CSV, one line per row that ends in LF."""
    # The writer quotes only the characters of its own line ends, so a text with a CR needs quotes too.
    csv.writer(_Lines(to), lineterminator="\r\n").writerows(rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamedTable:
    """Rows that are created while they are written.

    Attributes:
        schema: the columns.
        batches: their rows; they can be iterated once.
        warnings: warnings for the user; complete once all rows have been created.
        counts_rows: whether the final message counts the rows.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    warnings: list[str] = field(default_factory=list)
    counts_rows: bool = True

    @classmethod
    def from_table(cls, table: pa.Table, warnings: Iterable[str] = ()) -> StreamedTable:
        """A table in memory."""
        return cls(schema=table.schema, batches=iter(table.to_batches()), warnings=list(warnings))


def write_rows(to: BinaryIO, table: StreamedTable, kind: str, *, for_spreadsheets: bool = False) -> int:
    """Write rows as they are created; return their number.

    Args:
        to: output file.
        table: the rows.
        kind: ``csv``, ``jsonl`` or ``parquet``.
        for_spreadsheets: for CSV: see `format_csv_lines`.
    """
    n_rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal n_rows
        for batch in table.batches:
            n_rows += batch.num_rows
            yield batch

    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(to, table.schema, compression="zstd") as writer:
            for batch in counted():
                writer.write_batch(batch)
    else:
        if kind == "csv":
            pieces = format_csv_lines(table.schema, counted(), for_spreadsheets=for_spreadsheets)
        else:
            pieces = format_json_lines(table.schema, counted())
        for piece in pieces:
            to.write(piece)
    return n_rows


def encode_csv(table: pa.Table) -> bytes:
    """Write UTF-8 with a header; see `format_csv_lines`."""
    return b"".join(format_csv_lines(table.schema, table.to_batches()))


def encode_json_lines(table: pa.Table) -> bytes:
    """Write one JSON object per line."""
    return b"".join(format_json_lines(table.schema, table.to_batches()))


def encode_parquet(table: pa.Table) -> bytes:
    """Write compressed Parquet."""
    buffer = io.BytesIO()
    write_rows(buffer, StreamedTable.from_table(table), "parquet")
    return buffer.getvalue()


WRITERS: Mapping[str, Callable[[pa.Table], bytes]] = {
    "csv": encode_csv,
    "jsonl": encode_json_lines,
    "parquet": encode_parquet,
}
