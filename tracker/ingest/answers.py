"""What models said: rows for the store, and their scores against the gold answers it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.errors import BadInputError
from tracker.ingest.loading import raw_rows
from tracker.ingest.measurement import Answers
from tracker.ingest.shelf import PROMPT, TASK
from tracker.ingest.texts import accepted_answers, storable
from tracker.schema import Answer

Key = tuple[int, str, int]
Said = tuple[str | None, float | None, str]


@dataclass(frozen=True, eq=False)
class AnswerPiece:
    """A block of answers with the keys of its prompts.

    Attributes:
        block: as the file says it.
        prompt_ids: ``(n,)`` int64, aligned with the block's prompts.
    """

    block: Answers
    prompt_ids: NDArray[np.int64]

    def place(self, row: int) -> str:
        """Where an answer stands, in words."""
        prompts = self.block.prompts
        line = "" if prompts.lines is None else f"line {prompts.lines[row]}, "
        places = f"{self.block.places}, " if self.block.places else ""
        return f"{places}{line}prompt {prompts.keys[row]!r}"


def said(pieces: Sequence[AnswerPiece], path: Path) -> dict[Key, Said]:
    """Text, probability and status by prompt, extraction and trial; the same said twice counts once.

    Raises:
        BadInputError: different answers to one prompt and trial.
    """
    rows: dict[Key, Said] = {}
    problems = []
    for piece in pieces:
        block = piece.block
        extraction = storable(block.extraction)
        texts = [None if text is None else storable(text) for text in block.text]
        n = len(texts)
        chances: list[float | None] = (
            [None] * n
            if block.probability is None
            else [None if math.isnan(chance) else chance for chance in block.probability.tolist()]
        )
        status = block.status or ["empty" if text is None else "ok" for text in texts]
        trials = np.broadcast_to(block.trials, n).tolist()
        held = [True] * n if block.predicted is None else block.predicted.tolist()
        for row, prompt in enumerate(piece.prompt_ids.tolist()):
            if held[row]:
                key = (prompt, extraction, trials[row])
                now = (texts[row], chances[row], status[row])
                if rows.setdefault(key, now) != now:
                    problems.append(f"{piece.place(row)}: answered {rows[key][0]!r}, then {now[0]!r}")
    if problems:
        raise BadInputError(path, problems, advice="Number repeated answers in a column 'trial'.")
    return rows


def stored_answers(session: Session, run_id: int) -> dict[Key, Said]:
    """The answers of a run."""
    a: Any = Answer
    asked = sa.select(a.prompt_id, a.extraction, a.trial, a.text, a.probability, a.status).where(a.run_id == run_id)
    return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in raw_rows(session, asked)}


def agrees(new: Said, stored: Said) -> bool:
    """Whether two records of an answer can both be true: a probability may be missing in one."""
    return (new[0], new[2]) == (stored[0], stored[2]) and (None in (new[1], stored[1]) or new[1] == stored[1])


class Gold:
    """The gold answers of the store.

    Args:
        session: the store.
        path: the file whose answers are scored, for messages.
    """

    def __init__(self, session: Session, path: Path) -> None:
        self.session, self.path = session, path
        self._accepted: dict[int, Mapping[int, frozenset[str]]] = {}

    def scores(self, piece: AnswerPiece, benchmark_id: int) -> NDArray[np.float64]:
        """Score of each answer: 1 if it is the gold answer, 0 if not or if nothing could be extracted.

        NaN where the file holds no answer, or where the model failed (status ``error``).

        Raises:
            BadInputError: the store lacks the gold answer of a prompt.
        """
        accepted = self._of(benchmark_id)
        block = piece.block
        measured = np.ones(len(block.text), dtype=bool) if block.predicted is None else block.predicted.copy()
        if block.status is not None:
            measured &= np.array([status != "error" for status in block.status], dtype=bool)
        values = np.full(len(measured), np.nan)
        ids = piece.prompt_ids.tolist()
        rows = np.flatnonzero(measured).tolist()
        lacking = [row for row in rows if ids[row] not in accepted]
        if lacking:
            raise BadInputError(
                self.path,
                [f"{piece.place(row)}: the store holds no gold answer" for row in lacking],
                advice="Ingest a prompt table with the gold answers first.",
            )
        for row in rows:
            text = block.text[row]
            values[row] = float(text is not None and storable(text).strip() in accepted[ids[row]])
        return values

    def _of(self, benchmark_id: int) -> Mapping[int, frozenset[str]]:
        if benchmark_id not in self._accepted:
            asked = (
                sa.select(PROMPT.c.id, PROMPT.c.answer, PROMPT.c.choices)
                .join(TASK, TASK.c.id == PROMPT.c.task_id)
                .where(TASK.c.benchmark_id == benchmark_id, PROMPT.c.answer.is_not(None))
            )
            self._accepted[benchmark_id] = {
                key: accepted_answers(gold, choices) for key, gold, choices in self.session.execute(asked)
            }
        return self._accepted[benchmark_id]
