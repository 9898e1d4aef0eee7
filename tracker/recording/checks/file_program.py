"""A program that prints the damage of a SQLite file as JSON; it imports only what it needs, and starts in milliseconds.

It finds the same as `tracker.database.find_file_damage`, unless a table is left out: then SQLite checks each other
table with its indexes, but not whether each page of the file is used once.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing

TABLES = "SELECT 'sqlite_master' UNION ALL SELECT name FROM sqlite_master WHERE lower(type) = 'table'"


def find_damage(uri: str, timeout: str, ignore_checks: str, check_file: str, skipped: str) -> list[str]:
    """Return the lines of SQLite's check, without the table ``skipped`` if it is not empty."""
    with closing(sqlite3.connect(uri, uri=True, timeout=float(timeout))) as connection:
        connection.execute(ignore_checks)
        if not skipped:
            return _list_damage(connection, check_file)
        names = [name.replace('"', '""') for (name,) in connection.execute(TABLES) if name != skipped]
        return [line for name in names for line in _list_damage(connection, f'{check_file}("{name}")')]


def _list_damage(connection: sqlite3.Connection, statement: str) -> list[str]:
    return [str(line) for (line,) in connection.execute(statement) if line != "ok"]


if __name__ == "__main__":
    print(json.dumps(find_damage(*sys.argv[1:])))
