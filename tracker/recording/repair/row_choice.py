"""Choose, among the rows of a damaged store and those of another copy, the rows that have the recorded checksum.

A checksum is a sum of hashes, so each place where the two copies differ adds a known difference. The chosen
differences must sum to that of the recorded and the present checksum. With 128 bits no coincidence is to be expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.integrity.row_hashes import Row, canonical_json, column_kinds
from tracker.recording.repair.damage import hash_each_row

MAX_COMBINED = 12
"""Differences of which all combinations are tried; of more, all of them and each by itself."""

Key = tuple[object, ...]


def choose_rows(
    table: sa.Table, present: Sequence[Row], copied: Sequence[Row], expected: NDArray[np.uint64]
) -> list[Row] | None:
    """Return the rows of a scope that have the recorded checksum.

    Args:
        table: the table.
        present: rows of the damaged store, in the plain form.
        copied: rows of another copy.
        expected: ``(2,)`` recorded checksum.

    Returns:
        None if no tried combination of both has it.
    """
    if (_sum(table, copied) == expected).all():
        return list(copied)
    if len(present) == len(copied) == 1:
        return _mix_columns(table, present[0], copied[0], expected)
    before, after = _by_key(table, present), _by_key(table, copied)
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    hashes = [_hash_at(table, rows, keys) for rows in (before, after)]
    differences = hashes[1] - hashes[0]
    missing = expected - _sum(table, present)
    chosen = _find_sum(differences, missing)
    if chosen is None:
        return None
    return _replace_rows(before, after, [keys[place] for place in chosen])


def drop_stray_row(table: sa.Table, present: Sequence[Row], expected: NDArray[np.uint64]) -> list[Row] | None:
    """Return the present rows without the one that the checksum does not count; None if there is none like that."""
    hashes = hash_each_row(table, present)
    excess = hashes.sum(axis=0, dtype=np.uint64) - expected
    at = np.flatnonzero((hashes == excess).all(axis=1))
    return None if not len(at) else [row for place, row in enumerate(present) if place != at[0]]


def has_equal_rows(table: sa.Table, first: Sequence[Row], second: Sequence[Row]) -> bool:
    """Return whether two copies of a scope have the same content."""
    return bool((_sum(table, first) == _sum(table, second)).all())


def _mix_columns(table: sa.Table, present: Row, copied: Row, expected: NDArray[np.uint64]) -> list[Row] | None:
    """Return a row with the values of some columns of the copy: later changes by the program keep the others."""
    n_columns = len(table.columns)
    differing = [
        place
        for place, kind in enumerate(column_kinds(table))
        if _plain(present[place], kind) != _plain(copied[place], kind)
    ]
    rows = []
    for chosen in _choices(len(differing)):
        row = list(present[:n_columns])
        for take, place in zip(chosen, differing, strict=True):
            if take:
                row[place] = copied[place]
        rows.append(tuple(row))
    at = np.flatnonzero((hash_each_row(table, rows) == expected).all(axis=1))
    return [rows[at[0]]] if len(at) else None


def _choices(n: int) -> Iterator[Sequence[bool]]:
    if n <= MAX_COMBINED:
        yield from product((False, True), repeat=n)
        return
    yield [True] * n
    for place in range(n):
        yield [at == place for at in range(n)]


def _find_sum(differences: NDArray[np.uint64], missing: NDArray[np.uint64]) -> list[int] | None:
    """Return the places whose differences sum to what is missing; None if no tried combination does."""
    if len(differences) <= MAX_COMBINED:
        for chosen in product((False, True), repeat=len(differences)):
            at = np.flatnonzero(chosen)
            if (differences[at].sum(axis=0, dtype=np.uint64) == missing).all():
                return [int(place) for place in at]
        return None
    at = np.flatnonzero((differences == missing).all(axis=1))
    return [int(at[0])] if len(at) else None


def _replace_rows(before: dict[Key, Row], after: dict[Key, Row], keys: Sequence[Key]) -> list[Row]:
    rows = dict(before)
    for key in keys:
        if key in after:
            rows[key] = after[key]
        else:
            del rows[key]
    return list(rows.values())


def _hash_at(table: sa.Table, rows: dict[Key, Row], keys: Sequence[Key]) -> NDArray[np.uint64]:
    """Return the hash of the row with each key; zero where there is none."""
    hashes = np.zeros((len(keys), 2), dtype=np.uint64)
    places = [place for place, key in enumerate(keys) if key in rows]
    hashes[places] = hash_each_row(table, [rows[keys[place]] for place in places])
    return hashes


def _by_key(table: sa.Table, rows: Sequence[Row]) -> dict[Key, Row]:
    places = [place for place, column in enumerate(table.columns) if column.primary_key]
    return {tuple(_plain(row[place]) for place in places): row for row in rows}


def _plain(value: object, kind: str = "") -> object:
    """Return a text as bytes, since SQLite reads texts so and PostgreSQL does not; JSON in one spelling."""
    if kind == "json" and value is not None:
        return canonical_json(value)
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _sum(table: sa.Table, rows: Sequence[Row]) -> NDArray[np.uint64]:
    total: NDArray[np.uint64] = hash_each_row(table, rows).sum(axis=0, dtype=np.uint64)
    return total
