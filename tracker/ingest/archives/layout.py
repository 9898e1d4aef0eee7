"""Layout of an archive: a zip of Parquet tables, one for each table of catalogue and measurements.

The columns are those of the schema, without keys. A row is identified by its index in its table, starting at 0.
References are such indices, in columns named without ``_id``. Rows are sorted by key; rows without a key follow the
order of the rows that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.schema import metadata

if TYPE_CHECKING:
    import pyarrow as pa

MARK = "suffrage-archive"
"""Name of the first member, which holds the version and identifies the format."""
MANIFEST = "manifest.json"
VERSION = 1

ROW_ORDER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "benchmark": ("id",),
        "task": ("id",),
        "metric": ("id",),
        "model": ("id",),
        "model_alias": ("model_id", "name"),
        "source": ("id",),
        "prompt": ("id",),
        "prompt_alias": ("prompt_id", "namespace", "key"),
        "run": ("id",),
        "run_source": ("run_id", "source_id"),
        "score": ("run_id", "metric_id", "prompt_id", "trial"),
        "answer": ("run_id", "prompt_id", "extraction", "trial"),
        "task_score": ("run_id", "metric_id", "task_id"),
        "encoder": ("id",),
        "embedding": ("encoder_id", "prompt_id"),
    }
)
"""The tables, each after those that it refers to, with the columns that sort its rows."""

DERIVED_COLUMNS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "benchmark": frozenset({"default_metric_id"}),  # a choice of each store
        "run": frozenset({"checksum"}),  # hash of keys; computed again from the same rows
        "prompt_alias": frozenset({"task_id"}),  # the task of the prompt
        "embedding": frozenset({"id"}),
    }
)
"""Columns that are derived from others, or belong to the store alone."""

TABLES_BY_RUN = ("score", "answer", "task_score", "run_source")
"""Tables that are read run by run."""


@dataclass(frozen=True)
class ArchiveColumn:
    """A column of an archive.

    Attributes:
        name: name in the archive.
        stored: name in the store.
        kind: type of its values.
        nullable: whether its values may be null.
        refers_to: table that its row indices refer to; None for a value.
    """

    name: str
    stored: str
    kind: sa.types.TypeEngine[object]
    nullable: bool
    refers_to: str | None = None

    @property
    def arrow(self) -> pa.DataType:
        """Return its type in the file."""
        import pyarrow as pa

        if self.refers_to is not None:
            return pa.int32()
        kinds: tuple[tuple[type, pa.DataType], ...] = (
            (sa.JSON, pa.string()),
            (sa.BigInteger, pa.int64()),
            (sa.Boolean, pa.bool_()),
            (sa.Integer, pa.int32()),
            (sa.Float, pa.float64()),
            (sa.DateTime, pa.timestamp("us", "UTC")),
            (sa.Date, pa.date32()),
            (sa.LargeBinary, pa.binary()),
            (sa.String, pa.string()),
        )
        kind = self.kind.impl if isinstance(self.kind, sa.TypeDecorator) else self.kind
        return next(arrow for sql_type, arrow in kinds if isinstance(kind, sql_type))

    @property
    def is_json(self) -> bool:
        """Return whether its texts are JSON."""
        return isinstance(self.kind, sa.JSON)


@lru_cache
def archive_columns(table: str) -> tuple[ArchiveColumn, ...]:
    """Return the columns of a table in an archive, in the order of the schema."""
    described = metadata.tables[table]
    has_key = ROW_ORDER[table] == ("id",)
    columns = []
    for column in described.columns:
        if (has_key and column.name == "id") or column.name in DERIVED_COLUMNS.get(table, ()):
            continue
        refers_to = next((key.column.table.name for key in column.foreign_keys), None)
        name = column.name.removesuffix("_id") if refers_to else column.name
        columns.append(ArchiveColumn(name, column.name, column.type, bool(column.nullable), refers_to))
    return tuple(columns)


def archive_schema(table: str) -> pa.Schema:
    """Return the columns of a table as they are in its Parquet file."""
    import pyarrow as pa

    return pa.schema(
        [pa.field(column.name, column.arrow, nullable=column.nullable) for column in archive_columns(table)]
    )


def member_name(table: str) -> str:
    """Return the name of a table's file in the archive."""
    return f"{table}.parquet"
