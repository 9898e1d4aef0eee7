"""Arrow tables as Polars data frames, if Polars is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.errors import MissingExtraError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Return a table as a Polars data frame.

    Raises:
        MissingExtraError: Polars is not installed.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtraError("A Polars data frame", "polars") from error
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
