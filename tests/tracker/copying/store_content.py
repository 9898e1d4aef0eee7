"""Everything that a store holds of catalogue and measurements, in words that two stores have in common.

Two stores are equal where this is: every column of every table, except keys that a store gives out by itself. What
refers to a row by its key is told by the row's own names instead. Rows with a key stand in the order of their keys. The
checksum of a run is made of keys; it is held to the run's own rows instead, in `content_of`.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from tracker import schema
from tracker.database import transaction
from tracker.ingest.write.checksums import verify_checksums
from tracker.schema import catalogue, measurements

TABLES = {
    name: described
    for name, described in schema.metadata.tables.items()
    if any(
        getattr(item, "__tablename__", None) == name
        for module in (catalogue, measurements)
        for item in vars(module).values()
        if getattr(item, "__module__", None) == module.__name__
    )
} | {}
OF_THE_STORE = {"database", "evaluation_lease"}
"""Tables that say which store it is, and when it was made."""
OF_KEYS = {("run", "checksum")}
NATURAL = {
    "benchmark": ("name", "revision"),
    "task": ("benchmark_id", "name"),
    "metric": ("name",),
    "model": ("name",),
    "source": ("identity",),
    "run": ("benchmark_id", "model_id", "condition", "variant", "label"),
    "encoder": ("name", "revision", "template"),
    "prompt": ("task_id", "content_hash", "occurrence"),
}


def content_of(engine: sa.Engine) -> dict[str, list[Any]]:
    """The rows of each table."""
    with transaction(engine, write=False) as session:
        assert verify_checksums(session) == []
        rows = {
            name: [dict(row) for row in session.execute(sa.select(described)).mappings()]
            for name, described in TABLES.items()
            if name not in OF_THE_STORE
        }
    for name in rows:
        if "id" in TABLES[name].c:
            rows[name].sort(key=lambda row: row["id"])
    aliases: dict[str, dict[int, Any]] = {}
    for name, parts in NATURAL.items():
        met: Counter[Any] = Counter()
        aliases[name] = {}
        for row in rows[name]:
            values = tuple(_resolve_value(name, part, row[part], aliases) for part in parts)
            aliases[name][row["id"]] = (
                *values,
                met[values],
            )  # prompts without text or names: one after the other
            met[values] += 1
    result = {}
    for name, listing in rows.items():
        kept = [
            {
                column: _resolve_value(name, column, value, aliases)
                for column, value in row.items()
                if column != "id" and (name, column) not in OF_KEYS
            }
            for row in listing
        ]
        result[name] = kept if name in NATURAL else sorted(kept, key=repr)
    return result


def _resolve_value(table: str, column: str, value: Any, aliases: dict[str, dict[int, Any]]) -> Any:
    described = TABLES[table].c[column]
    if described.foreign_keys and value is not None:
        (key,) = described.foreign_keys
        return aliases[key.column.table.name][value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(described.type, sa.JSON):
        # jsonb spells numbers its own way: 1e22 comes back as a whole number
        return json.loads(json.dumps(value, sort_keys=True), parse_int=float)
    return bytes(value) if isinstance(value, memoryview) else value
