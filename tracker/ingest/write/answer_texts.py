"""Storage of answer texts block by block, so that they are never all in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition
from tracker.ingest.measurement import Answers, Measurement
from tracker.ingest.write.answer_columns import AnswerChunk, AnswerColumn, normalize_answers
from tracker.ingest.write.bulk_rows import insert_answers
from tracker.ingest.write.score_columns import pack
from tracker.ingest.write.stored_runs import RunUpdate
from tracker.ingest.write.undo_log import undo_log
from tracker.schema import Answer

ANSWER: sa.Table = Answer.__table__  # type: ignore[attr-defined]


def write_answers(
    session: Session,
    measurements: Sequence[Measurement],
    updates: Sequence[tuple[RunUpdate, Sequence[AnswerChunk]]],
) -> None:
    """Insert and overwrite the answers of run updates.

    Args:
        session: an open write transaction.
        measurements: blocks of the file, which hold the texts.
        updates: the updates, with the answers of each run by block.
    """
    added: dict[tuple[int, str], _PendingAnswers] = {}
    changed: dict[tuple[int, str], _PendingAnswers] = {}
    work: list[tuple[int, RunUpdate, AnswerChunk]] = []
    for update, chunks in updates:
        for chunk in chunks:
            work.append((chunk.block, update, chunk))
            key = (id(update), chunk.extraction)
            for pending, columns in ((added, update.answers), (changed, update.changed_answers)):
                if key not in pending and len(columns.get(chunk.extraction, ())):
                    pending[key] = _PendingAnswers(columns[chunk.extraction])
    for number, update, chunk in sorted(work, key=lambda item: item[0]):
        key = (id(update), chunk.extraction)
        if key not in added and key not in changed:
            continue
        block = measurements[number]
        assert isinstance(block, Answers)
        if key in added:
            insert_answers(session, _rows(update, block, chunk, added[key]))
        if key in changed and (rows := _rows(update, block, chunk, changed[key])):
            _overwrite(session, update.run.benchmark_id, rows)


class _PendingAnswers:
    """Return the answers of a column that are still to be written; of duplicate keys, the first is written."""

    def __init__(self, column: AnswerColumn) -> None:
        self._keys = column.keys
        self._is_pending = np.ones(len(column), dtype=bool)

    def select_rows(self, chunk: AnswerChunk) -> NDArray[np.int64]:
        """Return the rows of a block to write, in the order of their keys."""
        rows = np.flatnonzero(chunk.predicted)
        keys = pack(chunk.prompt_ids, chunk.trials)[rows]
        keys, first = np.unique(keys, return_index=True)
        rows = rows[first]
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        chosen = (self._keys[at] == keys) & self._is_pending[at]
        self._is_pending[at[chosen]] = False
        selected: NDArray[np.int64] = rows[chosen]
        return selected


def _rows(update: RunUpdate, block: Answers, chunk: AnswerChunk, pending: _PendingAnswers) -> list[tuple[Any, ...]]:
    rows = pending.select_rows(chunk).tolist()
    if not rows:
        return []
    assert update.run.id is not None
    texts, statuses = normalize_answers(block)
    trials = np.broadcast_to(chunk.trials, len(texts))
    answers = []
    for row in rows:
        chance = float(chunk.probabilities[row])
        known = None if math.isnan(chance) else chance
        where = (update.run.id, int(chunk.prompt_ids[row]), chunk.extraction, int(trials[row]))
        answers.append((*where, texts[row], known, statuses[row]))
    return answers


def _overwrite(session: Session, benchmark_id: int, rows: Sequence[tuple[Any, ...]]) -> None:
    names = ("run", "prompt", "how", "nth", "text", "probability", "status")
    where = (
        (ANSWER.c.run_id, "run"), (ANSWER.c.prompt_id, "prompt"), (ANSWER.c.extraction, "how"), (ANSWER.c.trial, "nth"),
    )  # fmt: skip
    if (log := undo_log(session)) is not None:
        log.replace_rows(session, ANSWER, [row[:4] for row in rows])
    terms = [column == sa.bindparam(name) for column, name in where]
    statement = sa.update(ANSWER).where(*terms, in_partition(session, ANSWER, benchmark_id))
    session.connection().execute(statement, [dict(zip(names, row, strict=True)) for row in rows])
