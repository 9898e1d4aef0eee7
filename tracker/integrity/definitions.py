"""The definitions of a store's tables, views, triggers and functions, as the catalogue of the database holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tracker.schema import metadata
from tracker.schema.search_index import TABLE
from tracker.schema.views import VIEWS

_SQLITE = """
SELECT type, name, tbl_name, sql FROM main.sqlite_master WHERE name NOT LIKE 'sqlite_%' AND
(tbl_name IN ({tables}) OR type IN ('view', 'trigger') OR name LIKE '{search}%')
"""
_POSTGRESQL = """
WITH home AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema()),
known AS (
    SELECT pg_class.oid, relname, relkind FROM pg_class JOIN home ON home.oid = relnamespace
    WHERE relname = ANY(%(names)s)
)
SELECT 'view', relname::text, pg_get_viewdef(oid) FROM known WHERE relkind = 'v'
UNION ALL
SELECT 'trigger', relname || '.' || tgname, concat_ws(
    ' ', tgtype, tgenabled, tgattr, tgqual, tgoldtable, tgnewtable, tgnargs, encode(tgargs, 'hex'), proname, prosrc
)
FROM known JOIN pg_trigger ON tgrelid = known.oid JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal
UNION ALL
SELECT 'function', proname::text, prosrc FROM pg_proc JOIN home ON home.oid = pronamespace
WHERE proname LIKE %(functions)s
UNION ALL
SELECT 'rule', tablename || '.' || rulename, definition FROM pg_rules
WHERE schemaname = current_schema() AND tablename = ANY(%(names)s)
"""
_SCHEMA = """
SELECT current_setting('search_path'), nspname::text
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE pg_class.oid = to_regclass('run')
"""


def read_definitions(connection: sa.Connection) -> list[Sequence[Any]]:
    """Return the definitions, in any order.

    On SQLite they are those of tables, indexes, views and triggers. On PostgreSQL, where migrations compare the tables,
    they are those of views, rules, triggers and functions; triggers of partitions are left out, since partitions come
    and go with benchmarks.

    Args:
        connection: an open transaction; its search path is the same afterwards.
    """
    cursor: Any = connection.connection.cursor()
    if connection.dialect.name == "sqlite":
        tables = ", ".join(f"'{name}'" for name in metadata.tables)
        rows: list[Sequence[Any]] = cursor.execute(_SQLITE.format(tables=tables, search=TABLE)).fetchall()
        return rows
    row = cursor.execute(_SCHEMA).fetchone()
    if row is None:
        return []
    path, schema = row
    set_path = "SELECT set_config('search_path', %s, true)"
    quoted = '"' + schema.replace('"', '""') + '"'
    cursor.execute(set_path, (quoted,))  # the text of a view names the tables outside of the path with a schema
    names = [*metadata.tables, *VIEWS, TABLE]
    rows = cursor.execute(_POSTGRESQL, {"names": names, "functions": f"{TABLE}%"}).fetchall()
    cursor.execute(set_path, (path,))
    return rows
