"""The texts of answers on their way into the store, block by block, so that they are never all in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.ingest.measurement import Answers, Measurement
from tracker.ingest.write.answer_columns import AnswerChunk, AnswerColumn, stored_form
from tracker.ingest.write.bulk_rows import insert_answers
from tracker.ingest.write.score_columns import pack
from tracker.ingest.write.stored_runs import RunUpdate
from tracker.schema import Answer

ANSWER: sa.Table = Answer.__table__  # type: ignore[attr-defined]


def write_answers(
    session: Session,
    measurements: Sequence[Measurement],
    pieces_of: Sequence[tuple[RunUpdate, Sequence[AnswerChunk]]],
) -> None:
    """Insert and overwrite the answers that were decided on.

    Args:
        session: where to.
        measurements: the file's blocks, which hold the texts.
        pieces_of: for each decision, the blocks of answers of its run.
    """
    added: dict[tuple[int, str], _Waiting] = {}
    changed: dict[tuple[int, str], _Waiting] = {}
    work: list[tuple[int, RunUpdate, AnswerChunk]] = []
    for decision, pieces in pieces_of:
        for piece in pieces:
            work.append((piece.block, decision, piece))
            key = (id(decision), piece.extraction)
            for waiting, columns in ((added, decision.answers), (changed, decision.changed_answers)):
                if key not in waiting and len(columns.get(piece.extraction, ())):
                    waiting[key] = _Waiting(columns[piece.extraction])
    for number, decision, piece in sorted(work, key=lambda one: one[0]):
        key = (id(decision), piece.extraction)
        if key not in added and key not in changed:
            continue
        block = measurements[number]
        assert isinstance(block, Answers)
        if key in added:
            insert_answers(session, _rows(decision, block, piece, added[key]))
        if key in changed and (rows := _rows(decision, block, piece, changed[key])):
            _overwrite(session, rows)


class _Waiting:
    """Answers that still have to be written; the first of those said twice is."""

    def __init__(self, column: AnswerColumn) -> None:
        self._keys = column.keys
        self._left = np.ones(len(column), dtype=bool)

    def take(self, piece: AnswerChunk) -> NDArray[np.int64]:
        """The rows of a block that are to be written, in the order of their keys."""
        rows = np.flatnonzero(piece.held)
        keys = pack(piece.prompt_ids, piece.trials)[rows]
        keys, first = np.unique(keys, return_index=True)
        rows = rows[first]
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        chosen = (self._keys[at] == keys) & self._left[at]
        self._left[at[chosen]] = False
        taken: NDArray[np.int64] = rows[chosen]
        return taken


def _rows(decision: RunUpdate, block: Answers, piece: AnswerChunk, waiting: _Waiting) -> list[tuple[Any, ...]]:
    rows = waiting.take(piece).tolist()
    if not rows:
        return []
    assert decision.run.id is not None
    texts, statuses = stored_form(block)
    trials = np.broadcast_to(piece.trials, len(texts))
    found = []
    for row in rows:
        chance = float(piece.probabilities[row])
        known = None if math.isnan(chance) else chance
        where = (decision.run.id, int(piece.prompt_ids[row]), piece.extraction, int(trials[row]))
        found.append((*where, texts[row], known, statuses[row]))
    return found


def _overwrite(session: Session, rows: Sequence[tuple[Any, ...]]) -> None:
    names = ("run", "prompt", "how", "nth", "text", "probability", "status")
    where = (
        (ANSWER.c.run_id, "run"), (ANSWER.c.prompt_id, "prompt"), (ANSWER.c.extraction, "how"), (ANSWER.c.trial, "nth"),
    )  # fmt: skip
    statement = sa.update(ANSWER).where(*(column == sa.bindparam(name) for column, name in where))
    session.connection().execute(statement, [dict(zip(names, row, strict=True)) for row in rows])
