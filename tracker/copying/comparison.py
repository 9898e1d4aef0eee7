"""Compare the content of two stores, on either engine, by checksums of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import sqlalchemy as sa

from tracker.copying.engines import read_rows
from tracker.copying.store_copy import reading
from tracker.copying.values import RowsChecksum
from tracker.database import ensure_current
from tracker.errors import DatabaseError
from tracker.integrity.sealed_rows import list_moved
from tracker.schema import metadata

OF_A_PLACE = ("checksum", "database", "publication", "evaluation_lease", "sealed_metric", "sealed_run")
"""Tables about a store in one place: its checksums and identity, what it published, who is at work on it, and where
else its rows are."""
_SEALED = "SELECT run_id, digest, checksum, answer_checksum FROM sealed_run WHERE NOT rows_in_store ORDER BY run_id"
SCOPES = ("run_id", "finding_id", "encoder_id")
"""Columns whose rows are compared together; rows of other tables are compared one by one."""


@dataclass(frozen=True, kw_only=True)
class StoreDifference:
    """A part of two stores that differs.

    Attributes:
        table: its table.
        part: the run, finding or row.
        difference: ``only in the first``, ``only in the second`` or ``differs``.
    """

    table: str
    part: str
    difference: str


def compare_stores(
    first: sa.Engine, second: sa.Engine, progress: Callable[[int, int], None] | None = None
) -> list[StoreDifference]:
    """Return the parts of two stores that differ; empty if their content is equal.

    Each store is read in one snapshot. Rows are compared by key, so stores are equal if one is a copy of the other.

    Args:
        first, second: stores of this program's version.
        progress: called with the number of compared tables, and of all tables.

    Raises:
        DatabaseError: a store cannot be used, or rows of one store alone are in sealed files.
    """
    ensure_current(first, create=False)
    ensure_current(second, create=False)
    tables = [table for table in metadata.sorted_tables if table.name not in OF_A_PLACE]
    differences: list[StoreDifference] = []
    with reading(first) as one_side, reading(second) as other_side:
        _check_sealed(one_side, other_side)
        for place, table in enumerate(tables):
            differences += _compare_table(table, one_side, other_side)
            if progress is not None:
                progress(place + 1, len(tables))
    return differences


def _check_sealed(first: sa.Connection, second: sa.Connection) -> None:
    """Check that both stores have the rows of the same runs; those of the others are in the same sealed files.

    Raises:
        DatabaseError: they do not.
    """
    one_side, other_side = (
        {row.run_id: row for row in side.execute(sa.text(_SEALED))} if list_moved(side) else {}
        for side in (first, second)
    )
    if one_side != other_side:
        raise DatabaseError(
            "Scores of one of the stores are in sealed files, and those of the other are not, or in other files. Copy "
            "them back first: suffrage unseal --all"
        )


def _compare_table(table: sa.Table, first: sa.Connection, second: sa.Connection) -> Iterator[StoreDifference]:
    noun, checksums = _read_checksums(table, first)
    _, compared = _read_checksums(table, second)
    for key in sorted(checksums.keys() | compared.keys(), key=repr):
        if checksums.get(key) != compared.get(key):
            difference = "differs"
            if key not in compared:
                difference = "only in the first"
            elif key not in checksums:
                difference = "only in the second"
            yield StoreDifference(table=table.name, part=f"{noun} {key}", difference=difference)


def _read_checksums(table: sa.Table, connection: sa.Connection) -> tuple[str, dict[object, str]]:
    """Return the noun of the parts of a table, and the checksum of each part."""
    names = list(table.columns.keys())
    column = next((name for name in SCOPES if name in names and table.name != "finding"), None)
    places = [names.index(key.name) for key in table.primary_key] if column is None else [names.index(column)]
    noun = ", ".join(names[place] for place in places).removesuffix("_id") if column else ""
    sums: dict[object, RowsChecksum] = {}
    for rows in read_rows(connection, table):
        keys = [tuple(row[place] for place in places) for row in rows]
        ends = [*(np.flatnonzero([key != after for key, after in pairwise(keys)]) + 1).tolist(), len(keys)]
        start = 0
        for end in ends:  # rows of a part follow each other, where the key begins with it
            key = keys[start] if len(places) > 1 else keys[start][0]
            if key not in sums:
                sums[key] = RowsChecksum(table)
            sums[key].add(rows[start:end])
            start = end
    return noun or table.name, {key: f"{part.n_rows} {part.value}" for key, part in sums.items()}
