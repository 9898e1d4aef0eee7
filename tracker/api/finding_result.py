"""A recorded finding in Python: its numbers, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracker.errors import NotFoundError
from tracker.notebook.result import NotebookResult, make_table
from tracker.queries.findings.finding_records import FindingRecord

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class FindingResult(FindingRecord, NotebookResult):
    """A recorded finding that loads its tables and figures when they are used.

    Attributes:
        load_figure: loads a figure as PNG, by its name.
    """

    load_figure: Callable[[str], bytes] = field(repr=False, compare=False)

    @classmethod
    def of(cls, record: FindingRecord, load_figure: Callable[[str], bytes]) -> FindingResult:
        """Return a finding whose figures are loaded by a function."""
        return cls(load_figure=load_figure, **vars(record))

    @property
    def figures(self) -> Sequence[str]:
        """Names of the figures."""
        return tuple(part.name.removesuffix(".png") for part in self.artifacts if part.name.endswith(".png"))

    def to_arrow(self) -> pa.Table:
        """Return a row for each metric."""
        return make_table(self.numbers)

    def plot(self, name: str | None = None) -> Figure:
        """Return a recorded figure as a figure of matplotlib.

        Args:
            name: name of the figure; None for the first one.

        Raises:
            NotFoundError: there is no figure of that name, or none at all.
        """
        from tracker.figures.charts import draw_picture

        name = next(iter(self.figures), "figure") if name is None else name
        if name not in self.figures:
            raise NotFoundError(f"figure of {self.name}", name, self.figures)
        return draw_picture(self.load_figure(name))

    def describe(self) -> str:
        """Return the headline; for a failed finding the error."""
        return self.summary.headline or f"{self.name} failed: {self.error}"

    def list_details(self) -> Sequence[str]:
        """Return evidence, caveats, warnings, and why the finding is stale."""
        stale = f"Stale: {self.stale}" if self.stale else ""
        return (stale, *self.summary.evidence, *self.summary.caveats, self.summary.looks, *self.warnings)
