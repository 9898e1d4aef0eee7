"""Lists of rows that are data frames, HTML and bar charts too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tracker.notebook.result import NotebookResult, make_table

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class BarChart(Generic[T]):
    """What the bars of a list's figure show.

    Attributes:
        label: text beside the bar; rows with the same text share a bar.
        length: what a row adds to its bar.
        quantity: what the lengths are.
    """

    label: Callable[[T], str]
    length: Callable[[T], float]
    quantity: str


class Rows(list[T], NotebookResult):
    """A list of rows, such as benchmarks or runs; its HTML is a table, its figure a bar for each label."""

    def __init__(self, rows: list[T], noun: str, bars: BarChart[T]) -> None:
        super().__init__(rows)
        self.noun = noun
        self.bars = bars

    def describe(self) -> str:
        """Return the number of rows."""
        return f"{len(self):,} {self.noun}{'' if len(self) == 1 else 's'}"

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: a column for each field."""
        return make_table(self)

    def plot(self) -> Figure:
        """Draw a bar for each label."""
        from tracker.figures.charts import draw_bars

        lengths: dict[str, float] = {}
        for row in self:
            label = self.bars.label(row)
            lengths[label] = lengths.get(label, 0) + self.bars.length(row)
        return draw_bars([*lengths], [*lengths.values()], xlabel=self.bars.quantity, title=self.describe())
