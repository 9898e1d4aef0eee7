"""Compare what an analysis returns now with the stored rows of its finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.findings.finding_records import FindingRecord
from tracker.recording.artifacts import PARQUET, PNG, decode_table
from tracker.recording.record import list_rows
from tracker.recording.reproduction.rerun import Rerun
from tracker.schema import metadata

ARTIFACTS = "finding_artifact"
COMPARED = ("finding_metric", "prompt_value", "task_value", "ranking", "filter_decision", "filter_reason")
"""Tables whose rows must be equal; the runs of a finding are part of its digest."""

Rows = Mapping[tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What differs between a finding and its rerun.

    Attributes:
        differences: values that differ, each as text.
        other_bytes: files whose bytes differ while their data are equal, each as text.
    """

    differences: tuple[str, ...]
    other_bytes: tuple[str, ...]


def compare_rerun(session: Session, record: FindingRecord, rerun: Rerun) -> Comparison:
    """Compare the summary, metrics, values, rankings, filter decisions, tables and figures of a finding.

    Caveats and warnings are not compared: they also describe the present state of the store.

    Args:
        session: the store.
        record: the finding.
        rerun: with a report.
    """
    assert rerun.report is not None
    rows = list_rows(session, record.id, rerun.provenance, rerun.report, rerun.metrics, rerun.artifacts)
    differences = list(_compare_texts(record, rerun))
    for name in COMPARED:
        differences += _compare_rows(name, _read_rows(session, name, record.id), _by_key(name, rows[name]))
    stored, present = _read_rows(session, ARTIFACTS, record.id), _by_key(ARTIFACTS, rows[ARTIFACTS])
    differences += _compare_rows(ARTIFACTS, dict.fromkeys(stored, ()), dict.fromkeys(present, ()))
    other_bytes: list[str] = []
    redrawn: list[str] = []
    for key in sorted(stored.keys() & present.keys()):
        (_, name, kind, before), (_, _, _, after) = stored[key], present[key]
        if bytes(before) == bytes(after):
            continue
        if _has_equal_data(kind, bytes(before), bytes(after)):
            other_bytes.append(f"{name}: other bytes, equal data")
        elif kind == PNG:
            redrawn.append(name)
        else:
            differences.append(f"{name} differs")
    if differences:
        differences += [f"{name} differs" for name in redrawn]
    else:
        other_bytes += [f"{name}: drawn differently, from equal data" for name in redrawn]
    return Comparison(differences=tuple(differences), other_bytes=tuple(other_bytes))


def _compare_texts(record: FindingRecord, rerun: Rerun) -> Iterator[str]:
    assert rerun.report is not None
    before, after = record.summary, rerun.report.summary
    if before.headline != after.headline:
        yield f"headline: {before.headline!r}, now {after.headline!r}"
    if tuple(before.evidence) != tuple(after.evidence):
        yield "the evidence of the summary differs"


def _read_rows(session: Session, name: str, finding: int) -> Rows:
    table = metadata.tables[name]
    return _by_key(name, session.execute(sa.select(table).where(table.c.finding_id == finding)).all())


def _by_key(name: str, rows: Sequence[Sequence[Any]]) -> Rows:
    """Return rows by what identifies them in the finding."""
    table = metadata.tables[name]
    places = [place for place, column in enumerate(table.columns) if column.primary_key and column.name != "finding_id"]
    return {tuple(row[place] for place in places): tuple(row) for row in rows}


def _compare_rows(name: str, before: Rows, after: Rows) -> Iterator[str]:
    noun = name.replace("_", " ").removeprefix("finding ")
    for key in sorted(before.keys() | after.keys(), key=repr):
        label = f"{noun} {', '.join(map(str, key))}"
        if key not in after:
            yield f"{label} is missing now"
        elif key not in before:
            yield f"{label} is new"
        elif before[key] != after[key]:
            if name == "finding_metric" and before[key][2] is not None and after[key][2] is not None:
                yield f"{label}: {before[key][2]!r}, now {after[key][2]!r}"
            else:
                yield f"{label} differs"


def _has_equal_data(kind: str, before: bytes, after: bytes) -> bool:
    """Return whether two files hold the same table, or the same dots."""
    if kind == PARQUET:
        return bool(decode_table(before).equals(decode_table(after), check_metadata=True))
    if kind != PNG:
        return False
    from matplotlib.image import imread

    first, second = imread(BytesIO(before)), imread(BytesIO(after))
    return bool(np.array_equal(first, second))
