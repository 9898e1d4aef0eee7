"""Which rows share a checksum.

Every row of every table is in one scope: the rows of a table with the same value in one column. A new table is covered
by its key without a change here, unless another column serves better.
"""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from tracker.schema import metadata

SCOPE_COLUMNS = {
    "answer": "run_id",
    "embedding": "prompt_id",
    "filter_decision": "finding_id",
    "filter_reason": "finding_id",
    "finding_artifact": "finding_id",
    "finding_metric": "finding_id",
    "finding_run": "finding_id",
    "model_alias": "model_id",
    "prompt_alias": "task_id",
    "prompt_value": "finding_id",
    "publication": "ref_id",
    "ranking": "finding_id",
    "run_source": "run_id",
    "score": "run_id",
    "sealed_metric": "run_id",
    "sealed_run": "run_id",
    "source_metric": "source_id",
    "task_alias": "benchmark_id",
    "task_score": "run_id",
    "task_value": "finding_id",
}
"""The column of tables that are not checked row by row, by ``id``."""

WHOLE = ("database",)
"""Tables with one checksum for all rows, under key 0."""

EXCLUDED = {
    "checksum": "holds the checksums: a changed one differs from the rows it belongs to",
    "score": "run.checksum is the checksum of a run's scores, and is itself part of the row of the run",
    "evaluation_lease": "leases end within a minute and hold nothing of the results",
}
"""Tables without a scope, with the reason."""


@cache
def covered_tables() -> tuple[sa.Table, ...]:
    """Return the tables whose rows have checksums, in the order data flows."""
    return tuple(table for table in metadata.sorted_tables if table.name not in EXCLUDED)


def scope_column(table: sa.Table) -> str | None:
    """Return the column whose value is the key of a row's scope; None if all rows are in scope 0."""
    return None if table.name in WHOLE else SCOPE_COLUMNS.get(table.name, "id")


@cache
def dependent_tables(parent: str) -> tuple[str, ...]:
    """Return the tables whose scopes end with a row of this table: their keys are keys of its rows."""
    return tuple(
        table.name
        for table in covered_tables()
        if (name := scope_column(table)) is not None
        and (
            (table.name == parent and name == "id")
            or any(key.column.table.name == parent and key.column.name == "id" for key in table.c[name].foreign_keys)
        )
    )


def describe_scope(table: str, key: int) -> str:
    """Return the name of a scope for messages, such as ``prompt 17`` or ``answer of run 5``."""
    column = SCOPE_COLUMNS.get(table, "id")
    if table in WHOLE or table not in metadata.tables:
        return table
    return f"{table} {key}" if column == "id" else f"{table} of {column.removesuffix('_id')} {key}"
