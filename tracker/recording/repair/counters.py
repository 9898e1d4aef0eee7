"""Restore the counters of keys of a SQLite store after rows were added behind its back."""

from __future__ import annotations

from itertools import product

import sqlalchemy as sa

from tracker.integrity.stored_checksums import COUNTERS, compute_local_checksums, hash_local_rows, read_checksums

MAX_STEPS = 300
"""Keys after the largest one that are tried for each counter."""


def restore_counters(connection: sa.Connection) -> bool:
    """Set the counters to the values that have the recorded checksum; returns whether they have it in the end."""
    if connection.dialect.name != "sqlite":
        return True
    _, recorded = read_checksums(connection, COUNTERS)
    if not len(recorded):
        return False
    if (compute_local_checksums(connection)[COUNTERS][1] == recorded).all():
        return True
    names = list(connection.scalars(sa.text("SELECT name FROM sqlite_sequence ORDER BY name")))
    largest = [connection.scalar(sa.text(f'SELECT coalesce(max(id), 0) FROM "{name}"')) or 0 for name in names]
    for values in product(*(range(first, first + MAX_STEPS) for first in largest)):
        counters = list(zip(names, values, strict=True))
        if (hash_local_rows(counters) == recorded[0]).all():
            for name, value in counters:
                set_counter = sa.text("UPDATE sqlite_sequence SET seq = :value WHERE name = :name")
                connection.execute(set_counter, {"name": name, "value": value})
            return True
    return False
