"""What a store holds, and whether it is sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tracker import schema
from tracker.connections.schema_versions import current_version, known_versions
from tracker.copying.store_faults import find_store_faults
from tracker.database import create_unchecked_engine, transaction
from tracker.integrity.sealed_rows import IGNORED
from tracker.recording.checks.sealed_check import find_sealed_faults
from tracker.run_settings import USAGE
from tracker.schema.search_index import find_search_faults

VOLATILE = {
    "created", "ingested", "recorded", "timings", "published", "path", "environment", "started", "checksum",
    "address", "digest", "sealed",
}  # fmt: skip
"""Columns that differ between two runs of the same command. Checksums cover keys, and `find_unsound` verifies them."""
WITHOUT = {"checksum", "database", "undo_record", "publication", "evaluation_lease"}
"""Tables with random keys, times or addresses of MLflow."""

Contents = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class StoreState:
    """A store at one moment.

    Attributes:
        contents: the rows of all tables, with keys by order instead of by number, since those of rolled back rows are
            not used again; without records of failed analyses. Of another version, the version alone.
        faults: what is wrong with it; not looked for in another version.
        n_failed_analyses: the number of findings that say that an analysis failed.
    """

    contents: Contents
    faults: Sequence[str] = ()
    n_failed_analyses: int = 0


def read_state(url: str) -> StoreState:
    """Read a store, and look for faults."""
    engine = create_unchecked_engine(url).execution_options(**{IGNORED: True})
    try:
        if (version := current_version(engine)) != known_versions()[-1]:
            return StoreState({"version": [str(version)]})
        with transaction(engine, write=False) as session:
            connection = session.connection()
            checks = (find_store_faults, find_search_faults, find_sealed_faults)
            faults = [str(fault) for check in checks for fault in check(connection)]
            return StoreState(
                contents=_read_rows(connection),
                faults=faults,
                n_failed_analyses=connection.scalar(sa.text("SELECT count(*) FROM finding WHERE status = 'failed'"))
                or 0,
            )
    finally:
        engine.dispose()


def _read_rows(connection: sa.Connection) -> Contents:
    rows = {
        table.name: connection.execute(sa.select(table).order_by(*table.primary_key)).mappings().all()
        for table in schema.metadata.sorted_tables
        if table.name not in WITHOUT
    }
    failed = {row["id"] for row in rows["finding"] if row["status"] == "failed"}
    rows["finding"] = [row for row in rows["finding"] if row["id"] not in failed]
    rows["finding_run"] = [row for row in rows["finding_run"] if row["finding_id"] not in failed]
    places = {
        name: {row["id"]: number for number, row in enumerate(found_rows)}
        for name, found_rows in rows.items()
        if found_rows and "id" in found_rows[0]
    }

    def normalize(table: sa.Table, row: Mapping[str, object]) -> str:
        values = {}
        for column in table.columns:
            if column.name in VOLATILE:
                continue
            parent = next((key.column.table.name for key in column.foreign_keys), None)
            parent = {"prompt_id": "prompt", "metric_id": "metric"}.get(column.name, parent)
            parent = table.name if column.name == "id" else parent
            value = row[column.name]
            if isinstance(value, dict) and USAGE in value:  # it has seconds
                value = {**value, USAGE: value[USAGE].get("n_prompts")}
            values[column.name] = places.get(parent, {}).get(value, value) if parent else value
        return repr(values)

    return {
        table.name: sorted(normalize(table, row) for row in rows[table.name])
        for table in schema.metadata.sorted_tables
        if table.name in rows
    }
