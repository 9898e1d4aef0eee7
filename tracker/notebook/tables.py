"""An Arrow table as a result: a data frame, HTML and a bar chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.errors import SelectionError
from tracker.notebook.result import NotebookResult

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TableResult(NotebookResult):
    """The rows of a statement, or a table of a finding.

    Attributes:
        table: the rows as an Arrow table.
        name: what they are.
    """

    table: pa.Table
    name: str

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.table[column]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.table

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row."""
        return list(self.table.to_pylist())

    def describe(self) -> str:
        """Return the name and the numbers of rows and columns."""
        n_rows, n_columns = self.table.num_rows, self.table.num_columns
        rows = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
        return f"{self.name}: {rows}, {n_columns:,} column{'' if n_columns == 1 else 's'}"

    def plot(self, column: str | None = None) -> Figure:
        """Draw a bar for each row, labelled by the first column with texts.

        Args:
            column: the column with the lengths; None for the first one with numbers.

        Raises:
            SelectionError: the column does not exist, or no column has numbers.
        """
        import numpy as np
        import pyarrow.types as types

        from tracker.figures.charts import draw_bars

        kinds = {field.name: field.type for field in self.table.schema}
        numeric = [
            name
            for name, kind in kinds.items()
            if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
        ]
        if column is None and not numeric:
            raise SelectionError(f"{self.name} has no column with numbers to draw.")
        if column is not None and column not in numeric:
            raise SelectionError(f"{column} is no column with numbers. Choose from: {', '.join(numeric) or 'none'}.")
        chosen = column or next((name for name in numeric if name not in ("id", "rank")), numeric[0])
        label = next((name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)), "")
        lengths = [np.nan if value is None else float(value) for value in self.table[chosen].to_pylist()]
        rows = self.table[label].to_pylist() if label else range(1, len(self) + 1)
        return draw_bars([str(row) for row in rows], lengths, xlabel=chosen, title=self.describe())
