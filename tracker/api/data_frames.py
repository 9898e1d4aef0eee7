"""Data frames as files that can be imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.errors import SelectionError
from tracker.private_files.temporary import temporary_folder

if TYPE_CHECKING:
    import pyarrow as pa


def is_data_frame(value: object) -> bool:
    """Return whether a value is a table: pandas, Polars, Arrow, or another one with Arrow's interface."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


@contextmanager
def written_frame(frame: Any, name: str) -> Iterator[Path]:
    """Write a data frame to a Parquet file that is deleted afterwards.

    An unnamed index of pandas is left out; a named one becomes columns.

    Args:
        frame: the data frame.
        name: name of the file, without suffix.

    Raises:
        SelectionError: the name is no file name, or a column has a type that Parquet cannot hold.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if Path(name).name != name or name in ("", ".."):
        raise SelectionError(f"name is {name!r}; use the name of a file, without folders.")
    with temporary_folder() as folder:
        path = folder / f"{name}.parquet"
        try:
            pq.write_table(_as_arrow(frame), path)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SelectionError(f"The data frame cannot be read as a table: {error}") from error
        yield path


def _as_arrow(frame: Any) -> pa.Table:
    import pyarrow as pa

    if hasattr(frame, "reset_index"):
        names = [name for name in frame.index.names if name is not None]
        frame = frame.reset_index(drop=not names)
        return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False).replace_schema_metadata(None)
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    from pyarrow.interchange import from_dataframe

    return from_dataframe(frame)
