"""The recorded tests of a benchmark, with p-values adjusted for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy.orm import Session

from tracker.queries.findings.finding_records import load_finding_records
from tracker.queries.resolution import find_benchmark
from tracker.queries.sql import tables
from tracker.statistics.multiple_testing import holm_values


@dataclass(frozen=True, kw_only=True)
class RecordedTest:
    """The test behind the verdict of a finding.

    Attributes:
        finding: key of the finding.
        analysis: its name.
        test: name of the metric that is the p-value.
        pvalue: the p-value.
        holm: adjusted for all recorded tests of the benchmark.
        n_before: recorded tests of the benchmark before it.
        recorded: when it was recorded.
    """

    finding: int
    analysis: str
    test: str
    pvalue: float
    holm: float
    n_before: int
    recorded: datetime


def list_recorded_tests(
    session: Session, benchmark: str, declared: Mapping[str, Sequence[str]]
) -> tuple[RecordedTest, ...]:
    """List the recorded tests of a benchmark, newest first.

    Args:
        session: the store.
        benchmark: its name.
        declared: by analysis, the metrics that can be the p-value of its verdict; the first that is defined is.

    Raises:
        NotFoundError: the benchmark does not exist.
    """
    key = find_benchmark(session, benchmark).id
    tests = []
    for record in load_finding_records(session, tables.finding.c.benchmark_id == key):
        values = {number.name: number.value for number in record.numbers}
        defined = [name for name in declared.get(record.name, ()) if values.get(name) is not None]
        if defined:
            tests.append((record, defined[0], float(values[defined[0]] or 0.0)))
    adjusted = holm_values(np.array([pvalue for *_, pvalue in tests], dtype=np.float64)).tolist()
    return tuple(
        RecordedTest(
            finding=record.id,
            analysis=record.name,
            test=name,
            pvalue=pvalue,
            holm=holm,
            n_before=len(tests) - 1 - place,
            recorded=record.recorded,
        )
        for place, ((record, name, pvalue), holm) in enumerate(zip(tests, adjusted, strict=True))
    )
