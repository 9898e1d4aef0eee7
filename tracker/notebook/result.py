"""What every result offers in Python and notebooks: data frames, HTML, a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure


class NotebookResult(ABC):
    """A result with a verdict, a table and a figure."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""

    @abstractmethod
    def plot(self) -> Figure:
        """Draw the result with matplotlib."""

    @abstractmethod
    def describe(self) -> str:
        """Return the verdict in one sentence."""

    def list_details(self) -> Sequence[str]:
        """Return evidence, caveats and warnings, one sentence or more each."""
        return ()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the rows as a Polars data frame.

        Raises:
            MissingExtraError: Polars is not installed; the message has the command that installs it.
        """
        from tracker.notebook.polars_frames import to_polars

        return to_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the verdict, the details, the first rows."""
        from tracker.notebook.html import render_result

        return render_result(self.describe(), self.list_details(), self.to_arrow())


def make_table(records: Sequence[Any]) -> pa.Table:
    """Return dataclasses or mappings as an Arrow table.

    A column whose values are no numbers, texts, times or lists of them has JSON.

    Args:
        records: dataclasses of one class, or mappings with the same keys; the first one names the columns.
    """
    import dataclasses

    import pyarrow as pa

    rows = [
        {field.name: getattr(record, field.name) for field in dataclasses.fields(record) if field.repr}
        if dataclasses.is_dataclass(record)
        else dict(record)
        for record in records
    ]
    names = list(rows[0]) if rows else []
    return pa.table({name: _make_column([row.get(name) for row in rows]) for name in names})


def _make_column(values: list[Any]) -> pa.Array:
    import json
    from pathlib import Path

    import pyarrow as pa

    plain = [str(value) if isinstance(value, Path) else value for value in values]
    if not any(isinstance(value, dict) or hasattr(value, "__dataclass_fields__") for value in plain):
        try:
            return pa.array(plain)
        except pa.ArrowException:
            pass  # values of several types
    return pa.array([None if value is None else json.dumps(value, default=str, ensure_ascii=False) for value in plain])
