"""Reproduce findings: run them again on the data of their digests, and report whether the bytes are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import SuffrageError, first_line
from tracker.name_lists import join_names
from tracker.queries.findings.finding_records import FindingRecord, get_finding, list_findings
from tracker.queries.findings.staleness import explain_staleness
from tracker.recording.declaration import load_declaration
from tracker.recording.reproduction.comparison import compare_rerun
from tracker.recording.reproduction.rerun import explain_no_rerun, rerun_finding
from tracker.recording.rerun_command import VERDICT
from tracker.version import __version__

Result = Literal["equal", "equal data", "differs", "data changed", "not run"]
MAX_DIFFERENCES = 5
UNKNOWN_CHANGE = "its runs are the same; their prompts, vectors, weights, filter or the findings it reads have changed"


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The result of running a finding again.

    Attributes:
        id: the finding.
        analysis: its name.
        benchmark: its benchmark; None for several.
        result: ``equal``: every byte; ``equal data``: every number and text, but a file has other bytes; ``differs``;
            ``data changed``: the store no longer holds the data of its digest, so it was not run; ``not run``: it
            cannot be run again.
        details: what differs or has changed; '' if everything is equal.
        code: the recorded version of the code and the present one if they differ, else ''.
    """

    id: int
    analysis: str
    benchmark: str | None
    result: Result
    details: str
    code: str


def list_reproducible(
    engine: sa.Engine, finding_ids: Sequence[int] = (), *, benchmark: str | None = None
) -> list[FindingRecord]:
    """Return findings to reproduce, earliest first: those with the keys, or the complete ones of a benchmark or of all.

    Raises:
        NotFoundError: a finding or the benchmark does not exist.
    """
    with transaction(engine, write=False) as session:
        keys = sorted(set(finding_ids)) or sorted(
            row.id for row in list_findings(session, benchmark=benchmark) if row.status == "complete"
        )
        return [get_finding(session, key) for key in keys]


def reproduce(engine: sa.Engine, records: Sequence[FindingRecord], *, workers: int = 1) -> Iterator[Reproduction]:
    """Run findings again, one after the other, without recording anything.

    Args:
        engine: the store.
        records: the findings.
        workers: number of parallel workers; -1 means one per core. The results do not depend on it.
    """
    for record in records:
        result, details = _reproduce(engine, record, workers)
        yield Reproduction(
            id=record.id,
            analysis=record.name,
            benchmark=record.benchmark,
            result=result,
            details=details,
            code=_compare_code(record),
        )


def summarize(reproductions: Sequence[Reproduction]) -> str:
    """Return the verdict on several reproductions in one sentence."""
    counts: Counter[str] = Counter(reproduction.result for reproduction in reproductions)
    n = len(reproductions)
    if not n:
        return "There are no findings to reproduce."
    verdict = f"{counts['equal']:,} of {n:,} finding{'s' * (n != 1)} reproduced byte for byte"
    parts = [
        f"{counts[result]:,} {text}"
        for result, text in (
            ("equal data", "with equal data in other bytes"),
            ("differs", "different"),
            ("data changed", "not compared, since the data have changed"),
            ("not run", "not run"),
        )
        if counts[result]
    ]
    return "; ".join([verdict, *parts]) + "."


def _reproduce(engine: sa.Engine, record: FindingRecord, workers: int) -> tuple[Result, str]:
    if problem := explain_no_rerun(record):
        return "not run", problem
    differences: tuple[str, ...] = ()
    try:
        for rerun in rerun_finding(engine, record, workers=workers):
            if rerun.report is None:
                return "data changed", _explain_change(engine, record) or UNKNOWN_CHANGE
            with transaction(engine, write=False) as session:
                comparison = compare_rerun(session, record, rerun)
            if not comparison.differences:
                texts = comparison.other_bytes
                return ("equal data", join_names(texts, MAX_DIFFERENCES)) if texts else ("equal", "")
            differences = differences or comparison.differences
    except SuffrageError as error:
        changes = _explain_change(engine, record)
        return ("data changed", changes) if changes else ("not run", first_line(error))
    return "differs", join_names(differences, MAX_DIFFERENCES)


def _explain_change(engine: sa.Engine, record: FindingRecord) -> str:
    """Return which runs of a finding have changed since; '' if none has."""
    with transaction(engine, write=False) as session:
        return explain_staleness(session, record.id)


def _compare_code(record: FindingRecord) -> str:
    """Return the recorded and the present version of the code; '' if they are equal, or the analysis is missing."""
    if record.name == VERDICT:
        present = f"suffrage {__version__}"
    elif explain_no_rerun(record):
        return ""
    else:
        present = load_declaration(record.name).code_version
    return "" if present == record.code_version else f"{record.code_version}, now {present}"
