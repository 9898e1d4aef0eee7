"""The files of a sealed benchmark: scores and answers of its runs as Parquet, and a manifest.

Both are sorted by primary key. Checksums of their rows are those of the store, so that a file is compared with the run
it belongs to without the rows of the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import DatabaseError
from tracker.ingest.write.checksums import format_checksum, hash_score_rows
from tracker.ingest.write.score_columns import TRIAL_BITS
from tracker.integrity.row_hashes import concatenate, hash_rows
from tracker.queries.sql.run_terms import run_terms
from tracker.recording.sealing.storage import hash_file
from tracker.schema import metadata

if TYPE_CHECKING:
    import pyarrow as pa

    from tracker.queries.sql.arrow import Reading

SCORES, ANSWERS, MANIFEST = "scores.parquet", "answers.parquet", "manifest.json"
FILES = (SCORES, ANSWERS)
LAYOUT = 1
"""Version of the layout of the files."""
NO_ROWS = "0" * 32
ROWS_PER_GROUP, BYTES_PER_GROUP = 1 << 20, 64 << 20
"""Size of a row group, of which one at a time is in memory."""
SCORES_PER_BATCH, ANSWERS_PER_BATCH = 1 << 16, 1 << 10
_ANSWER = metadata.tables["answer"]

AnswerRow = tuple[Any, ...]


@dataclass
class RowSums:
    """Number and checksum of the rows of each run.

    Attributes:
        by_run: key of the run, number of its rows, and two words.
    """

    by_run: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def add(self, run_ids: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
        """Add rows: ``(n,)`` their runs, and ``(n, 2)`` their hashes."""
        ones = np.ones((len(run_ids), 1), dtype=np.uint64)
        keys, sums = concatenate([(run_ids, np.hstack([ones, words]))])
        for run, (n, high, low) in zip(keys.tolist(), sums.tolist(), strict=True):
            before = self.by_run.get(run, (0, 0, 0))
            self.by_run[run] = (before[0] + n, (before[1] + high) % 2**64, (before[2] + low) % 2**64)

    def describe(self, run: int) -> tuple[int, str]:
        """Return the number of rows of a run, and their checksum."""
        n, high, low = self.by_run.get(run, (0, 0, 0))
        return n, format_checksum(high, low)


@dataclass(frozen=True, kw_only=True)
class FileSums:
    """Sums of both files."""

    scores: RowSums = field(default_factory=RowSums)
    answers: RowSums = field(default_factory=RowSums)


def write_files(
    reading: Reading, run_ids: Sequence[int], folder: Path, progress: Callable[[int], None] = lambda n: None
) -> FileSums:
    """Write the scores and answers of some runs.

    Args:
        reading: one state of the store.
        run_ids: the runs.
        folder: an empty folder.
        progress: called with the number of rows that were written since.

    Raises:
        SealedRowsError: rows are in sealed files only.
    """
    sums = FileSums()
    with _ParquetWriter(folder / SCORES, _score_schema()) as write:
        for scores in _read_scores(reading, run_ids):
            sums.scores.add(*_hash_scores(scores))
            write(scores)
            progress(scores.num_rows)
    with _ParquetWriter(folder / ANSWERS, _answer_schema()) as write:
        for answers in _read_answers(reading, run_ids):
            sums.answers.add(*_hash_answers(_as_rows(answers)))
            write(answers)
            progress(answers.num_rows)
    return sums


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreRows:
    """Rows of scores, in the order of their key.

    Attributes:
        keys: ``(4, n)`` run, metric, prompt and trial.
        values: ``(n,)``.
        words: ``(n, 2)`` their hashes.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    words: NDArray[np.uint64]


def read_scores(folder: Path, run_ids: Collection[int]) -> Iterator[ScoreRows]:
    """Yield the scores of some runs."""
    for batch in _batches(folder / SCORES, run_ids, SCORES_PER_BATCH):
        keys = np.stack([column.to_numpy().astype(np.int64) for column in batch.columns[:4]])
        values = np.ascontiguousarray(batch.column(4).to_numpy())
        yield ScoreRows(keys=keys, values=values, words=_hash_scores(batch)[1])


def read_answers(folder: Path, run_ids: Collection[int]) -> Iterator[tuple[list[AnswerRow], NDArray[np.uint64]]]:
    """Yield the answers of some runs: values of all columns, and hashes ``(n, 2)``."""
    for batch in _batches(folder / ANSWERS, run_ids, ANSWERS_PER_BATCH):
        rows = _as_rows(batch)
        yield rows, _hash_answers(rows)[1]


def sum_files(folder: Path, run_ids: Collection[int]) -> FileSums:
    """Return the sums of the rows of some runs, read from the files."""
    sums = FileSums()
    for scores in read_scores(folder, run_ids):
        sums.scores.add(scores.keys[0], scores.words)
    for rows, hashes in read_answers(folder, run_ids):
        sums.answers.add(np.array([row[0] for row in rows], dtype=np.int64), hashes)
    return sums


def write_manifest(folder: Path, description: Mapping[str, Any]) -> str:
    """Write the manifest, with the SHA-256 of the other files; return its own.

    Args:
        folder: with the other files.
        description: what else it holds.
    """
    content = {"layout": LAYOUT, **description, "files": {name: hash_file(folder / name) for name in FILES}}
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
    return hash_file(folder / MANIFEST)


def verify_manifest(folder: Path, digest: str, address: str) -> None:
    """Check that a manifest is as it was written; see `verify_files`."""
    if hash_file(folder / MANIFEST) != digest:
        raise _different_file(address, MANIFEST)


def verify_files(folder: Path, digest: str, address: str) -> None:
    """Check that the files of a folder are those that were sealed, by SHA-256.

    Args:
        folder: with the files.
        digest: SHA-256 of the manifest.
        address: for messages.

    Raises:
        DatabaseError: a file differs.
    """
    verify_manifest(folder, digest, address)
    expected = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    for name in FILES:
        if hash_file(folder / name) != expected.get(name):
            raise _different_file(address, name)


def _different_file(address: str, name: str) -> DatabaseError:
    return DatabaseError(
        f"The sealed file {address}/{name} is not as it was written. Restore the folder from a backup; nothing was "
        "changed in the store."
    )


# --- Arrow ---


def _score_schema() -> pa.Schema:
    import pyarrow as pa

    names = ("run_id", "metric_id", "prompt_id", "trial")
    return pa.schema([*((name, pa.int32()) for name in names), ("value", pa.float64())])


def _answer_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("run_id", pa.int32()), ("prompt_id", pa.int32()), ("extraction", pa.string()), ("trial", pa.int32()),
            ("text", pa.string()), ("probability", pa.float64()), ("status", pa.string()),
        ]
    )  # fmt: skip


class _ParquetWriter:
    """A Parquet file into which batches are written, in row groups of many batches."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        # Sorted keys are stored as differences; what has few values, as their numbers.
        packed = ["prompt_id"]
        self._file = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in packed],
            column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        )
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []
        self._n_rows = self._n_bytes = 0

    def __enter__(self) -> Callable[[pa.RecordBatch], None]:
        return self._write

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
        self._file.close()

    def _write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._n_rows += batch.num_rows
        self._n_bytes += batch.nbytes
        if self._n_rows >= ROWS_PER_GROUP or self._n_bytes >= BYTES_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._n_rows, self._n_bytes = [], 0, 0
        if table.num_rows:
            self._file.write_table(table, row_group_size=table.num_rows)


def _read_scores(reading: Reading, run_ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
    sql = (
        f"SELECT run_id, metric_id, prompt_id, trial, value FROM score WHERE {run_terms(reading, run_ids)} "
        "ORDER BY run_id, metric_id, prompt_id, trial"
    )
    with reading.reader(sql, runs=run_ids) as reader:
        yield from (_cast(batch, _score_schema()) for batch in reader if batch.num_rows)


def _read_answers(reading: Reading, run_ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield the answers; a column of SQLite with NULLs alone would have no type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sql = (
        "SELECT run_id, prompt_id, extraction, trial, coalesce(text, ''), coalesce(probability, 0.0), status, "
        "CASE WHEN text IS NULL THEN 1 ELSE 0 END, CASE WHEN probability IS NULL THEN 1 ELSE 0 END "
        f"FROM answer WHERE {run_terms(reading, run_ids)} ORDER BY run_id, prompt_id, extraction, trial"
    )
    with reading.reader(sql, runs=run_ids, batch_rows=ANSWERS_PER_BATCH) as reader:
        for batch in reader:
            if not batch.num_rows:
                continue
            *columns, no_text, no_probability = batch.columns
            for place, is_null in ((4, no_text), (5, no_probability)):
                missing = pa.scalar(None, columns[place].type)
                columns[place] = pc.if_else(pc.equal(is_null, 1), missing, columns[place])
            yield _cast(pa.RecordBatch.from_arrays(columns, names=_answer_schema().names), _answer_schema())


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _batches(path: Path, run_ids: Collection[int], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some runs from a file, at most ``n_rows`` at once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    keys = pa.array(sorted(run_ids), pa.int32())
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=n_rows):
                chosen = batch.filter(pc.is_in(batch.column("run_id"), keys))
                if chosen.num_rows:
                    yield chosen
    except (pa.ArrowException, OSError) as error:
        raise DatabaseError(f"The sealed file {path} cannot be read: {error}.") from error


def _hash_scores(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    runs, metrics, prompts, trials = (column.to_numpy().astype(np.int64) for column in batch.columns[:4])
    values = np.ascontiguousarray(batch.column(4).to_numpy())
    return runs, hash_score_rows(metrics.view(np.uint64), prompts << TRIAL_BITS | trials, values)


def _as_rows(batch: pa.RecordBatch) -> list[AnswerRow]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _hash_answers(rows: Sequence[AnswerRow]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    return hash_rows(_ANSWER, rows)
