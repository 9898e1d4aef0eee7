"""Check the large tables of a SQLite file by columns, from Arrow batches.

Each check compares what one transaction sees. Whatever is unexpected, such as a value of a wrong type or a damaged
page, is left to the checks of `tracker.copying.store_faults`, which read row by row and name the fault. SQLite's own
check of the file runs beside them in another process: ADBC has a second copy of SQLite, and two copies in one process
may not open a file at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.copying.store_faults import SCORES, LargeTableResults
from tracker.copying.store_files import UNREADABLE
from tracker.errors import DatabaseError
from tracker.ingest.write.checksums import format_checksum, hash_score_rows
from tracker.ingest.write.score_columns import TRIAL_BITS
from tracker.integrity.arrow_hashes import UnexpectedTypeError, columns_query, hash_batch, read_keys, read_numbers
from tracker.integrity.row_hashes import ROWS_PER_BATCH, concatenate
from tracker.integrity.scopes import covered_tables
from tracker.integrity.stored_checksums import as_sums
from tracker.integrity.verification import ContentFault, compare_checksums, snapshot
from tracker.recording.checks.file_check import check_file
from tracker.schema import metadata

if TYPE_CHECKING:
    import pyarrow as pa

    from tracker.queries.sql.arrow import Reading

LARGE = ROWS_PER_BATCH
"""Rows of which a large table has more."""
MAX_PARENT_KEY = 100_000_000
MIN_SCORES_PER_RUN = 1_000
"""Mean number of scores of a run from which the scores are read run by run, which leaves out two columns."""
_SCORE = metadata.tables[SCORES]
_KEY_AND_VALUE = f"prompt_id * {1 << TRIAL_BITS} + trial, value"
_METRICS_QUERY = (
    "SELECT id, (SELECT metric_id FROM score WHERE run_id = run.id ORDER BY metric_id LIMIT 1) AS first, "
    "(SELECT metric_id FROM score WHERE run_id = run.id ORDER BY metric_id DESC LIMIT 1) AS last FROM run ORDER BY id"
)

Parents = Mapping[str, NDArray[np.bool_]]
ScoreColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""``(n,)`` runs, metrics, prompts with trials in one number, and scores."""


@dataclass(frozen=True, kw_only=True)
class ComparedTable:
    """The result of the check of a large table.

    Attributes:
        content: content that differs from its checksum.
        scores: runs whose scores differ from their checksums.
        refers: whether every row refers to existing rows.
    """

    content: list[ContentFault]
    scores: list[int]
    refers: bool


def check_large_tables(engine: sa.Engine) -> LargeTableResults | None:
    """Check the large tables of a SQLite file; None on PostgreSQL, and for files without large tables.

    No transaction of this process may be open on the file: two libraries would change the index of its log.
    """
    names = _large_tables(engine)
    if not names:
        return None
    with check_file(Path(str(engine.url.database)).absolute()) as wait:
        results = {name: _check_table(engine, metadata.tables[name]) for name in names}
        damage = wait()
    if SCORES in results and damage != []:  # rows out of order mislead queries for the scores of one run
        results[SCORES] = _check_table(engine, _SCORE, by_run=False)
    return LargeTableResults(
        referring=frozenset(name for name, result in results.items() if result and result.refers),
        content={name: result.content for name, result in results.items() if result and name != SCORES},
        scores=result.scores if (result := results.get(SCORES)) else None,
        file=damage,
    )


def _large_tables(engine: sa.Engine) -> list[str]:
    """Return the tables with more rows than a batch, without columns of bytes."""
    if engine.dialect.name != "sqlite":
        return []
    names = [_SCORE.name, *(table.name for table in covered_tables() if columns_query(table))]
    try:
        with snapshot(engine) as connection:
            return [
                name
                for name in names
                if connection.execute(sa.text(f'SELECT 1 FROM "{name}" LIMIT 1 OFFSET {LARGE}')).first()
            ]
    except UNREADABLE:
        return []


def _check_table(engine: sa.Engine, table: sa.Table, *, by_run: bool = True) -> ComparedTable | None:
    """Return the result for a table; None if it holds something unexpected.

    Args:
        engine: the store.
        table: the table.
        by_run: whether long runs of scores are read one by one, which needs a sound file.
    """
    import pyarrow as pa

    from tracker.queries.sql import arrow

    try:
        with arrow.snapshot(engine) as reading:
            return _check_scores(reading, table, by_run) if table is _SCORE else _check_content(reading, table)
    except (DatabaseError, pa.ArrowException, OSError, *UNREADABLE):
        return None


def _check_content(reading: Reading, table: sa.Table) -> ComparedTable:
    parents, refers, sums = _read_parents(reading, table), True, []
    for batch in _read_batches(reading, str(columns_query(table))):
        sums.append(concatenate([hash_batch(table, batch)]))
        refers = refers and _all_refer(read_keys(table, batch), parents)
        if len(sums) > 100:
            sums = [concatenate(sums)]
    stored = _read_integers(reading, "SELECT key, high, low FROM checksum WHERE table_name = ?", [table.name])
    faults = compare_checksums(table.name, as_sums(np.stack(stored, axis=1)), concatenate(sums))
    return ComparedTable(content=list(faults), scores=[], refers=refers and set(parents) == _references(table))


def _check_scores(reading: Reading, table: sa.Table, by_run: bool) -> ComparedTable:
    parents, refers, sums = _read_parents(reading, table), True, []
    runs = reading.table("SELECT id, n_scores, checksum FROM run ORDER BY id").to_pylist()
    n_stored = sum(run["n_scores"] for run in runs)
    read = _read_by_run if by_run and n_stored >= MIN_SCORES_PER_RUN * len(runs) else _read_together
    for run_ids, metrics, keys, values in read(reading):
        words = hash_score_rows(metrics.view(np.uint64), keys, values)
        sums.append(concatenate([(run_ids, np.column_stack([words, np.ones(len(keys), dtype=np.uint64)]))]))
        columns = {"run_id": run_ids, "metric_id": metrics, "prompt_id": keys >> TRIAL_BITS}
        refers = refers and _all_refer(columns, parents)
    present = dict(zip(*(part.tolist() for part in concatenate(sums)), strict=True))
    wrong = [
        run["id"]
        for run in runs
        if (words := present.get(run["id"], [0, 0, 0]))[2] != run["n_scores"]
        or format_checksum(words[0], words[1]) != run["checksum"]
    ]
    return ComparedTable(content=[], scores=wrong, refers=refers and set(parents) == _references(table))


def _read_together(reading: Reading) -> Iterator[ScoreColumns]:
    for batch in _read_batches(reading, f"SELECT {_KEY_AND_VALUE}, run_id, metric_id FROM score"):
        keys, run_ids, metrics = (read_numbers(batch.column(place), np.int64) for place in (0, 2, 3))
        yield run_ids, metrics, keys, read_numbers(batch.column(1), np.float64)


def _read_by_run(reading: Reading) -> Iterator[ScoreColumns]:
    """Read the scores of one run after another, without the metric of runs that have only one."""
    n_read = 0
    for run_id, first, last in zip(*reading.table(_METRICS_QUERY).to_pydict().values(), strict=True):
        if not {type(first), type(last)} <= {int, type(None)}:
            raise UnexpectedTypeError("score.metric_id")
        has_one = first == last
        columns = _KEY_AND_VALUE if has_one else f"{_KEY_AND_VALUE}, metric_id"
        for batch in _read_batches(reading, f"SELECT {columns} FROM score WHERE run_id = {run_id}"):
            n_read += len(batch)
            keys, values = read_numbers(batch.column(0), np.int64), read_numbers(batch.column(1), np.float64)
            metrics = (
                np.broadcast_to(np.int64(first), len(keys)) if has_one else read_numbers(batch.column(2), np.int64)
            )
            yield np.broadcast_to(np.int64(run_id), len(keys)), metrics, keys, values
    if n_read != _read_integers(reading, "SELECT count(*) FROM score")[0][0]:
        raise UnexpectedTypeError("score.run_id")  # some scores belong to no run


def _read_batches(reading: Reading, query: str) -> Iterator[pa.RecordBatch]:
    with reading.reader(query, batch_rows=ROWS_PER_BATCH) as reader:
        yield from filter(len, reader)


def _read_integers(reading: Reading, query: str, parameters: Sequence[Any] = ()) -> list[NDArray[np.int64]]:
    from tracker.queries.sql.arrow import number_columns

    columns = number_columns(reading.table(query, parameters))
    if any(column.dtype != np.int64 for column in columns):
        raise UnexpectedTypeError(query)
    return columns


def _references(table: sa.Table) -> set[str]:
    return {key.parent.name for key in table.foreign_keys}


def _read_parents(reading: Reading, table: sa.Table) -> Parents:
    """Return whether there is a row with each key, by referring column, as far as that column is never NULL."""
    parents = {}
    for key in table.foreign_keys:
        if key.parent.nullable or key.column.name != "id":
            continue
        (ids,) = _read_integers(reading, f'SELECT id FROM "{key.column.table.name}"')
        if not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < MAX_PARENT_KEY):
            exists = np.zeros(int(ids.max(initial=0)) + 1, dtype=bool)
            exists[ids] = True
            parents[key.parent.name] = exists
    return parents


def _all_refer(columns: Mapping[str, NDArray[np.int64]], parents: Parents) -> bool:
    return all(
        int(columns[name].min()) >= 0 and int(columns[name].max()) < len(exists) and bool(exists[columns[name]].all())
        for name, exists in parents.items()
    )
