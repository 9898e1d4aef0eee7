"""Parquet files of others: opened only if their content fits within the limits.

A page of a few bytes may stand for very many equal values. The size that the content has in memory is computed from
the file's metadata, and for texts that are stored once and referred to, from their lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.errors import BadInputError, first_line
from tracker.ingest.files.file_contents import GZIP, check_expansion, read_bytes
from tracker.settings.input_limits import current_limits, explain_limit

if TYPE_CHECKING:
    import pyarrow.parquet as pq

NUMBER_BYTES = 8
FREE_FACTOR = 8
"""Multiple of the size that any file may expand to: equal values are common in columns."""


@contextmanager
def open_parquet(path: Path, data: bytes | None = None) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, gzipped or not.

    Args:
        path: the file.
        data: its content if it is in memory.

    Raises:
        BadInputError: it is not readable, or beyond the limits.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if data is None:
            with path.open("rb") as file:
                data = read_bytes(path) if file.read(2) == GZIP else None

        def source() -> Any:
            return pa.OSFile(str(path)) if data is None else pa.BufferReader(data)

        with pq.ParquetFile(source()) as file:
            check_parquet(path, file, source)
            yield file
    except BadInputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise BadInputError(path, f"is not a readable Parquet file, or is truncated ({first_line(error)}).") from error


def check_parquet(path: Path, file: pq.ParquetFile, source: Any) -> None:
    """Reject a file that is too large in memory.

    Args:
        path: the file.
        file: the opened file.
        source: opens its content again.

    Raises:
        BadInputError: it has too many columns, or expands too far.
    """
    metadata, limits = file.metadata, current_limits()
    if metadata.num_columns > limits.columns:
        raise BadInputError(path, explain_limit("columns", f"has {metadata.num_columns:,} columns"))
    size = FREE_FACTOR * path.stat().st_size
    allowed = FREE_FACTOR * limits.allow(path.stat().st_size)
    total, suspects = 0, []
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(place)
            total += chunk.total_uncompressed_size + NUMBER_BYTES * chunk.num_values
            is_text = chunk.physical_type == "BYTE_ARRAY"
            if is_text and chunk.has_dictionary_page and chunk.num_values * chunk.total_uncompressed_size > allowed:
                suspects.append((group, chunk.path_in_schema))
        if total > allowed:
            check_expansion(path, total, size)
            raise BadInputError(path, explain_limit("expansion", f"expands to more than {allowed:,} bytes"))
    for group, name in suspects:
        total += _measure_texts(source(), group, name)
        if total > allowed:
            raise BadInputError(path, explain_limit("expansion", f"expands to more than {allowed:,} bytes"))


def _measure_texts(source: Any, group: int, name: str) -> int:
    """Return the bytes of the texts of a column, of which equal ones are stored once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, read_dictionary=[name]) as file:
        column = file.read_row_group(group, columns=[name], use_threads=False).column(0)
    total = 0
    for chunk in column.chunks:
        array = chunk
        while not pa.types.is_dictionary(array.type):
            if pa.types.is_struct(array.type):
                array = array.field(0)
            elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
                array = array.flatten()
            else:
                return total + int(array.nbytes)
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        total += pc.sum(pc.take(lengths, array.indices)).as_py() or 0
    return total
