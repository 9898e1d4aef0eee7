"""Rows of findings, computed again from the data of their digests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import NotFoundError, SuffrageError
from tracker.integrity.row_hashes import Row
from tracker.queries.findings.finding_records import FindingRecord, get_finding
from tracker.recording.record import list_rows
from tracker.recording.repair.damage import Damage, read_scope
from tracker.recording.reproduction.rerun import Rerun, explain_no_rerun, rerun_finding
from tracker.schema import metadata

FINDING = "finding"
PARTS = (
    "finding_run", "finding_metric", "finding_artifact", "prompt_value", "task_value", "ranking", "filter_decision",
    "filter_reason",
)  # fmt: skip


class RerunRows:
    """The rows of findings, from reruns of their analyses."""

    label = "a rerun of its analysis"

    def __init__(self, engine: sa.Engine, connection: sa.Connection) -> None:
        self.engine = engine
        self.connection = connection
        self.problems: dict[str, str] = {}
        self._reruns: dict[int, list[Rerun]] = {}

    def find(self, damage: Damage) -> Iterator[list[Row]]:
        """Yield the rows of a scope of a finding."""
        name = damage.table.name
        if name != FINDING and name not in PARTS:
            return
        for rerun in self._load(damage.key):
            assert rerun.report is not None
            if name == FINDING:
                yield from self._finding_row(damage, rerun)
                continue
            with transaction(self.engine, write=False) as session:
                rows = list_rows(
                    session, damage.key, rerun.provenance, rerun.report, rerun.metrics, rerun.artifacts
                )  # fmt: skip
            yield [tuple(int(value) if isinstance(value, bool) else value for value in row) for row in rows[name]]

    def _load(self, key: int) -> list[Rerun]:
        if key not in self._reruns:
            self._reruns[key] = []
            try:
                with transaction(self.engine, write=False) as session:
                    record = get_finding(session, key)
                if problem := explain_no_rerun(record):
                    self.problems[f"finding {key}"] = problem
                else:
                    reruns = rerun_finding(self.engine, record)
                    self._reruns[key] = [rerun for rerun in reruns if rerun.report is not None]
            except (SuffrageError, ValueError, TypeError, KeyError) as error:  # a damaged row may hold anything
                self.problems[f"finding {key}"] = str(error)
        return self._reruns[key]

    def _finding_row(self, damage: Damage, rerun: Rerun) -> Iterator[list[Row]]:
        """Yield the present row with what a rerun returns; when it was recorded, and how long it took, stay."""
        present = read_scope(self.connection, damage.table, damage.key)
        if not present:
            return
        values = dict(zip(damage.table.columns.keys(), present[0], strict=False))
        yield [tuple((values | _recorded_values(rerun)).values())]


def may_restore(engine: sa.Engine, damage: Damage) -> bool:
    """Return whether a rerun may restore the rows of a finding."""
    if damage.table.name not in PARTS and damage.table.name != FINDING:
        return False
    try:
        with transaction(engine, write=False) as session:
            record: FindingRecord = get_finding(session, damage.key)
        return not explain_no_rerun(record)
    except (NotFoundError, SuffrageError, ValueError, TypeError, KeyError, sa.exc.SQLAlchemyError):
        return False


def _recorded_values(rerun: Rerun) -> dict[str, Any]:
    """Return the columns of a finding's row that a rerun determines, in the plain form."""
    report, provenance = rerun.report, rerun.provenance
    assert report is not None
    seed = provenance.parameters.get("seed")
    values = {
        "benchmark_id": provenance.benchmark_id,
        "analysis": provenance.analysis,
        "parameters": dict(provenance.parameters),
        "selection": provenance.selection.as_json() if provenance.selection else {},
        "seed": seed if isinstance(seed, int) else None,
        "input_digest": provenance.input_digest,
        "code_version": provenance.code_version,
        "status": "complete",
        "error": None,
        "headline": report.summary.headline,
        "evidence": list(report.summary.evidence),
        "caveats": list(report.summary.caveats),
        "warnings": list(report.warnings),
        "leader": ", ".join(report.leaders) or None,
    }
    as_json = {column.name for column in metadata.tables[FINDING].columns if isinstance(column.type, sa.JSON)}
    return {name: json.dumps(value) if name in as_json else value for name, value in values.items()}
