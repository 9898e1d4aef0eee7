"""What a downgrade of a store loses: tables, columns and values that an earlier version cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from tracker.connections.schema_versions import preview_downgrade
from tracker.schema import metadata

Counts = Mapping[str, Mapping[str, int]]
"""By table: the number of rows under '', of values by column, and of rows by each word of a column with few words."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Something that a downgrade removes or changes.

    Attributes:
        table, column: its place; the column is '' for a whole table.
        n: number of rows of a table, or of values of a column.
        loss: what happens to them.
    """

    table: str
    column: str
    n: int
    loss: str


def list_losses(engine: sa.Engine, version: str) -> list[Loss]:
    """Return what a downgrade would remove or change; it is tried in a transaction that is rolled back.

    Raises:
        DatabaseError: the store cannot be written.
    """
    before, after = preview_downgrade(engine, version, _count)
    losses: list[Loss] = []
    for table, counts in before.items():
        if table not in after:
            losses.append(Loss(table=table, column="", n=counts[""], loss="the table is removed"))
            continue
        for column, n in counts.items():
            left = after[table].get(column, 0)
            if column and "=" not in column and column not in after[table]:
                losses.append(Loss(table=table, column=column, n=n, loss="the column is removed"))
            elif column and left < n:
                loss = "the values are replaced" if "=" in column else "the values are removed"
                losses.append(Loss(table=table, column=column, n=n - left, loss=loss))
            elif not column and left < n:
                losses.append(Loss(table=table, column="", n=n - left, loss="the rows are removed"))
    return [loss for loss in losses if loss.n]


def _count(connection: sa.Connection) -> Counts:
    """Count rows, values that are not the default, and rows for each word of the columns with limited words."""
    columns = sa.inspect(connection).get_multi_columns()
    present = {name: {column["name"] for column in reflected} for (_, name), reflected in columns.items()}
    counts: dict[str, dict[str, int]] = {}
    for table in metadata.sorted_tables:
        if table.name not in present:
            continue
        known = [column for column in table.columns if column.name in present[table.name]]
        values = [sa.func.count(sa.case((_has_value(column), 1))) for column in known]
        row = connection.execute(sa.select(sa.func.count(), *values).select_from(table)).one()
        counts[table.name] = dict(zip(("", *(column.name for column in known)), row, strict=True))
        for column in known:
            if f"ck_{table.name}_{column.name}" in {str(check.name) for check in table.constraints}:
                words = sa.select(column, sa.func.count()).group_by(column)
                counts[table.name] |= {f"{column.name}={word}": n for word, n in connection.execute(words)}
    return counts


def _has_value(column: sa.Column[object]) -> sa.ColumnElement[bool]:
    default = column.default.arg if isinstance(column.default, sa.ColumnDefault) else None
    if column.primary_key or default is None or callable(default) or not isinstance(default, (str, int, float)):
        return column.is_not(None)
    return column.is_distinct_from(default)
