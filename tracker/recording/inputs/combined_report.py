"""Combine the reports of an analysis on measured scores and on completions of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tracker.name_lists import join_names
from tracker.queries.findings.summary import MAX_CAVEATS, MAX_EVIDENCE
from tracker.queries.selection import Policy
from tracker.recording.finding import Finding, Metric, Report, Undefined

if TYPE_CHECKING:
    import pyarrow as pa

    from tracker.queries.findings.looks import DeclaredTest

SIGNIFICANT = 0.05
TABLE = "missing_scores"
"""Name of the table with the metrics of each completion."""
MEASURED = "measured"
"""Its column for the scores without completion."""
MAX_NAMES = 3
MAX_CHANGES = 2
"""Changes that a headline lists."""


@dataclass(frozen=True, kw_only=True)
class CombinedFinding(Finding):
    """A finding of measured scores, with p-values that hold for each completion that was computed.

    Attributes:
        measured: the finding of measured scores.
        pvalues: the largest p-value of each test, by metric.
    """

    measured: Finding
    pvalues: Mapping[str, float]

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Metrics of measured scores, with the largest p-values."""
        return {**self.measured.metrics, **self.pvalues}

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Arrays of measured scores."""
        return self.measured.arrays

    @property
    def main_metrics(self) -> Sequence[str]:
        """Main metrics of measured scores."""
        return self.measured.main_metrics


@dataclass(frozen=True, kw_only=True)
class TestRange:
    """The p-values of one test.

    Attributes:
        test: its name.
        metric: that is its p-value.
        low, high: the smallest and the largest one.
    """

    __test__ = False  # not a test of pytest

    test: str
    metric: str
    low: float
    high: float

    @property
    def is_open(self) -> bool:
        """Whether some completions make it significant, and others do not."""
        return self.low <= SIGNIFICANT < self.high

    def describe(self) -> str:
        """Return its name and range."""
        return f"the test of {self.test} (p from {self.low:.2g} to {self.high:.2g})"


def combine_reports(
    measured: Report, completed: Mapping[str, Report], *, policy: Policy, tests: Sequence[DeclaredTest]
) -> Report:
    """Return the report on measured scores, with what the completions change.

    Under ``bounds``, the p-value of each test is the largest. The headline states whether the completions change the
    first place or whether a test is significant. Under ``impute``, the tests are those of measured scores, because
    imputed scores have the structure of the fit that imputed them.

    Args:
        measured: of measured scores.
        completed: of each completion, by label; empty if no score is missing.
        policy: ``bounds`` or ``impute``.
        tests: of the analysis.
    """
    if not completed:
        return measured
    reports = {MEASURED: measured, **completed}
    ranges = _find_ranges(reports, tests) if policy == "bounds" else []
    combined = replace(
        measured,
        finding=CombinedFinding(measured=measured.finding, pvalues={item.metric: item.high for item in ranges}),
        tables={**measured.tables, TABLE: _list_metrics(reports)},
        leaders=tuple(dict.fromkeys(name for report in completed.values() for name in report.leaders)),
    )
    if policy == "impute":
        return _add_caveat(combined, _describe_imputed(measured.leaders, combined.leaders))
    is_first_open = len({frozenset(report.leaders) for report in reports.values() if report.leaders}) > 1
    changes = [f"who is first ({join_names(combined.leaders, MAX_NAMES)})"] if is_first_open else []
    changes += [
        f"the test of {item.test} (p from {item.low:.2g} to {item.high:.2g})" for item in ranges if item.is_open
    ]
    if changes:
        combined = _state_changes(combined, changes)
    facts = (
        []
        if is_first_open or not combined.leaders
        else [f"the first place stays with {join_names(combined.leaders, MAX_NAMES)}"]
    )
    if ranges:
        facts.append(f"p at most {', '.join(f'{item.high:.2g} ({item.test})' for item in ranges)}")
    return _add_caveat(combined, _describe_bounds(facts, len(completed)))


def _find_ranges(reports: Mapping[str, Report], tests: Sequence[DeclaredTest]) -> list[TestRange]:
    """Return the p-values of each test that the first report has."""
    every, ranges = [report.finding.metrics for report in reports.values()], []
    for test in tests:
        metric = next((name for name in test.pvalues if isinstance(every[0].get(name), float)), None)
        if metric is not None:
            values = [value for metrics in every if isinstance(value := metrics.get(metric), float)]
            ranges.append(TestRange(test=test.name, metric=metric, low=min(values), high=max(values)))
    return ranges


def _state_changes(report: Report, changes: Sequence[str]) -> Report:
    """Return a report whose headline is what missing scores change; the headline of measured scores follows."""
    summary = report.summary
    return replace(
        report,
        summary=replace(
            summary,
            headline=f"Missing scores decide {' and '.join(changes[:MAX_CHANGES])}.",
            evidence=(f"On measured scores: {summary.headline}", *summary.evidence)[:MAX_EVIDENCE],
        ),
    )


def _describe_bounds(facts: Sequence[str], n: int) -> str:
    """Return the caveat about bounds.

    Args:
        facts: what all completions have in common, as clauses.
        n: number of completions.
    """
    extremes = f"{n} extreme completion{'s' * (n != 1)} of the table"
    common = f": {', and '.join(facts)}" if facts else ""
    return (
        f"Estimates are of measured scores. The table {TABLE} has every metric on {extremes}{common}. Other "
        "completions were not computed."
    )


def _describe_imputed(measured: Sequence[str], imputed: Sequence[str]) -> str:
    """Return the caveat about imputed scores.

    Args:
        measured: models that are first on measured scores.
        imputed: those with imputed scores.
    """
    first = (
        "" if not imputed or imputed == measured else f" First with imputed scores: {join_names(imputed, MAX_NAMES)}."
    )
    return (
        "Tests and estimates are of measured scores, since imputed scores have the structure of their fit. "
        f"The table {TABLE} has every metric with imputed scores.{first}"
    )


def _add_caveat(report: Report, caveat: str) -> Report:
    """Return a report with a first caveat; one that has no place any more becomes a warning."""
    summary = report.summary
    caveats = (caveat, *summary.caveats)
    return replace(
        report,
        summary=replace(summary, caveats=caveats[:MAX_CAVEATS]),
        warnings=(*caveats[MAX_CAVEATS:], *report.warnings),
    )


def _list_metrics(reports: Mapping[str, Report]) -> pa.Table:
    """Return a row for each metric: its name, its value in each report, and the range of them.

    Args:
        reports: by label.
    """
    import pyarrow as pa

    every = {label: report.finding.metrics for label, report in reports.items()}
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for metrics in every.values() for name in metrics):
        values = {label: metrics.get(name) for label, metrics in every.items()}
        numbers = {label: None if isinstance(value, Undefined) else value for label, value in values.items()}
        defined = [value for value in numbers.values() if value is not None]
        rows.append({"metric": name, **numbers, "low": min(defined, default=None), "high": max(defined, default=None)})
    columns = [("metric", pa.string()), *((name, pa.float64()) for name in (*every, "low", "high"))]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))
