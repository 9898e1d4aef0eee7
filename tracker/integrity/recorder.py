"""Record the changes of each write transaction, and add them to the checksums just before it commits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

if TYPE_CHECKING:
    from tracker.integrity.stored_checksums import ScopeChanges

OPTION = "recording"
"""Execution option of connections whose transactions keep the checksums."""

MAX_WAITING = 2_000
"""Changed rows of a table that wait to be hashed together."""

_INFO = "suffrage.changes"


class ChangeRecorder:
    """The rows that the transaction of a connection has added and removed so far.

    Attributes:
        is_recording: whether the transaction keeps the checksums; the triggers of SQLite outlive their transaction.
    """

    def __init__(self) -> None:
        self.is_recording = True
        self.clear()

    def clear(self) -> None:
        """Forget all changes."""
        self._waiting: dict[tuple[int, bool], list[Sequence[Any]]] = {}
        self._changes: ScopeChanges | None = None

    def record(self, number: int, has_old: int, *values: Any) -> None:
        """Record a changed row; called by the triggers of SQLite."""
        if not self.is_recording:
            return
        from tracker.integrity.scopes import covered_tables

        n_columns = len(covered_tables()[number].columns)
        if has_old:
            self._wait(number, True, values[:n_columns])
            values = values[n_columns:]
        if values:
            self._wait(number, False, values)

    def record_rows(self, table: sa.Table, rows: Sequence[Sequence[Any]], *, removed: bool = False) -> None:
        """Record rows in the plain form at once."""
        self.changes.add_rows(table, rows, removed=removed)

    @property
    def changes(self) -> ScopeChanges:
        """Return the sum of the changes that are hashed."""
        if self._changes is None:
            from tracker.integrity.stored_checksums import ScopeChanges

            self._changes = ScopeChanges()
        return self._changes

    def write(self, connection: sa.Connection) -> None:
        """Add all changes to the stored checksums."""
        for number, removed in list(self._waiting):
            self._hash_waiting(number, removed)
        if connection.dialect.name == "postgresql":
            self._read_changed_rows(connection)
        if self._changes is not None:
            self._changes.write(connection)

    def _wait(self, number: int, removed: bool, row: Sequence[Any]) -> None:
        rows = self._waiting.setdefault((number, removed), [])
        rows.append(row)
        if len(rows) >= MAX_WAITING:
            self._hash_waiting(number, removed)

    def _hash_waiting(self, number: int, removed: bool) -> None:
        from tracker.integrity.scopes import covered_tables

        self.record_rows(covered_tables()[number], self._waiting.pop((number, removed)), removed=removed)

    def _read_changed_rows(self, connection: sa.Connection) -> None:
        """Read the rows that the triggers of PostgreSQL collected."""
        from tracker.integrity.change_triggers import CHANGED_ROWS
        from tracker.schema import metadata

        raw: Any = connection.connection
        with raw.cursor() as cursor:
            cursor.execute(f"SELECT to_regclass('pg_temp.{CHANGED_ROWS}')")
            if cursor.fetchone()[0] is None:
                return
        with raw.cursor(name="changed_rows") as cursor:
            cursor.execute(f"SELECT table_name, removed, content FROM pg_temp.{CHANGED_ROWS}")
            while batch := cursor.fetchmany(MAX_WAITING):
                grouped: dict[tuple[str, bool], list[Sequence[Any]]] = {}
                for name, removed, content in batch:
                    grouped.setdefault((name, removed), []).append(_plain_row(metadata.tables[name], content))
                for (name, removed), rows in grouped.items():
                    self.record_rows(metadata.tables[name], rows, removed=removed)


def record_changes(engine: sa.Engine) -> None:
    """Let the transactions of an engine keep the checksums, if their connection has the option `OPTION`."""
    event.listen(engine, "commit", _write_changes)
    event.listen(engine, "rollback", _forget_changes)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "begin", _begin_recording)


def prepare_recording(connection: sa.Connection) -> None:
    """Let the next transaction of a SQLite connection be recorded, or not.

    The temporary triggers are created before the first recorded transaction of a connection, and remain.
    """
    recorder: ChangeRecorder | None = connection.info.get(_INFO)
    if not connection.get_execution_options().get(OPTION):
        if recorder is not None:
            recorder.clear()
            recorder.is_recording = False
        return
    raw: Any = connection.connection.dbapi_connection
    has_checksums, n_triggers = raw.execute(_STATE).fetchone()
    if not has_checksums:
        if recorder is not None:
            stop_recording(connection)
        return
    recorder = connection.info.setdefault(_INFO, ChangeRecorder())
    recorder.clear()
    recorder.is_recording = True
    from tracker.integrity.change_triggers import sqlite_triggers

    if n_triggers != len(sqlite_triggers()):
        _create_triggers(raw, recorder)


_STATE = (
    "SELECT (SELECT count(*) FROM main.sqlite_master WHERE name = 'checksum'), "
    "(SELECT count(*) FROM temp.sqlite_master WHERE type = 'trigger' AND name LIKE 'record_%')"
)


def _create_triggers(raw: Any, recorder: ChangeRecorder) -> None:
    """Create the temporary triggers of a SQLite connection."""
    from tracker.integrity.change_triggers import RECORD, sqlite_triggers

    raw.create_function(RECORD, -1, recorder.record)
    drops = [f"DROP TRIGGER IF EXISTS temp.{name}" for name in sqlite_triggers()]
    try:
        raw.executescript(";\n".join(["BEGIN", *drops, *sqlite_triggers().values(), "COMMIT"]))
    except BaseException:
        raw.rollback()
        raise


def stop_recording(connection: sa.Connection) -> None:
    """Drop the temporary triggers of a SQLite connection."""
    raw: Any = connection.connection.dbapi_connection
    connection.info.pop(_INFO, None)
    query = "SELECT name FROM temp.sqlite_master WHERE type = 'trigger' AND name LIKE 'record_%'"
    for (name,) in raw.execute(query).fetchall():
        raw.execute(f"DROP TRIGGER temp.{name}")


@contextmanager
def recorded_rows(connection: sa.Connection, table: sa.Table, rows: Sequence[Sequence[Any]]) -> Iterator[None]:
    """Insert many rows in the block without triggers: they are hashed from the passed values.

    Args:
        connection: the connection of the transaction.
        table: the table.
        rows: values of all columns in order, in the plain form.
    """
    recorder: ChangeRecorder | None = connection.info.get(_INFO)
    if recorder is None or not recorder.is_recording:
        yield
        return
    raw: Any = connection.connection
    if connection.dialect.name == "sqlite":
        from tracker.integrity.change_triggers import sqlite_triggers

        name = f"record_{table.name}_insert"
        raw.execute(f"DROP TRIGGER IF EXISTS temp.{name}")
        yield
        raw.execute(sqlite_triggers()[name])
    else:
        _set_recording(connection, "off")
        yield
        _set_recording(connection, "on")
    recorder.record_rows(table, rows)


@contextmanager
def unrecorded(connection: sa.Connection) -> Iterator[None]:
    """Leave checksums as they are while rows are moved in the block, to or from sealed files."""
    recorder: ChangeRecorder | None = connection.info.get(_INFO)
    if recorder is None or not recorder.is_recording:
        yield
        return
    is_postgresql = connection.dialect.name == "postgresql"
    recorder.is_recording = False
    if is_postgresql:
        _set_recording(connection, "off")
    try:
        yield
    finally:
        recorder.is_recording = True
    if is_postgresql:
        _set_recording(connection, "on")


def _begin_recording(connection: sa.Connection) -> None:
    connection.info.pop(_INFO, None)
    if connection.get_execution_options().get(OPTION):
        connection.info[_INFO] = ChangeRecorder()
        _set_recording(connection, "on")


def _set_recording(connection: sa.Connection, value: str) -> None:
    from tracker.integrity.change_triggers import SETTING

    connection.exec_driver_sql(f"SELECT set_config('{SETTING}', '{value}', true)")


def _write_changes(connection: sa.Connection) -> None:
    recorder: ChangeRecorder | None = connection.info.get(_INFO)
    if recorder is not None and recorder.is_recording:
        recorder.write(connection)
        recorder.clear()


def _forget_changes(connection: sa.Connection) -> None:
    if connection.invalidated:  # a lost connection has lost its changes, and cannot be used before the rollback
        return
    recorder: ChangeRecorder | None = connection.info.get(_INFO)
    if recorder is not None:
        recorder.clear()


def _plain_row(table: sa.Table, content: str) -> list[Any]:
    """Return a row that a trigger wrote as JSON."""
    from tracker.integrity.row_hashes import column_kinds

    values: list[Any] = json.loads(content)
    for place, kind in enumerate(column_kinds(table)):
        if values[place] is not None and kind == "bytes":
            values[place] = bytes.fromhex(values[place])
        elif values[place] is not None and kind == "number":
            values[place] = float(values[place])
    return values
