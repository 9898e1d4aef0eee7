"""Triggers that hand every changed row to the transaction that changed it, on transactions of this program only.

A store holds checksums of what this program wrote. On SQLite the triggers are temporary: they belong to one connection
and call a function of it. On PostgreSQL they are part of the store, but do nothing unless the transaction has set
``suffrage.recording``; they collect the rows in a temporary table. A change by another program leaves the checksums as
they are, which is how it is detected.
"""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from tracker.integrity.row_hashes import TEXTS, column_kinds, plain_columns
from tracker.integrity.scopes import covered_tables

RECORD = "suffrage_record"
SETTING = "suffrage.recording"
CHANGED_ROWS = "suffrage_changed_row"
_EVENTS = {"insert": ("new",), "update": ("old", "new"), "delete": ("old",)}


@cache
def sqlite_triggers() -> dict[str, str]:
    """Return the statements that create the temporary triggers, by name.

    Each calls `RECORD` with the number of the table, whether there is an old row, the old row, and the new row. Texts
    are passed as bytes, since damaged ones may not be valid UTF-8.
    """
    statements = {}
    for number, table in enumerate(covered_tables()):
        for event, rows in _EVENTS.items():
            values = [
                f'CAST({row}."{column.name}" AS BLOB)' if kind in TEXTS else f'{row}."{column.name}"'
                for row in rows
                for column, kind in zip(table.columns, column_kinds(table), strict=True)
            ]
            arguments = ", ".join([str(number), str(int("old" in rows)), *values])
            name = f"record_{table.name}_{event}"
            statements[name] = (
                f'CREATE TEMP TRIGGER {name} AFTER {event} ON main."{table.name}" BEGIN '
                f"SELECT {RECORD}({arguments}); END"
            )
    return statements


def create_postgresql_triggers(connection: sa.Connection) -> None:
    """Create the triggers of all tables, and the functions they call."""
    for table in covered_tables():
        connection.exec_driver_sql(_postgresql_function(table).replace("%", "%%"))
        for event, rows in _EVENTS.items():
            names = " ".join(f"{row.upper()} TABLE AS {row}_rows" for row in rows)
            connection.exec_driver_sql(
                f'CREATE TRIGGER record_{event} AFTER {event} ON "{table.name}" REFERENCING {names} '
                f"FOR EACH STATEMENT EXECUTE FUNCTION record_{table.name}()"
            )


def drop_postgresql_triggers(connection: sa.Connection) -> None:
    """Drop the triggers and their functions, as far as they exist."""
    functions = connection.exec_driver_sql(
        "SELECT DISTINCT tgfoid::regproc::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND tgname IN ('record_insert', 'record_update', 'record_delete') "
        "AND relnamespace = current_schema()::regnamespace"
    )
    for name in functions.scalars().all():
        connection.exec_driver_sql(f"DROP FUNCTION {name}() CASCADE")


def _postgresql_function(table: sa.Table) -> str:
    parts = []
    for event, rows in _EVENTS.items():
        inserts = "".join(
            f"INSERT INTO pg_temp.{CHANGED_ROWS} SELECT '{table.name}', {'true' if row == 'old' else 'false'}, "
            f"json_build_array({', '.join(_json_values(table))})::text FROM {row}_rows AS changed; "
            for row in rows
        )
        parts.append(f"IF TG_OP = '{event.upper()}' THEN {inserts}END IF;")
    return f"""
CREATE FUNCTION record_{table.name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('{SETTING}', true) IS DISTINCT FROM 'on' THEN
        RETURN NULL;
    END IF;
    IF to_regclass('pg_temp.{CHANGED_ROWS}') IS NULL THEN
        CREATE TEMP TABLE {CHANGED_ROWS} (table_name text, removed boolean, content text) ON COMMIT DELETE ROWS;
        -- Cascades change rows as the owner of the tables; nobody outside of this session can read the table.
        GRANT ALL ON pg_temp.{CHANGED_ROWS} TO PUBLIC;
    END IF;
    {" ".join(parts)}
    RETURN NULL;
END $$
"""


def _json_values(table: sa.Table) -> list[str]:
    return [
        f"encode({value}, 'hex')" if kind == "bytes" else value
        for value, kind in zip(plain_columns(table, "postgresql", "changed"), column_kinds(table), strict=True)
    ]
