"""Rows of a temporary store in terms of a damaged one: names identify what both have, keys are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tracker.database import connect
from tracker.integrity.row_hashes import Row
from tracker.integrity.scopes import scope_column
from tracker.integrity.verification import snapshot
from tracker.name_lists import join_names
from tracker.recording.repair.damage import Damage, read_scope
from tracker.recording.repair.source_files import ImportedFile, import_again
from tracker.schema import metadata

NAMES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "benchmark": (("name", "revision"),),
    "task": (("benchmark_id", "name"),),
    "metric": (("name",),),
    "model": (("name",),),
    "source": (("identity",),),
    "prompt": (("task_id", "content_hash", "occurrence"),),
    "run": (("benchmark_id", "model_id", "condition", "variant", "label"),),
}
"""What identifies a row in both stores, for the tables with keys; each after those that it refers to."""
SCOPED = ("model_alias", "prompt_alias", "run_source", "score", "answer", "task_score")
MAX_UNNAMED = 500
"""Rows that are tried for a damaged one whose name does not identify it."""


class ImportedRows:
    """The rows of files that are imported again when they are needed first."""

    def __init__(self, store: sa.Connection, files: list[ImportedFile], folder: Path) -> None:
        self.store = store
        self.files = files
        self.folder = folder
        self.problems: dict[str, str] = {}
        self._keys: dict[str, dict[int, int]] = {}
        self._engine: sa.Engine | None = None

    @property
    def label(self) -> str:
        """Return the names of the first files."""
        names = join_names([file.path for file in self.files])
        return names if len(self.files) == 1 else f"one of {len(self.files):,} imported files: {names}"

    def find(self, damage: Damage) -> Iterator[list[Row]]:
        """Yield rows that may be those of a scope, with the keys of the damaged store.

        A caller that accepts rows stops the iteration. The row is then known by its key, and what refers to it too.
        """
        name = damage.table.name
        if not self.files or (name not in NAMES and name not in SCOPED):
            return
        with snapshot(self._imported()) as copy:
            self._keys = self._keys or self._match_keys(copy)
            parent = _parent(damage.table)
            keys = [key for key, stored in self._keys[parent].items() if stored == damage.key]
            if not keys:
                known = set(self._keys[parent])
                keys = [key for key in _list_keys(copy, parent) if key not in known][:MAX_UNNAMED]
            for key in keys:
                before = self._keys[parent].get(key)
                self._keys[parent][key] = damage.key
                rows = [self._translate(damage.table, row) for row in read_scope(copy, damage.table, key)]
                if rows and None not in rows:
                    yield [row for row in rows if row is not None]
                if before is None:
                    del self._keys[parent][key]

    def close(self) -> None:
        """Close the temporary store."""
        if self._engine is not None:
            self._engine.dispose()

    def _imported(self) -> sa.Engine:
        if self._engine is None:
            self._engine = connect(f"sqlite:///{self.folder / 'imported.db'}")
            for file in self.files:
                if problem := import_again(self.store, self._engine, file):
                    self.problems[str(file.path)] = problem
        return self._engine

    def _match_keys(self, copy: sa.Connection) -> dict[str, dict[int, int]]:
        """Return the key of the damaged store by the key of the copy, for each table with keys."""
        keys: dict[str, dict[int, int]] = {}
        for name, identities in NAMES.items():
            keys[name] = {}
            for columns in identities:
                stored = dict(_list_names(self.store, name, columns))
                for key, values in _list_identities(copy, name, columns, keys):
                    if (match := stored.get(values)) is not None:
                        keys[name].setdefault(key, match)
        self._match_aliases(copy, keys)
        return keys

    def _match_aliases(self, copy: sa.Connection, keys: dict[str, dict[int, int]]) -> None:
        """Match prompts by their names in files, which they keep when their text is damaged."""
        alias = metadata.tables["prompt_alias"].c
        query = sa.select(alias.task_id, alias.namespace, alias.key, alias.prompt_id)
        stored = {(task, space, key): prompt for task, space, key, prompt in self.store.execute(query)}
        for task, space, key, prompt in copy.execute(query):
            if (match := stored.get((keys["task"].get(task, -1), space, key))) is not None:
                keys["prompt"].setdefault(prompt, match)

    def _translate(self, table: sa.Table, row: Row) -> Row | None:
        """Return a row with the keys of the damaged store; None if it refers to a row that this store lacks."""
        values: list[Any] = list(row)
        for place, column in enumerate(table.columns):
            parent = next((key.column.table.name for key in column.foreign_keys), None)
            parent = table.name if column.name == "id" else parent
            if parent in self._keys and values[place] is not None:
                values[place] = self._keys[parent].get(values[place])
                if values[place] is None:
                    return None
        return tuple(values)


def _parent(table: sa.Table) -> str:
    """Return the table whose keys are those of the scopes of a table."""
    name = scope_column(table)
    assert name is not None
    return table.name if name == "id" else next(iter(table.c[name].foreign_keys)).column.table.name


def _list_keys(connection: sa.Connection, name: str) -> list[int]:
    return list(connection.scalars(sa.select(metadata.tables[name].c.id).order_by(metadata.tables[name].c.id)))


def _list_names(
    connection: sa.Connection, name: str, columns: tuple[str, ...]
) -> Iterator[tuple[tuple[Any, ...], int]]:
    table = metadata.tables[name]
    for key, *values in connection.execute(sa.select(table.c.id, *(table.c[column] for column in columns))):
        if None not in values:
            yield tuple(values), key


def _list_identities(
    copy: sa.Connection, name: str, columns: tuple[str, ...], keys: Mapping[str, Mapping[int, int]]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield keys of the copy with what identifies them in the damaged store."""
    for values, key in _list_names(copy, name, columns):
        translated = [
            keys[column.removesuffix("_id")].get(value) if column.endswith("_id") else value
            for column, value in zip(columns, values, strict=True)
        ]
        if None not in translated:
            yield key, tuple(translated)
