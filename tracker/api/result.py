"""The result of an analysis in Python: summary, metrics, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import NotFoundError
from tracker.notebook.result import NotebookResult, make_table
from tracker.queries.findings.summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from tracker.recording.finding import RankedModels, Report
    from tracker.recording.pipeline import RecordedFinding


@dataclass(frozen=True, kw_only=True)
class AnalysisResult(NotebookResult):
    """The result of an analysis, as recorded in the store.

    Attributes:
        id: key of the finding, for ``--filter ID``, ``filter=ID`` and ``weights=ID``; None if it is not recorded.
        analysis: name of the analysis.
        metrics: every metric by name; NaN if undefined.
        undefined: reasons of undefined metrics, by name.
        warnings: warnings: what was dropped, what to do next.
        mlflow_run_id: its MLflow run; None if it was not published.
        publishing_problem: why publishing failed, if requested.
        report: everything that the analysis returned.
    """

    id: int | None
    analysis: str
    metrics: Mapping[str, float]
    undefined: Mapping[str, str]
    warnings: Sequence[str]
    mlflow_run_id: str | None
    publishing_problem: str | None
    report: Report

    @property
    def summary(self) -> Summary:
        """Headline, evidence and caveats."""
        return self.report.summary

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The arrays by name."""
        return self.report.finding.arrays

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The tables by name; ``.to_pandas()`` converts one to a data frame."""
        return self.report.tables

    @property
    def rankings(self) -> Mapping[str, RankedModels]:
        """The rankings of models by scheme."""
        return self.report.rankings

    @property
    def figures(self) -> Sequence[str]:
        """Names of the figures."""
        return tuple(self.report.figures)

    def figure(self, name: str) -> Figure:
        """Draw a figure with matplotlib.

        Raises:
            NotFoundError: there is no figure of that name.
        """
        if name not in self.report.figures:
            raise NotFoundError(f"figure of {self.analysis}", name, self.figures)
        return self.report.figures[name]()

    def to_arrow(self) -> pa.Table:
        """Return a row for each metric; the tables are in ``tables``."""
        return make_table(
            [
                {"metric": name, "value": None if np.isnan(value) else value, "undefined": self.undefined.get(name, "")}
                for name, value in self.metrics.items()
            ]
        )

    def plot(self, name: str | None = None) -> Figure:
        """Draw a figure with matplotlib.

        Args:
            name: name of the figure; None for the first one.

        Raises:
            NotFoundError: there is no figure of that name, or none at all.
        """
        return self.figure(next(iter(self.figures), "figure") if name is None else name)

    def describe(self) -> str:
        """Return the headline."""
        return self.summary.headline

    def list_details(self) -> Sequence[str]:
        """Return evidence, caveats and warnings."""
        summary = self.summary
        return (*summary.evidence, *summary.caveats, summary.looks, *self.warnings)

    def __str__(self) -> str:
        finding = "not recorded" if self.id is None else f"finding {self.id}"
        return f"{self.analysis}, {finding}: {self.summary.headline}"

    __repr__ = __str__

    @classmethod
    def of(cls, recorded: RecordedFinding) -> AnalysisResult:
        """Return the result of a recorded finding."""
        return replace(
            make_result(recorded.analysis, recorded.report),
            id=recorded.finding_id,
            mlflow_run_id=recorded.mlflow_run_id,
            publishing_problem=recorded.publishing_problem,
        )


def make_result(analysis: str, report: Report) -> AnalysisResult:
    """Return the result of an analysis that is not recorded."""
    from tracker.recording.record import make_metric_rows

    metrics = make_metric_rows(report.finding)
    return AnalysisResult(
        id=None,
        analysis=analysis,
        metrics={metric.name: np.nan if metric.value is None else metric.value for metric in metrics},
        undefined={metric.name: metric.reason for metric in metrics if metric.reason},
        warnings=tuple(report.warnings),
        mlflow_run_id=None,
        publishing_problem=None,
        report=report,
    )
