"""The result of an analysis in Python: summary, metrics, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import NotFoundError
from tracker.queries.findings.summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from tracker.recording.finding import RankedModels, Report
    from tracker.recording.pipeline import RecordedFinding


@dataclass(frozen=True, kw_only=True)
class AnalysisResult:
    """The result of an analysis, as recorded in the store.

    Attributes:
        id: key of the finding, for ``--filter ID``, ``filter=ID`` and ``weights=ID``.
        analysis: name of the analysis.
        metrics: every metric by name; NaN if undefined.
        undefined: reasons of undefined metrics, by name.
        warnings: warnings: what was dropped, what to do next.
        mlflow_run_id: its MLflow run; None if it was not published.
        publishing_problem: why publishing failed, if requested.
        report: everything that the analysis returned.
    """

    id: int
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

    def __str__(self) -> str:
        return f"{self.analysis}, finding {self.id}: {self.summary.headline}"

    __repr__ = __str__

    @classmethod
    def of(cls, recorded: RecordedFinding) -> AnalysisResult:
        """Return the result of a recorded finding."""
        return cls(
            id=recorded.finding_id,
            analysis=recorded.analysis,
            metrics={metric.name: np.nan if metric.value is None else metric.value for metric in recorded.metrics},
            undefined={metric.name: metric.reason for metric in recorded.metrics if metric.reason},
            warnings=tuple(recorded.report.warnings),
            mlflow_run_id=recorded.mlflow_run_id,
            publishing_problem=recorded.publishing_problem,
            report=recorded.report,
        )
