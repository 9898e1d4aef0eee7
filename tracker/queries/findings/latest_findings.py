"""Recorded findings as the input of a further analysis."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.findings.finding_records import FindingRecord, load_finding_records
from tracker.queries.resolution import benchmark_label, find_benchmark
from tracker.queries.selection import AnalysisInput, Selection
from tracker.queries.sql import tables

SIMULATED = "simulated"
"""Parameter of a finding about simulated scores, not about the benchmark's scores: describes them."""


@dataclass(frozen=True, kw_only=True)
class Findings(AnalysisInput):
    """Recorded findings of one analysis; a further analysis declares a subclass that names it.

    Attributes:
        analysis: name of the analysis, such as ``social-choice``.
        records: complete findings, latest first, each with its numbers, parameters, data and staleness.
        benchmarks: every stored benchmark, with or without a finding.
    """

    analysis: ClassVar[str]
    records: tuple[FindingRecord, ...]
    benchmarks: tuple[str, ...] = ()

    @classmethod
    def load(cls, session: Session, selection: Selection | None) -> Self:
        """Load all findings of the analysis, or those about the selection's benchmark."""
        finding, benchmark = tables.finding.c, tables.benchmark.c
        terms = [finding.analysis == cls.analysis, finding.status == "complete"]
        stored = session.execute(sa.select(benchmark.name, benchmark.revision).order_by(benchmark.name)).all()
        labels = [benchmark_label(name, revision) for name, revision in stored]
        if selection is not None:
            chosen = find_benchmark(session, selection.benchmark)
            terms.append(finding.benchmark_id == chosen.id)
            labels = [chosen.label]
        return cls(records=tuple(load_finding_records(session, *terms)), benchmarks=tuple(labels))

    @property
    def run_ids(self) -> tuple[int, ...]:
        """Runs behind the findings that are not stale: if one changes, so does the result."""
        return tuple(sorted({run for record in self.records if not record.stale for run in record.run_ids}))

    @property
    def digest(self) -> str:
        """SHA-256 of the findings' numbers, data, options and staleness."""
        hashed = hashlib.sha256(json.dumps(self.benchmarks).encode())
        for record in self.records:
            numbers = [(number.name, number.value, number.reason) for number in record.numbers]
            content = (
                record.id,
                record.benchmark,
                record.stale,
                record.parameters,
                record.selection,
                record.input_digest,
                numbers,
            )
            hashed.update(json.dumps(content, sort_keys=True).encode())
        return hashed.hexdigest()


@dataclass(frozen=True, kw_only=True)
class LatestFindings:
    """One finding per subject.

    Attributes:
        records: the latest suitable finding of each subject, in the order of the subjects' names.
        passed_over: subjects without a suitable finding, with the reason why the latest is unsuitable.
    """

    records: tuple[FindingRecord, ...]
    passed_over: Mapping[str, str]


def finding_subject(record: FindingRecord) -> str:
    """Return the subject of a finding: a benchmark, or what was simulated in its place."""
    simulated = str(record.parameters.get(SIMULATED) or "")
    return f"{record.benchmark} {simulated}".strip() if record.benchmark else simulated.capitalize()


def select_latest(
    records: Sequence[FindingRecord], unsuited: Callable[[FindingRecord], str], *, each: bool = False
) -> LatestFindings:
    """Return the latest suitable finding about each subject.

    Args:
        records: the latest first.
        unsuited: returns why a finding is unsuitable; '' if it is suitable.
        each: return every suitable finding, not only the latest.
    """
    chosen: dict[str, FindingRecord] = {}
    reasons: dict[str, str] = {}
    for record in records:
        about = f"{finding_subject(record)} #{record.id}" if each else finding_subject(record)
        if about in chosen:
            continue
        if reason := unsuited(record):
            reasons.setdefault(about, f"finding {record.id} {reason}")
        else:
            chosen[about] = record
    return LatestFindings(
        records=tuple(chosen[about] for about in sorted(chosen)),
        passed_over={about: reasons[about] for about in sorted(reasons) if about not in chosen},
    )
