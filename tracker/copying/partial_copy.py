"""Copy catalogue and measurements of a store, or a part of them, into a new SQLite file: an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from tracker.connections.driver_errors import explained_errors
from tracker.connections.schema_versions import upgrade
from tracker.copying.engines import fill_table, read_rows
from tracker.copying.store_copy import naming_table, reading, writing
from tracker.copying.values import Row
from tracker.database import create_unchecked_engine, ensure_current
from tracker.integrity.sealed_rows import list_moved, raise_for_moved
from tracker.integrity.stored_checksums import replace_checksums
from tracker.schema import metadata

MEASUREMENTS = (
    "benchmark", "task", "metric", "model", "model_alias", "source", "prompt", "prompt_alias", "run", "run_source",
    "score", "answer", "task_score", "encoder", "embedding",
)  # fmt: skip
"""The tables of an archive, each after those that it refers to."""
OWN_CHOICES = {"benchmark": "default_metric_id"}
"""By table, a column that belongs to one store: a choice of its users."""


@dataclass(frozen=True, kw_only=True)
class StorePart:
    """A part of a store.

    Attributes:
        benchmarks: keys of benchmarks; empty for all.
        models: keys of models, whose runs it has; empty for all.
        runs: keys of runs; empty for all.
    """

    benchmarks: Sequence[int] = ()
    models: Sequence[int] = ()
    runs: Sequence[int] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of the store."""
        return not (self.benchmarks or self.models or self.runs)

    def terms(self, table: str) -> str:
        """Return the condition for the rows of a table: runs, all prompts of their benchmarks, and what they need."""
        if self.is_whole:
            return "1 = 1"
        columns = {"benchmark_id": self.benchmarks, "model_id": self.models, "id": self.runs}
        chosen = " AND ".join(f"{name} IN ({_join(keys)})" for name, keys in columns.items() if keys)
        runs = f"SELECT id FROM run WHERE {chosen}"
        of_runs = f"SELECT benchmark_id FROM run WHERE {chosen}"
        benchmarks = _join(self.benchmarks) if self.benchmarks else of_runs
        prompts = f"SELECT id FROM prompt WHERE task_id IN (SELECT id FROM task WHERE benchmark_id IN ({benchmarks}))"
        models = f"SELECT model_id FROM run WHERE {chosen}"
        scored = " UNION ".join(f"SELECT metric_id FROM {t} WHERE run_id IN ({runs})" for t in ("score", "task_score"))
        terms = {
            "benchmark": f"id IN ({benchmarks})",
            "task": f"benchmark_id IN ({benchmarks})",
            "metric": f"id IN ({scored})",
            "model": f"id IN ({models})",
            "model_alias": f"model_id IN ({models})",
            # A file that is only partly included must not count as ingested.
            "source": f"id IN (SELECT source_id FROM run_source WHERE run_id IN ({runs})) AND id NOT IN "
            f"(SELECT source_id FROM run_source WHERE run_id NOT IN ({runs}))",
            "prompt": f"id IN ({prompts})",
            "prompt_alias": f"prompt_id IN ({prompts})",
            "run": chosen,
            "encoder": f"id IN (SELECT encoder_id FROM embedding WHERE prompt_id IN ({prompts}))",
            "embedding": f"prompt_id IN ({prompts})",
        }
        if table == "run_source":
            return f"run_id IN ({runs}) AND source_id IN (SELECT id FROM source WHERE {terms['source']})"
        return terms.get(table, f"run_id IN ({runs})")


@dataclass(frozen=True, kw_only=True)
class PartialCopyResult:
    """The content of an archive.

    Attributes:
        n_rows: rows by table.
        n_findings: findings on its benchmarks, which are not included.
        n_files_left_out: source files of which the archive holds only a part, and which it does not list.
    """

    n_rows: Mapping[str, int]
    n_findings: int
    n_files_left_out: int


def copy_part(
    source: sa.Engine, path: Path, part: StorePart | None = None, progress: Callable[[int, int], None] | None = None
) -> PartialCopyResult:
    """Copy a part of a store into a new SQLite store, with unchanged keys.

    Args:
        source: a store of this program's version; the copy is a snapshot, whatever others write meanwhile.
        path: an empty or missing file.
        part: the part; None for all of catalogue and measurements.
        progress: called with the number of written tables, and of all tables.

    Raises:
        SealedRowsError: rows of the part are in sealed files only.
        DatabaseError: a store cannot be used, or rows of the source refer to missing rows.
    """
    part = part or StorePart()
    ensure_current(source, create=False)
    target = create_unchecked_engine(f"sqlite:///{path}")
    try:
        upgrade(target)
        with reading(source) as origin, writing(target) as copy:
            runs = set(origin.scalars(sa.text(f"SELECT id FROM run WHERE {part.terms('run')}")))
            raise_for_moved(source, runs & list_moved(origin).keys())
            n_rows = {}
            for place, name in enumerate(MEASUREMENTS):
                table = metadata.tables[name]
                rows = _CountedRows(_without_lost(name, part, origin, read_rows(origin, table, part.terms(name))))
                with naming_table(table, target):
                    fill_table(copy, table, rows)
                n_rows[name] = rows.n
                if progress is not None:
                    progress(place + 1, len(MEASUREMENTS))
            replace_checksums(copy)
            result = PartialCopyResult(
                n_rows=n_rows,
                n_findings=_count(origin, "finding", "1 = 1" if part.is_whole else _about(part)),
                n_files_left_out=_count_files(origin, part) - n_rows["source"],
            )
        with explained_errors(target), target.connect() as connection:  # a file by itself, without a log beside it
            connection.connection.dbapi_connection.execute("PRAGMA journal_mode=DELETE")  # type: ignore[union-attr]
    finally:
        target.dispose()
    return result


class _CountedRows:
    """Batches of rows that are counted while they are read."""

    def __init__(self, batches: Iterable[Sequence[Row]]) -> None:
        self.batches, self.n = batches, 0

    def __iter__(self) -> Iterator[Sequence[Row]]:
        for rows in self.batches:
            self.n += len(rows)
            yield rows


def _without_lost(
    name: str, part: StorePart, origin: sa.Connection, batches: Iterable[Sequence[Row]]
) -> Iterator[Sequence[Row]]:
    """Clear choices of the store's users, and references of runs to runs outside of the part."""
    table, kept = metadata.tables[name], None
    column = "superseded_by" if name == "run" else OWN_CHOICES.get(name)
    place = None if column is None else list(table.columns.keys()).index(column)
    if name == "run":
        kept = set(origin.scalars(sa.text(f"SELECT id FROM run WHERE {part.terms('run')}")))
    for rows in batches:
        if place is None:
            yield rows
        else:
            known = kept or set()
            yield [row if row[place] in known else (*row[:place], None, *row[place + 1 :]) for row in map(tuple, rows)]


def _about(part: StorePart) -> str:
    """Return the condition for the findings on the benchmarks of a part."""
    return part.terms("task")


def _count_files(origin: sa.Connection, part: StorePart) -> int:
    if part.is_whole:
        return _count(origin, "source", "1 = 1")
    runs = f"run_id IN (SELECT id FROM run WHERE {part.terms('run')})"
    return int(origin.scalar(sa.text(f"SELECT count(DISTINCT source_id) FROM run_source WHERE {runs}")) or 0)


def _count(origin: sa.Connection, table: str, terms: str) -> int:
    return int(origin.scalar(sa.text(f"SELECT count(*) FROM {table} WHERE {terms}")) or 0)


def _join(keys: Sequence[int]) -> str:
    return ",".join(str(int(key)) for key in keys)
