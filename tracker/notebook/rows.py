"""Lists of rows that are data frames and HTML too."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tracker.notebook.result import NotebookResult, make_table

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Rows(list[T], NotebookResult):
    """A list of rows, such as benchmarks or runs; its HTML is a table. It has no figure."""

    def __init__(self, rows: list[T], noun: str) -> None:
        super().__init__(rows)
        self.noun = noun

    def describe(self) -> str:
        """Return the number of rows."""
        return f"{len(self):,} {self.noun}{'' if len(self) == 1 else 's'}"

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: a column for each field."""
        return make_table(self)
