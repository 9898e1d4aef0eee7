"""Read the rows of a store for an archive: keys become row numbers, batches are of equal size on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.ingest.archives.layout import ROW_ORDER, TABLES_BY_RUN, ArchiveColumn, archive_columns, archive_schema
from tracker.queries.sql.arrow import Reading, number_columns

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_TOGETHER: Mapping[str, int] = {"score": 262_144, "answer": 16_384, "prompt": 4_096, "embedding": 8_192}
"""Rows per row group of the file, by table; tables with long texts have few, so that a group fits into memory."""
ROWS_ELSE = 65_536


@dataclass(eq=False)
class ArchivedRows:
    """The rows of a store, or of some of its benchmarks.

    Attributes:
        reading: a snapshot of the store.
        benchmark_ids: keys of the benchmarks; None for the whole store, including rows of no benchmark.
        keys: by table, ``(n,)`` int64 keys of its rows, ascending, once they have been read.
    """

    reading: Reading
    benchmark_ids: Sequence[int] | None = None
    keys: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table, in the order of the archive; tables must be read in that order."""
        import pyarrow as pa

        if ROW_ORDER[table] == ("id",):
            self.keys[table] = self._keys(table)
        size, schema = ROWS_TOGETHER.get(table, ROWS_ELSE), archive_schema(table)
        pending: list[pa.RecordBatch] = []
        n_pending = 0
        for batch in self._all(table):
            pending.append(batch)
            n_pending += batch.num_rows
            if n_pending >= size:
                whole = pa.Table.from_batches(pending, schema).combine_chunks()
                full = n_pending - n_pending % size
                yield from whole.slice(0, full).to_batches(max_chunksize=size)
                pending, n_pending = whole.slice(full).to_batches(), n_pending - full
        if n_pending:
            yield from pa.Table.from_batches(pending, schema).combine_chunks().to_batches()

    def _all(self, table: str) -> Iterator[pa.RecordBatch]:
        if table in TABLES_BY_RUN:
            for run in self.keys["run"].tolist():  # in the order of the primary key, so nothing needs sorting
                yield from self._selected(table, f"run_id = {run}")
            return
        yield from self._selected(table, self._terms(table))

    def _selected(self, table: str, terms: str) -> Iterator[pa.RecordBatch]:
        columns = archive_columns(table)
        selected = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(self._expressions(table)))
        order = ", ".join(self._ordered(table, name) for name in ROW_ORDER[table])
        with self.reading.reader(f"SELECT {selected} FROM {table} WHERE {terms} ORDER BY {order}") as rows:
            for batch in rows:
                if batch.num_rows:
                    yield self._converted(table, columns, batch)

    def _expressions(self, table: str) -> Iterator[str]:
        """Return the expression of each column; nullable columns get a second one."""
        for column in archive_columns(table):
            name = f'"{column.stored}"'
            if isinstance(column.kind, sa.DateTime) and not self.reading.is_sqlite:
                sql = f"to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
            elif isinstance(column.kind, (sa.Date, sa.JSON)):
                sql = f"CAST({name} AS TEXT)"
            elif isinstance(column.kind, sa.Boolean):
                sql = f"CASE WHEN {name} THEN 1 ELSE 0 END"
            else:
                sql = name
            if not column.nullable:
                yield sql
                continue
            # SQLite's types are inferred from the first rows, which must not all be null.
            numeric = column.refers_to or isinstance(column.kind, (sa.Integer, sa.Boolean, sa.Float))
            zero = ("0.0" if isinstance(column.kind, sa.Float) else "0") if numeric else "''"
            yield f"COALESCE({sql}, {zero})"
            yield f"CASE WHEN {name} IS NULL THEN 1 ELSE 0 END"

    def _ordered(self, table: str, name: str) -> str:
        kind = next((column.kind for column in archive_columns(table) if column.stored == name), None)
        texts = isinstance(getattr(kind, "impl", kind), sa.String) and not self.reading.is_sqlite
        return f'"{name}" COLLATE "C"' if texts else f'"{name}"'  # by bytes, as in SQLite

    def _converted(self, table: str, columns: Sequence[ArchiveColumn], batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        arrays = []
        place = 0
        for column in columns:
            value = batch.column(place)
            is_null = pc.equal(batch.column(place + 1), 1) if column.nullable else None
            place += 2 if column.nullable else 1
            if column.refers_to is not None:
                value = self._places(column.refers_to, value, is_null)
            elif is_null is not None:
                value = pc.if_else(is_null, pa.scalar(None, value.type), value)
            if isinstance(column.kind, sa.DateTime):
                value = pc.assume_timezone(pc.cast(value, pa.timestamp("us")), "UTC")
            arrays.append(pc.cast(value, column.arrow))
        return pa.RecordBatch.from_arrays(arrays, schema=archive_schema(table))

    def _places(self, table: str, value: pa.Array, is_null: pa.Array | None) -> pa.Array:
        """Return referenced rows as row numbers in the archive; null if they are not included."""
        import pyarrow as pa

        known, ids = self.keys[table], np.asarray(value.to_numpy(zero_copy_only=False), dtype=np.int64)
        at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
        is_known = known[at] == ids if len(known) else np.zeros(len(ids), dtype=np.bool_)
        if is_null is not None:
            is_known &= ~is_null.to_numpy(zero_copy_only=False).astype(np.bool_)
        return pa.array(at.astype(np.int32), mask=~is_known)

    def _keys(self, table: str) -> NDArray[np.int64]:
        ids = self.reading.table(f"SELECT id FROM {table} WHERE {self._terms(table)} ORDER BY id")
        (keys,) = number_columns(ids)
        return keys.astype(np.int64)

    def _terms(self, table: str) -> str:
        """Return the condition for the rows of a table."""
        if self.benchmark_ids is None:
            return "1 = 1"
        of_benchmarks = f"benchmark_id IN ({','.join(map(str, self.benchmark_ids))})"
        runs, tasks = f"SELECT id FROM run WHERE {of_benchmarks}", f"SELECT id FROM task WHERE {of_benchmarks}"
        prompts = f"SELECT id FROM prompt WHERE task_id IN ({tasks})"
        models = f"SELECT model_id FROM run WHERE {of_benchmarks}"
        scored = " UNION ".join(
            f"SELECT metric_id FROM {scores} WHERE run_id IN ({runs})" for scores in TABLES_BY_RUN[::2]
        )
        terms: dict[str, str] = {
            "benchmark": of_benchmarks.replace("benchmark_id", "id"),
            "task": of_benchmarks,
            "run": of_benchmarks,
            "metric": f"id IN ({scored})",
            "model": f"id IN ({models})",
            "model_alias": f"model_id IN ({models})",
            # A file that is only partly included must not count as ingested.
            "source": f"id IN (SELECT source_id FROM run_source WHERE run_id IN ({runs})) AND id NOT IN "
            f"(SELECT source_id FROM run_source WHERE run_id NOT IN ({runs}))",
            "prompt": f"task_id IN ({tasks})",
            "prompt_alias": f"prompt_id IN ({prompts})",
            "encoder": f"id IN (SELECT encoder_id FROM embedding WHERE prompt_id IN ({prompts}))",
            "embedding": f"prompt_id IN ({prompts})",
        }
        return terms[table]
