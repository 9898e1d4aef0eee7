"""Combine the reports of an analysis on measured scores and on completions of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.name_lists import join_names
from tracker.queries.findings.summary import MAX_CAVEATS, MAX_EVIDENCE
from tracker.queries.selection import Policy
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, VerdictLine

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
        is_first_open: whether completions differ in the models that are first.

    All other attributes are those of ``measured``.
    """

    measured: Finding
    pvalues: Mapping[str, float]
    is_first_open: bool = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "measured" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.measured, name)

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
        return f"the test of {self.test} (p from {self.low:.3g} to {self.high:.3g})"


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
    leaders = tuple(dict.fromkeys(name for report in completed.values() for name in report.leaders))
    is_open = policy == "bounds" and len({frozenset(report.leaders) for report in completed.values()}) > 1
    ranges = _find_ranges(reports, tests) if policy == "bounds" else []
    combined = replace(
        measured,
        finding=CombinedFinding(
            measured=measured.finding, pvalues={item.metric: item.high for item in ranges}, is_first_open=is_open
        ),
        tables={**measured.tables, TABLE: _list_metrics(reports)},
        leaders=leaders,
    )
    if policy == "impute":
        return _add_caveat(combined, _describe_imputed(measured.leaders, leaders))
    combined = replace(
        combined,
        rankings={name: _unite_ranking(name, reports) for name in measured.rankings},
        verdict=partial(_combine_verdicts, measured, tuple(completed.values())),
    )
    changes = [
        *_list_changes(combined, reports, is_open=is_open),
        *(item.describe() for item in ranges if item.is_open),
    ]
    if changes:
        combined = _state_changes(combined, changes)
    facts = []
    if leaders and not is_open:
        names = join_names(leaders, MAX_NAMES)
        is_same = set(leaders) == set(measured.leaders)
        facts = [f"the first place stays with {names}" if is_same else f"first is {names}"]
    if ranges:
        facts.append(f"p at most {', '.join(f'{item.high:.3g} ({item.test})' for item in ranges)}")
    return _add_caveat(combined, _describe_bounds(facts, len(completed)))


def _list_changes(combined: Report, reports: Mapping[str, Report], *, is_open: bool) -> Iterator[str]:
    """Yield what completions change: who is first, by which rankings, and the rank interval of who is first.

    Args:
        combined: with united rankings.
        reports: of measured scores and of completions.
        is_open: whether completions differ in the leaders.
    """
    if is_open:
        yield f"who is first ({join_names(combined.leaders, MAX_NAMES)})"
        return
    schemes = [
        name
        for name in combined.rankings
        if len({list_first(report.rankings[name]) for report in reports.values() if name in report.rankings}) > 1
    ]
    if schemes and len(combined.rankings) > 1:
        noun = "ranking" if len(schemes) == 1 else "rankings"
        yield f"who is first in the {noun} " + join_names([f'"{name}"' for name in schemes], MAX_NAMES)
    for name, united in list(combined.rankings.items())[:1]:
        leader = int(np.argmin(united.rank))
        wide, narrow = _format_ranks(united, leader), _format_ranks(reports[MEASURED].rankings[name], leader)
        if wide != narrow:
            yield f"the ranks of {united.models[leader]} ({wide}, on measured scores {narrow})"


def _format_ranks(ranking: RankedModels, column: int) -> str:
    """Return the rank interval of a model; '' without one."""
    if ranking.rank_low is None or ranking.rank_high is None:
        return ""
    return f"{ranking.rank_low[column]:g}–{ranking.rank_high[column]:g}"


def list_first(ranking: RankedModels) -> frozenset[str]:
    """Return the models with the best rank."""
    best = np.nanmin(ranking.rank)
    return frozenset(name for name, rank in zip(ranking.models, ranking.rank.tolist(), strict=True) if rank == best)


def _unite_ranking(name: str, reports: Mapping[str, Report]) -> RankedModels:
    """Return the ranking of measured scores, with intervals that unite those of all completions."""
    measured = reports[MEASURED].rankings[name]
    rankings = [report.rankings[name] for report in reports.values() if name in report.rankings]
    ends = {}
    for field, unite in (("low", np.fmin), ("high", np.fmax), ("rank_low", np.fmin), ("rank_high", np.fmax)):
        united = getattr(measured, field)
        for ranking in rankings:
            values = getattr(ranking, field)
            if united is not None and values is not None:
                by_model = dict(zip(ranking.models, values.tolist(), strict=True))
                united = unite(united, [by_model.get(model, np.nan) for model in measured.models])
        ends[field] = united
    return replace(measured, **ends)


def _combine_verdicts(measured: Report, completed: Sequence[Report], leaders: Sequence[str]) -> tuple[VerdictLine, ...]:
    """Return the lines of measured scores; the answer is ``maybe`` where a completion has another one.

    Args:
        measured: of measured scores.
        completed: of each completion.
        leaders: that the leaderboard ranks first.
    """
    by_topic: dict[str, set[str]] = {}
    for report in completed:
        for line in _list_lines(report, leaders):
            by_topic.setdefault(line.topic, set()).add(line.leader_changes)
    return tuple(
        replace(line, leader_changes="maybe", text=f"{line.text} Missing scores can change this.")
        if line.leader_changes != "unknown" and by_topic.get(line.topic, set()) - {line.leader_changes}
        else line
        for line in _list_lines(measured, leaders)
    )


def _list_lines(report: Report, leaders: Sequence[str]) -> Sequence[VerdictLine]:
    return report.verdict(leaders) if callable(report.verdict) else report.verdict


def _find_ranges(reports: Mapping[str, Report], tests: Sequence[DeclaredTest]) -> list[TestRange]:
    """Return the p-values of each test that the first report has; 1 belongs to a leader that other reports lack."""
    every, ranges = [report.finding.metrics for report in reports.values()], []
    is_one_leader = len({frozenset(report.leaders) for report in reports.values()}) == 1
    for test in tests:
        metric = next((name for name in test.pvalues if isinstance(every[0].get(name), float)), None)
        if metric is not None:
            values = [value for metrics in every if isinstance(value := metrics.get(metric), float)]
            values += [1.0] if test.is_of_leader and not is_one_leader else []
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
