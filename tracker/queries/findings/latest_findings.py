"""What was concluded before, as the input of an analysis of several findings."""

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
"""Parameter of a finding that is about simulated scores, not about the benchmark's own: says which, in words."""


@dataclass(frozen=True, kw_only=True)
class Findings(AnalysisInput):
    """Recorded findings of one analysis; an analysis of them declares a subclass that names it.

    Attributes:
        analysis: whose findings, such as ``social-choice``.
        records: complete ones, the latest first, each with its numbers, parameters, data and staleness.
        benchmarks: every stored benchmark, with or without a finding.
    """

    analysis: ClassVar[str]
    records: tuple[FindingRecord, ...]
    benchmarks: tuple[str, ...] = ()

    @classmethod
    def load(cls, session: Session, selection: Selection | None) -> Self:
        """All findings of the analysis, or those about the selection's benchmark."""
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
        """Runs that those findings rest on which are not stale: when one changes, so does the answer."""
        return tuple(sorted({run for record in self.records if not record.stale for run in record.run_ids}))

    @property
    def digest(self) -> str:
        """SHA-256 of what was found, from what, by which options, and whether it is stale."""
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
    """One finding for each thing that there are findings about.

    Attributes:
        records: the latest that suits, in the order of the names of what they are about.
        passed_over: where none suits: what it is about, with the reason why the latest does not.
    """

    records: tuple[FindingRecord, ...]
    passed_over: Mapping[str, str]


def finding_subject(record: FindingRecord) -> str:
    """What a finding is about: a benchmark, or what was simulated in its place."""
    simulated = str(record.parameters.get(SIMULATED) or "")
    return f"{record.benchmark} {simulated}".strip() if record.benchmark else simulated.capitalize()


def select_latest(
    records: Sequence[FindingRecord], unsuited: Callable[[FindingRecord], str], *, each: bool = False
) -> LatestFindings:
    """The latest finding about each subject that suits.

    Args:
        records: the latest first.
        unsuited: why a finding cannot be taken, in words; '' where it can.
        each: take every finding that suits, not the latest only.
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
