"""Whether a fault changed anything: the bytes of files, and each row version of a database of PostgreSQL."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import psycopg
import sqlalchemy as sa
from operations import Place

LOGS = {"fault.log", "n_calls.txt", "disturbed.txt"}
"""Files that the tests write."""
CATALOGUES = ("pg_class", "pg_attribute", "pg_constraint", "pg_index", "pg_trigger", "pg_proc", "pg_depend")
"""Where PostgreSQL keeps definitions. A copy of a database has the same row versions as its template."""
RELATIONS = """
    SELECT c.oid::regclass::text, relkind = 'S' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE relkind IN ('r', 'S') AND nspname NOT LIKE 'pg_%' AND nspname <> 'information_schema'
"""

SEQUENCE = "sequence "
"""Starts the name of a sequence in a fingerprint."""

Fingerprint = Mapping[str, object]


def take_fingerprint(place: Place) -> Fingerprint:
    """Return a fingerprint of the files of a place and of its store.

    Two are equal only if nothing was written and kept. A sequence of PostgreSQL differs as well once it has given out a
    number, even in a transaction that was rolled back.
    """
    for path in place.folder.glob("*.db"):
        _close_log(path)
    files = {
        str(path.relative_to(place.folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in place.folder.rglob("*")
        if path.name not in LOGS
    }
    return {**files, **_read_row_versions(place.url)} if place.url.startswith("postgresql") else files


def list_changes(first: Fingerprint, second: Fingerprint) -> tuple[set[str], set[str]]:
    """Return the names of what differs: files, tables and definitions; and sequences."""
    names = {name for name in {*first, *second} if first.get(name) != second.get(name)}
    sequences = {name for name in names if name.startswith(SEQUENCE)}
    return names - sequences, sequences


def _close_log(path: Path) -> None:
    """Let SQLite recover a file whose process ended, as the next connection would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _read_row_versions(url: str) -> Fingerprint:
    address = sa.make_url(url).set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False)) as connection:
        parts = [
            f"SELECT '{SEQUENCE}{name}', last_value, is_called::int FROM {name}"
            if is_sequence
            else f"SELECT '{name}', count(*), sum(hashtext(t.ctid || ' ' || t.xmin || ' ' || t::text)) FROM {name} t"
            for name, is_sequence in connection.execute(RELATIONS)
        ]
        parts += [f"SELECT '{name}', count(*), sum(hashtext(ctid || ' ' || xmin)) FROM {name}" for name in CATALOGUES]
        query = " UNION ALL ".join(parts)
        return {str(name): sums for name, *sums in connection.execute(query.encode())}
