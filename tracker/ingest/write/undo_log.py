"""A record of everything that an import adds and changes, so that it can be removed again.

Rows that go with another added row are not listed: the scores and answers of a new run, the names of a new prompt.
Bulk import of new runs therefore costs nothing.
"""

from __future__ import annotations

import base64
import json
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import event
from sqlalchemy.orm import Session, UOWTransaction

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.write.score_columns import ScoreColumn
from tracker.schema import RunSource, TaskScore, UndoRecord, metadata
from tracker.schema.table import now

_LOG = "suffrage.undo_log"
MAX_KEY = 2**63

RowKey = tuple[Any, ...]
"""Values of the columns of a primary key."""


@dataclass(eq=False)
class UndoLog:
    """The rows that an import added, and the values that it replaced.

    Attributes:
        source_id: key of the file; None for a store that was merged.
        benchmarks: keys of the benchmarks of the file.
        added: keys of added rows, by table; prompts are in ``prompts``.
        prompts: first and last key of the added prompts, ascending, without gaps in between.
        replaced: by table and key, the earlier value of each column.
        written: by table and key, the value that the import gave to each column; only of rows that users may change.
        scores: packed prompts and trials of scores added to stored runs, by run and metric.
        answers: the same of answers, by run and extraction.
        vectors: prompts of added vectors, by encoder.
    """

    source_id: int | None = None
    benchmarks: set[int] = field(default_factory=set)
    added: dict[str, set[RowKey]] = field(default_factory=lambda: defaultdict(set))
    prompts: list[tuple[int, int]] = field(default_factory=list)
    replaced: dict[str, dict[RowKey, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    written: dict[str, dict[RowKey, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    scores: dict[tuple[int, int], NDArray[np.int64]] = field(default_factory=dict)
    answers: dict[tuple[int, str], NDArray[np.int64]] = field(default_factory=dict)
    vectors: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((self.added, self.prompts, self.replaced, self.scores, self.answers, self.vectors))

    def is_added(self, table: str, *key: Any) -> bool:
        """Return whether the import added a row."""
        if table == "prompt":
            place = bisect_right(self.prompts, (key[0], MAX_KEY)) - 1
            return place >= 0 and self.prompts[place][0] <= key[0] <= self.prompts[place][1]
        return key in self.added.get(table, ())

    @property
    def n_prompts(self) -> int:
        """Return the number of added prompts."""
        return sum(last - first + 1 for first, last in self.prompts)

    def add_prompts(self, keys: Iterable[int]) -> None:
        """Record added prompts."""
        ranges = [(key, key) for key in keys]
        merged: list[tuple[int, int]] = []
        for first, last in sorted([*self.prompts, *ranges]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        self.prompts = merged

    def add_rows(self, table: str, keys: Iterable[RowKey]) -> None:
        """Record added rows."""
        self.added[table].update(keys)

    def add_aliases(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Record names of prompts, unless the prompts are new too."""
        keys = [
            (row["task_id"], row["namespace"], row["key"])
            for row in rows
            if not self.is_added("prompt", row["prompt_id"])
        ]
        if keys:
            self.add_rows("prompt_alias", keys)

    def add_vectors(self, encoder_id: int, prompt_ids: NDArray[np.int64]) -> None:
        """Record vectors that were added to stored prompts."""
        keys = np.array([key for key in prompt_ids.tolist() if not self.is_added("prompt", key)], dtype=np.int64)
        if len(keys):
            self.vectors[encoder_id] = np.union1d(self.vectors.get(encoder_id, keys), keys)

    def replace_values(self, table: str, key: RowKey, values: Mapping[str, Any]) -> None:
        """Record values that are about to be replaced; the first ones are kept."""
        if not self.is_added(table, *key):
            known = self.replaced[table].setdefault(key, {})
            known.update({name: value for name, value in values.items() if name not in known})

    def extend_run(self, run_id: int, columns: Iterable[ScoreColumn], answers: Mapping[str, NDArray[np.int64]]) -> None:
        """Record scores, and packed prompts and trials of answers, that were added to a stored run."""
        for column in columns:
            if len(column):
                earlier = self.scores.get((run_id, column.metric_id), column.keys)
                self.scores[run_id, column.metric_id] = np.union1d(earlier, column.keys)
        for extraction, keys in answers.items():
            if len(keys):
                self.answers[run_id, extraction] = np.union1d(self.answers.get((run_id, extraction), keys), keys)

    def replace_rows(
        self, session: Session, table: sa.Table, keys: Sequence[RowKey], columns: Sequence[str] | None = None
    ) -> None:
        """Read and record values that are about to be replaced.

        Args:
            session: the store.
            table: the table.
            keys: of its rows, in the order of the columns of the primary key.
            columns: names of the columns; None for all that are not part of the key.
        """
        primary = list(table.primary_key.columns)
        names = columns or [column.name for column in table.columns if not column.primary_key]
        unknown = {key for key in keys if not self.is_added(table.name, *key)}
        firsts = sorted({key[0] for key in unknown})
        for part in split_keys(firsts):
            terms = primary[0].in_(part), in_partitions_of_runs(session, table, part)
            query = sa.select(*primary, *(table.c[name] for name in names))
            for row in session.connection().execute(query.where(*terms)):
                key = tuple(row[: len(primary)])
                if key in unknown:
                    self.replace_values(table.name, key, dict(zip(names, row[len(primary) :], strict=True)))

    def as_bytes(self) -> bytes:
        """Return the log as compressed JSON."""
        content = {
            "added": {table: sorted(map(list, keys)) for table, keys in self.added.items()},
            "benchmarks": sorted(self.benchmarks),
            "prompts": self.prompts,
            "replaced": _list_rows(self.replaced),
            "written": _list_rows(self.written),
            "scores": [[*key, _pack_keys(keys)] for key, keys in self.scores.items()],
            "answers": [[*key, _pack_keys(keys)] for key, keys in self.answers.items()],
            "vectors": [[key, _pack_keys(keys)] for key, keys in self.vectors.items()],
        }
        return zlib.compress(json.dumps(content, separators=(",", ":"), default=_format_time).encode(), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> UndoLog:
        """Return the log that `as_bytes` returned."""
        content = json.loads(zlib.decompress(data))
        log = cls(benchmarks=set(content["benchmarks"]))
        for table, keys in content["added"].items():
            log.added[table] = {tuple(key) for key in keys}
        log.prompts = [(first, last) for first, last in content["prompts"]]
        for part, rows in ((log.replaced, content["replaced"]), (log.written, content["written"])):
            for table, pairs in rows.items():
                part[table] = {tuple(key): _restore_types(table, values) for key, values in pairs}
        log.scores = {(run, metric): _unpack_keys(text) for run, metric, text in content["scores"]}
        log.answers = {(run, extraction): _unpack_keys(text) for run, extraction, text in content["answers"]}
        log.vectors = {encoder: _unpack_keys(text) for encoder, text in content["vectors"]}
        return log


def undo_log(session: Session) -> UndoLog | None:
    """Return the log of the import in progress; None if the session does not import a file."""
    log: UndoLog | None = session.info.get(_LOG)
    return log


@contextmanager
def recorded_import(session: Session, path: Path | str) -> Iterator[UndoLog]:
    """Record what the block adds and changes, and store the record at its end.

    Rows that are added or changed as objects of the session are recorded by themselves.
    """
    log = session.info[_LOG] = UndoLog()
    event.listen(session, "after_flush", _record_flush)
    try:
        yield log
        session.flush()
    finally:
        event.remove(session, "after_flush", _record_flush)
        del session.info[_LOG]
    if log:
        record = {"path": make_storable(str(path)), "changes": log.as_bytes(), "ingested": now()}
        session.execute(sa.insert(UndoRecord).values(source_id=log.source_id, **record))


def _record_flush(session: Session, _: UOWTransaction) -> None:
    log = undo_log(session)
    assert log is not None
    for row in session.new:
        key = _identity(row)
        if not (isinstance(row, TaskScore | RunSource) and log.is_added("run", row.run_id)):
            log.add_rows(sa.inspect(type(row)).local_table.name, [key])
    for row in session.dirty:
        state, key, table = sa.inspect(row), _identity(row), sa.inspect(type(row)).local_table.name
        history = {column.key: state.attrs[column.key].history for column in state.mapper.column_attrs}
        changed = {name: values for name, values in history.items() if values.has_changes()}
        if changed and not log.is_added(table, *key):
            log.replace_values(table, key, {name: values.deleted[0] for name, values in changed.items()})
            written = {name: values.added[0] for name, values in changed.items()}
            log.written[table].setdefault(key, {}).update(written)


def _format_time(value: date) -> str:
    return value.isoformat()


def _identity(row: Any) -> RowKey:
    return tuple(sa.inspect(row).mapper.primary_key_from_instance(row))


def _list_rows(rows: Mapping[str, Mapping[RowKey, Mapping[str, Any]]]) -> dict[str, list[Any]]:
    return {table: [[list(key), values] for key, values in by_key.items()] for table, by_key in rows.items()}


def _restore_types(table: str, values: dict[str, Any]) -> dict[str, Any]:
    columns = metadata.tables[table].c
    return {
        name: columns[name].type.python_type.fromisoformat(value)
        if value is not None and isinstance(columns[name].type, sa.Date | sa.DateTime)
        else value
        for name, value in values.items()
    }


def _pack_keys(keys: NDArray[np.int64]) -> str:
    differences = np.diff(np.asarray(keys, dtype="<i8"), prepend=0)
    return base64.b64encode(zlib.compress(differences.tobytes(), 1)).decode()


def _unpack_keys(text: str) -> NDArray[np.int64]:
    return np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8")).astype(np.int64)
