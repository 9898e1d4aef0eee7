"""The recorded tests of a benchmark, with p-values adjusted for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.name_lists import join_names
from tracker.queries.catalogue.listing import to_utc
from tracker.queries.sql import tables
from tracker.statistics.multiple_testing import holm_values

UNRECORDED = 0
"""Stands for the key of a finding where a report is not recorded."""
MAX_TESTS = 4
"""Tests of one report that its line names."""
NOT_COUNTED = "Tests that were not recorded are not counted."


@dataclass(frozen=True, kw_only=True)
class DeclaredTest:
    """A test of an analysis: a hypothesis, or a family of hypotheses that the analysis corrects for each other.

    Attributes:
        name: of what is tested, such as ``difference``.
        pvalues: metrics of which the first that is defined is the p-value; that of a family is already adjusted for it.
        n_tests: the metric with the number of hypotheses; '' if it is one.
        is_of_leader: whether it is about the model that is first.
    """

    name: str
    pvalues: tuple[str, ...]
    n_tests: str = ""
    is_of_leader: bool = False


Declared = Mapping[str, Sequence[DeclaredTest]]
"""The tests of each analysis, by its name."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One test, recorded or about to be.

    Findings of one analysis with the same data, selection and options are one look.

    Attributes:
        findings: keys of its findings, the earliest first; `UNRECORDED` for a report that is not recorded.
        analysis: name of the analysis.
        test: what is tested.
        n_tests: number of hypotheses; None if it is not recorded.
        pvalue: of its latest finding; that of a family is adjusted for the family.
        holm: the same adjusted for all looks at the benchmark.
        n_before: looks before it.
        recorded: when it was first recorded, UTC; None if it is not.
    """

    findings: tuple[int, ...]
    analysis: str
    test: str
    n_tests: int | None
    pvalue: float
    holm: float
    n_before: int
    recorded: datetime | None


@dataclass(frozen=True, kw_only=True)
class ReportMetrics:
    """The numbers of a report that can be p-values, and what they are computed from.

    Attributes:
        key: of its finding; `UNRECORDED` if it is not recorded.
        analysis: name of the analysis.
        about: parameters, selection and digest of the data: reports that are equal here have the same tests.
        recorded: when, UTC; None if it is not.
        metrics: defined metrics by name.
    """

    key: int
    analysis: str
    about: tuple[str, ...]
    recorded: datetime | None = None
    metrics: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def describe_data(parameters: Any, selection: Any, input_digest: str) -> tuple[str, ...]:
        """Return ``about``; the name of the benchmark is left out, since one benchmark may be named in several ways."""
        chosen = {name: value for name, value in (selection or {}).items() if name != "benchmark"}
        return (input_digest, json.dumps(parameters, sort_keys=True), json.dumps(chosen, sort_keys=True))


def list_looks(
    session: Session, benchmark_id: int, declared: Declared, unrecorded: ReportMetrics | None = None
) -> tuple[Look, ...]:
    """List the looks at a benchmark, the earliest first.

    Stale findings count too: their tests were seen, and each was a chance of a false verdict.

    Args:
        session: the store.
        benchmark_id: its key.
        declared: the tests of each analysis.
        unrecorded: a report whose tests are the latest.
    """
    reports = [*_load_reports(session, benchmark_id, declared), *([unrecorded] if unrecorded else [])]
    by_test: dict[tuple[str, ...], list[tuple[ReportMetrics, int | None, float]]] = {}
    for report in reports:
        for test in declared.get(report.analysis, ()):
            pvalue = next((report.metrics[name] for name in test.pvalues if name in report.metrics), None)
            if pvalue is not None:
                n_tests = report.metrics.get(test.n_tests) if test.n_tests else 1
                hit = (report, None if n_tests is None else int(n_tests), pvalue)
                by_test.setdefault((report.analysis, test.name, *report.about), []).append(hit)
    latest = [hits[-1] for hits in by_test.values()]
    pvalues = np.array([pvalue for *_, pvalue in latest], dtype=np.float64)
    is_family = np.array([n_tests != 1 for _, n_tests, _ in latest], dtype=np.bool_)
    adjusted = holm_values(pvalues, is_family).tolist()
    return tuple(
        Look(
            findings=tuple(report.key for report, *_ in hits),
            analysis=analysis,
            test=test,
            n_tests=hits[-1][1],
            pvalue=hits[-1][2],
            holm=holm,
            n_before=place,
            recorded=hits[0][0].recorded,
        )
        for place, (((analysis, test, *_), hits), holm) in enumerate(zip(by_test.items(), adjusted, strict=True))
    )


def _load_reports(session: Session, benchmark_id: int, declared: Declared) -> list[ReportMetrics]:
    """Return the complete findings of a benchmark, the earliest first, with the metrics that tests are declared by."""
    tests = [test for each in declared.values() for test in each]
    names = {name for test in tests for name in (*test.pvalues, test.n_tests) if name}
    finding, metric = tables.finding.c, tables.finding_metric.c
    about = (finding.parameters, finding.selection, finding.input_digest)
    stored = session.execute(
        sa.select(finding.id, finding.analysis, finding.recorded, metric.name, metric.value, *about)
        .join(tables.finding_metric, metric.finding_id == finding.id)
        .where(
            finding.benchmark_id == benchmark_id,
            finding.status == "complete",
            finding.analysis.in_(sorted(declared)),
            metric.name.in_(sorted(names)),
            metric.value.is_not(None),
        )
        .order_by(finding.id)
    )
    reports: dict[int, ReportMetrics] = {}
    for key, analysis, recorded, name, value, *data in stored:
        if key not in reports:
            reports[key] = ReportMetrics(
                key=key, analysis=analysis, about=ReportMetrics.describe_data(*data), recorded=to_utc(recorded)
            )
        reports[key].metrics[name] = value
    return [*reports.values()]


def describe_looks(looks: Sequence[Look], key: int, benchmark: str) -> str:
    """Return how many tests of a benchmark came before those of a report, and what Holm over all leaves of them.

    Args:
        looks: at the benchmark.
        key: of the finding, or `UNRECORDED`.
        benchmark: its name.

    Returns:
        One line; '' if the report has no test.
    """
    tests = [look for look in looks if key in look.findings]
    if not tests:
        return ""
    n_before = min(look.n_before for look in tests)
    n_after = len(looks) - n_before - len(tests)
    noun = "test" if len(tests) == 1 else "tests"
    left = [f"{look.holm:.2g} ({look.test})" for look in tests]
    n_repeated = sum(look.findings != (UNRECORDED,) for look in tests) if key == UNRECORDED else 0
    if n_repeated:
        n_recorded = len(looks) - len(tests) + n_repeated
        subject = "this one" if len(tests) == 1 else "these" if n_repeated == len(tests) else f"{n_repeated} of these"
        line = f"{benchmark} has {n_recorded} recorded test{'s' * (n_recorded != 1)}, {subject} among them"
    elif n_before or n_after or key == UNRECORDED:
        before = f"{n_before or 'no'} recorded test{'s' * (n_before != 1)} of {benchmark} came before"
        line = f"{before}{f', {n_after} after' if n_after else ''}"
    else:
        line = f"{'this is' if len(tests) == 1 else 'these are'} the first recorded {noun} of {benchmark}"
    number = "both" if len(looks) == 2 else f"all {len(looks)}"
    result = f". Holm over {number} leaves" if len(looks) > 1 else ", so Holm leaves"
    is_new = all(look.findings == (UNRECORDED,) for look in tests)
    not_counted = NOT_COUNTED
    if is_new:
        later = "this one" if len(tests) == 1 else "these"
        not_counted = f"Other tests that were not recorded are not counted, nor will {later} be later."
    return f"Looks: {line}{result} p = {join_names(left, MAX_TESTS)}. {not_counted}"
