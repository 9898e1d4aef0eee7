"""The recorded tests of a benchmark, with their adjusted p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy.orm import Session

from tracker.notebook.result import NotebookResult, make_table
from tracker.queries.findings.looks import NOT_COUNTED, Look, list_looks
from tracker.queries.findings.staleness import list_stale_findings
from tracker.queries.resolution import find_benchmark
from tracker.recording.registry import discover_tests
from tracker.statistics.resampling import ALPHA

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class RecordedLooks(NotebookResult):
    """The recorded tests of a benchmark.

    Attributes:
        benchmark: its name.
        looks: the tests, the latest first.
        stale: keys of findings whose data changed since.
    """

    benchmark: str
    looks: tuple[Look, ...]
    stale: frozenset[int]

    def list_records(self) -> list[dict[str, object]]:
        """Return the tests, by name of the column."""
        return [
            {
                "finding": look.findings[-1],
                "analysis": look.analysis,
                "test": look.test,
                "n_tests": look.n_tests,
                "pvalue": look.pvalue,
                "holm": look.holm,
                "n_before": look.n_before,
                "stale": look.findings[-1] in self.stale,
                "recorded": look.recorded,
            }
            for look in self.looks
        ]

    def to_arrow(self) -> pa.Table:
        """Return a row for each test."""
        return make_table(self.list_records())

    def plot(self) -> Figure:
        """Draw each p-value, and a line to the one that is adjusted for all tests."""
        from tracker.figures.charts import draw_intervals

        alone, together = (
            np.array(values) for values in ([r.pvalue for r in self.looks], [r.holm for r in self.looks])
        )
        return draw_intervals(
            [f"{look.analysis}: {look.test} ({look.findings[-1]})" for look in self.looks],
            alone,
            alone,
            together,
            xlabel="p-value",
            legend=("alone", "to the p-value after Holm over all tests"),
            title=self.describe(),
        )

    def describe(self) -> str:
        """Return how many tests are significant, alone and after Holm's correction."""
        if not self.looks:
            return f"{self.benchmark} has no recorded tests."
        alone, together = (
            sum(value <= ALPHA for value in values)
            for values in ([r.pvalue for r in self.looks], [r.holm for r in self.looks])
        )
        n = len(self.looks)
        return (
            f"{self.benchmark} has {n:,} recorded test{'s' * (n != 1)}: {alone:,} significant alone, "
            f"{together:,} after Holm over all (level {ALPHA:g})."
        )

    def list_details(self) -> Sequence[str]:
        """Return what is not counted."""
        return (NOT_COUNTED,)


def load_recorded_looks(session: Session, benchmark: str) -> RecordedLooks:
    """Load the recorded tests of a benchmark.

    Raises:
        NotFoundError: the benchmark does not exist.
    """
    looks = list_looks(session, find_benchmark(session, benchmark).id, discover_tests())
    stale = list_stale_findings(session, [look.findings[-1] for look in looks])
    return RecordedLooks(benchmark=benchmark, looks=tuple(reversed(looks)), stale=frozenset(stale))
