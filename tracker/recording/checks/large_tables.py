"""Check the large tables of a store by columns, from Arrow batches; of PostgreSQL, the scores alone.

Each check compares what one transaction sees. Whatever is unexpected, such as a value of a wrong type or a damaged
page, is left to the checks of `tracker.copying.store_faults`, which read row by row and name the fault. SQLite's own
check of a file runs beside them in another process: ADBC has a second copy of SQLite, and two copies in one process
may not open a file at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from tracker.integrity.file_pages import UnexpectedPageError
from tracker.integrity.free_list import are_used_once
from tracker.integrity.row_hashes import ROWS_PER_BATCH, concatenate
from tracker.integrity.scopes import covered_tables
from tracker.integrity.sealed_rows import MOVED
from tracker.integrity.stored_checksums import as_sums
from tracker.integrity.verification import ContentFault, compare_checksums, drop_moved, snapshot
from tracker.recording.checks.file_check import check_file
from tracker.schema import Run, metadata

if TYPE_CHECKING:
    import pyarrow as pa

    from tracker.queries.sql.arrow import Reading
    from tracker.recording.checks.score_pages import ScoreColumns, ScoreTree

LARGE = ROWS_PER_BATCH
"""Rows of which a large table has more."""
MAX_PARENT_KEY, MAX_KEY = 100_000_000, 1 << 31
MIN_PAGED = 2_000_000
"""Scores from which the pages of the file are read: loading Numba takes as long as a million rows."""
_SCORE = metadata.tables[SCORES]
_RUNS_QUERY = (  # of sealed runs that are in files only, the store has no rows
    "SELECT id, CASE WHEN sealed_run.run_id IS NULL THEN n_scores ELSE 0 END AS n_scores, "
    f"CASE WHEN sealed_run.run_id IS NULL THEN run.checksum ELSE '{'0' * 32}' END AS checksum "
    "FROM run LEFT JOIN sealed_run ON sealed_run.run_id = run.id AND NOT rows_in_store ORDER BY id"
)
Parents = Mapping[str, NDArray[np.bool_]]


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
    """Check the large tables of a store; None without large tables.

    No transaction of this process may be open on the file: two libraries would change the index of its log.
    """
    if engine.dialect.name != "sqlite":
        return _check_postgresql(engine) if _count_scores(engine) > LARGE else None
    names = _large_tables(engine)
    if not names:
        return None
    paged = SCORES if SCORES in names and _count_scores(engine) >= MIN_PAGED else ""
    results: dict[str, ComparedTable | None] = {}
    with check_file(Path(str(engine.url.database)).resolve(), paged) as wait:
        if paged and _are_pages_sound(engine):
            results[SCORES] = ComparedTable(content=[], scores=[], refers=True)
        is_paged = SCORES in results
        results |= {name: _check_table(engine, metadata.tables[name]) for name in names if name not in results}
        damage = wait()
    return LargeTableResults(
        referring=frozenset(name for name, result in results.items() if result and result.refers),
        content={name: result.content for name, result in results.items() if result and name != SCORES},
        scores=result.scores if (result := results.get(SCORES)) else None,
        file=None if damage or (paged and not is_paged) else damage,
    )


def _check_postgresql(engine: sa.Engine) -> LargeTableResults:
    result = _check_table(engine, _SCORE)
    return LargeTableResults(referring=(), content={}, scores=result.scores if result else None, file=None)


def _large_tables(engine: sa.Engine) -> list[str]:
    """Return the tables of a SQLite file with more rows than a batch, without columns of bytes."""
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


def _count_scores(engine: sa.Engine) -> int:
    try:
        with snapshot(engine) as connection:
            return int(connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(Run.n_scores), 0))) or 0)
    except (*UNREADABLE, ValueError, TypeError):
        return 0


def _are_pages_sound(engine: sa.Engine) -> bool:
    """Whether the pages of all scores are as expected, no other tree uses them, and the scores match their checksums.

    Together with SQLite's check of the other tables this replaces its check of the whole file.
    """
    from tracker.recording.checks.score_sums import match_checksums

    try:
        with snapshot(engine) as connection:
            runs = [dict(row) for row in connection.execute(sa.text(_RUNS_QUERY)).mappings()]
            parents = _read_parents(lambda query: _read_column(connection, query), _SCORE)
            scores = open_unshared_scores(connection)
            return set(parents) == _references(_SCORE) and match_checksums(runs, parents, scores.read())
    except (UnexpectedPageError, UnexpectedTypeError, OSError, IndexError, MemoryError, ValueError, *UNREADABLE):
        return False  # the other checks tell what is wrong


def open_unshared_scores(connection: sa.Connection) -> ScoreTree:
    """Return the tree of scores of a SQLite file, each page of which is used once.

    Args:
        connection: as in `open_scores`.

    Raises:
        UnexpectedPageError: the pages are not as expected, or used twice or never.
    """
    from tracker.recording.checks.score_pages import open_scores

    scores = open_scores(connection)
    roots = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE rootpage > 0").scalars().all()
    remaining = [1, *map(int, roots)]
    remaining.remove(scores.root)
    if not are_used_once(scores.pages, remaining, scores.numbers):
        raise UnexpectedPageError("a page is used twice or never")
    return scores


def _read_column(connection: sa.Connection, query: str) -> NDArray[np.int64]:
    values = connection.exec_driver_sql(query).scalars().all()
    if any(type(value) is not int for value in values):
        raise UnexpectedTypeError(query)
    return np.array(values, dtype=np.int64)


def _check_table(engine: sa.Engine, table: sa.Table) -> ComparedTable | None:
    """Return the result for a table; None if it holds something unexpected."""
    import pyarrow as pa

    from tracker.queries.sql import arrow

    try:
        with arrow.snapshot(engine) as reading:
            reading.ignores_sealed = True
            return _check_scores(reading, table) if table is _SCORE else _check_content(reading, table)
    except (DatabaseError, pa.ArrowException, OSError, *UNREADABLE):
        return None


def _check_content(reading: Reading, table: sa.Table) -> ComparedTable:
    parents = _read_parents(lambda query: _read_integers(reading, query)[0], table)
    refers, sums = True, []
    for batch in _read_batches(reading, str(columns_query(table))):
        sums.append(concatenate([hash_batch(table, batch)]))
        refers = refers and _all_refer(read_keys(table, batch), parents)
        if len(sums) > 100:
            sums = [concatenate(sums)]
    stored = _read_integers(reading, "SELECT key, high, low FROM checksum WHERE table_name = ?", [table.name])
    moved = reading.table(MOVED).column(0).to_pylist()
    expected = drop_moved(as_sums(np.stack(stored, axis=1)), table.name, moved)
    faults = compare_checksums(table.name, expected, concatenate(sums))
    return ComparedTable(content=list(faults), scores=[], refers=refers and set(parents) == _references(table))


def _check_scores(reading: Reading, table: sa.Table) -> ComparedTable:
    parents = _read_parents(lambda query: _read_integers(reading, query)[0], table) if reading.is_sqlite else {}
    return _compare_scores(reading.table(_RUNS_QUERY).to_pylist(), parents, _read_scores(reading))


def _compare_scores(
    runs: Sequence[Mapping[str, Any]], parents: Parents, scores: Iterable[ScoreColumns]
) -> ComparedTable:
    refers, sums = True, []
    for run_ids, metrics, keys, values in scores:
        words = hash_score_rows(metrics.view(np.uint64), keys, values)
        sums.append(concatenate([(run_ids, np.column_stack([words, np.ones(len(keys), dtype=np.uint64)]))]))
        columns = {"run_id": run_ids, "metric_id": metrics, "prompt_id": keys >> TRIAL_BITS}
        refers = refers and _all_refer(columns, parents)
    present = dict(zip(*(part.tolist() for part in concatenate(sums)), strict=True)) if sums else {}
    wrong = [
        run["id"]
        for run in runs
        if (words := present.get(run["id"], [0, 0, 0]))[2] != run["n_scores"]
        or format_checksum(words[0], words[1]) != run["checksum"]
    ]
    return ComparedTable(content=[], scores=wrong, refers=refers and set(parents) == _references(_SCORE))


def _read_scores(reading: Reading) -> Iterator[ScoreColumns]:
    names = ("run_id", "metric_id", "prompt_id", "trial")
    columns = ", ".join(name if reading.is_sqlite else f"{name}::bigint" for name in names)
    for batch in _read_batches(reading, f"SELECT {columns}, value FROM score"):
        run_ids, metrics, prompts, trials = (read_numbers(batch.column(place), np.int64) for place in range(4))
        if int(np.abs(prompts).max()) >= MAX_KEY or int(trials.min()) < 0 or int(trials.max()) >= 1 << TRIAL_BITS:
            raise UnexpectedTypeError("score.prompt_id or score.trial")  # two keys could be packed into one number
        yield run_ids, metrics, prompts << TRIAL_BITS | trials, read_numbers(batch.column(4), np.float64)


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


def _read_parents(read_column: Callable[[str], NDArray[np.int64]], table: sa.Table) -> Parents:
    """Return whether there is a row with each key, by referring column, as far as that column is never NULL.

    Args:
        read_column: runs a query for one column of integers.
        table: the referring table.
    """
    parents = {}
    for key in table.foreign_keys:
        if key.parent.nullable or key.column.name != "id":
            continue
        ids = read_column(f'SELECT id FROM "{key.column.table.name}"')
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
