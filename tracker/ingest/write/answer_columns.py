"""Answers of models in columns, and their scores against stored reference answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.errors import BadInputError
from tracker.ingest.measurement import Answers
from tracker.ingest.resolve.prompt_index import PROMPT, TASK
from tracker.ingest.resolve.prompt_texts import list_accepted_answers, make_storable
from tracker.ingest.write.bulk_rows import fetch_chunks
from tracker.ingest.write.score_columns import pack
from tracker.schema import Answer
from tracker.schema.erased_texts import is_mark

ROWS_PER_CHUNK = 10_000


@dataclass(frozen=True, eq=False)
class AnswerChunk:
    """Answers that one block adds, in the file's order, without their texts.

    Attributes:
        block: number of the block among the file's measurements.
        prompt_ids: ``(n,)`` int64, aligned with the block's prompts.
        trials: ``(n,)`` int64, or one number for all.
        extraction: name of the extraction method.
        digests: ``(n,)`` int64 hash of text and status; stable within one process only.
        probabilities: ``(n,)``, NaN if unknown.
        empty: ``(n,)`` whether nothing could be extracted.
        predicted: ``(n,)`` whether the file holds an answer.
        is_scored: whether to compare the answers with the reference answers.
    """

    block: int
    prompt_ids: NDArray[np.int64]
    trials: NDArray[np.int64] | int
    extraction: str
    digests: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    empty: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    is_scored: bool

    @classmethod
    def from_block(cls, number: int, block: Answers, prompt_ids: NDArray[np.int64]) -> AnswerChunk:
        """Return the chunk of a block."""
        texts, statuses = normalize_answers(block)
        n = len(texts)
        known = prompt_ids >= 0
        return cls(
            block=number,
            prompt_ids=prompt_ids,
            trials=block.trials,
            extraction=make_storable(block.extraction),
            digests=_digests(texts, statuses),
            probabilities=_probabilities(block, n),
            empty=np.fromiter((status == "empty" for status in statuses), dtype=bool, count=n),
            predicted=known if block.predicted is None else known & block.predicted,
            is_scored=block.scored_as is not None,
        )


@dataclass(frozen=True, eq=False)
class AnswerColumn:
    """Answers of one run and extraction, without their texts.

    Attributes:
        keys: ``(n,)`` int64, prompt and trial packed; strictly increasing.
        digests, probabilities, empty: ``(n,)`` as in `AnswerChunk`.
        erased: ``(n,)`` whether the text was erased, of stored answers; None for those of a file.
    """

    keys: NDArray[np.int64]
    digests: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    empty: NDArray[np.bool_]
    erased: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> AnswerColumn:
        """Return the answers where ``chosen`` is true, or at these indices."""
        return AnswerColumn(self.keys[chosen], self.digests[chosen], self.probabilities[chosen], self.empty[chosen])


def normalize_answers(block: Answers) -> tuple[list[str | None], Sequence[str]]:
    """Return the texts of a block as stored, and the status of each."""
    texts = [None if text is None else make_storable(text) for text in block.text]
    return texts, block.status or ["empty" if text is None else "ok" for text in texts]


def assemble_answers(chunks: Sequence[AnswerChunk]) -> tuple[AnswerColumn, NDArray[np.int64]]:
    """Join the chunks of one extraction; duplicate equal answers count once.

    Returns:
        The column with the first answer to each prompt and trial, and the keys ``(m,)`` of those with contradictory
        answers.
    """
    predicted = np.concatenate([chunk.predicted for chunk in chunks])
    whole = AnswerColumn(
        np.concatenate([pack(chunk.prompt_ids, chunk.trials) for chunk in chunks]),
        np.concatenate([chunk.digests for chunk in chunks]),
        np.concatenate([chunk.probabilities for chunk in chunks]),
        np.concatenate([chunk.empty for chunk in chunks]),
    )
    column = whole if predicted.all() else whole.where(predicted)
    if len(column) > 1 and not (column.keys[1:] > column.keys[:-1]).all():
        column = column.where(np.argsort(column.keys, kind="stable"))
    repeated = column.keys[1:] == column.keys[:-1]
    if not repeated.any():
        return column, np.empty(0, dtype=np.int64)
    now, before = column.probabilities[1:], column.probabilities[:-1]
    same = (column.digests[1:] == column.digests[:-1]) & ((now == before) | (np.isnan(now) & np.isnan(before)))
    return column.where(np.concatenate([[True], ~repeated])), np.unique(column.keys[1:][repeated & ~same])


def load_answers(session: Session, run_id: int) -> dict[str, AnswerColumn]:
    """Return the answers of a run by extraction."""
    a: Any = Answer
    query = (
        sa.select(a.extraction, a.prompt_id, a.trial, a.text, a.probability, a.status)
        .where(a.run_id == run_id, in_partitions_of_runs(session, Answer.__table__, [run_id]))  # type: ignore[attr-defined]
        .order_by(a.prompt_id, a.extraction, a.trial)
    )
    parts: dict[str, list[AnswerColumn]] = defaultdict(list)
    for rows in fetch_chunks(session, query, ROWS_PER_CHUNK):
        by_extraction: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for row in rows:
            by_extraction[row[0]].append(row)
        for extraction, extracted in by_extraction.items():
            _, prompts, trials, texts, chances, statuses = zip(*extracted, strict=True)
            keys = pack(np.array(prompts, dtype=np.int64), np.array(trials, dtype=np.int64))
            probabilities = np.array([np.nan if chance is None else chance for chance in chances], dtype=np.float64)
            empty = np.array([status == "empty" for status in statuses], dtype=bool)
            erased = np.array([is_mark(text) for text in texts], dtype=bool)
            parts[extraction].append(AnswerColumn(keys, _digests(texts, statuses), probabilities, empty, erased))
    return {
        extraction: AnswerColumn(
            np.concatenate([part.keys for part in columns]),
            np.concatenate([part.digests for part in columns]),
            np.concatenate([part.probabilities for part in columns]),
            np.concatenate([part.empty for part in columns]),
            np.concatenate([part.erased for part in columns if part.erased is not None]),
        )
        for extraction, columns in parts.items()
    }


@dataclass(frozen=True, eq=False)
class AnswerComparison:
    """Comparison of new answers with stored ones.

    Attributes:
        new: ``(n,)`` whether no answer is stored.
        different: ``(n,)`` whether a different answer is stored; a probability may be missing in one of them.
        lacking: ``(n,)`` whether the stored answer is equal but lacks the known probability.
    """

    new: NDArray[np.bool_]
    different: NDArray[np.bool_]
    lacking: NDArray[np.bool_]


def compare_answers(column: AnswerColumn, stored: AnswerColumn | None) -> AnswerComparison:
    """Compare a column with the stored one; an erased text is equal to any, so that no file brings it back."""
    n = len(column)
    if stored is None or not len(stored):
        none = np.zeros(n, dtype=bool)
        return AnswerComparison(new=~none, different=none, lacking=none)
    at = np.minimum(np.searchsorted(stored.keys, column.keys), len(stored) - 1)
    known = stored.keys[at] == column.keys
    chance, stored_chance = column.probabilities, stored.probabilities[at]
    same = stored.digests[at] == column.digests
    if stored.erased is not None:
        same |= stored.erased[at]
        stored_chance = np.where(stored.erased[at], chance, stored_chance)  # nothing of it is overwritten
    agree = same & (np.isnan(chance) | np.isnan(stored_chance) | (chance == stored_chance))
    return AnswerComparison(
        new=~known, different=known & ~agree, lacking=known & agree & np.isnan(stored_chance) & ~np.isnan(chance)
    )


class ReferenceScorer:
    """Scores answers against the reference answers of the store.

    Args:
        session: the store.
        path: the file whose answers are scored, for messages.
    """

    def __init__(self, session: Session, path: Path) -> None:
        self.session, self.path = session, path
        self._accepted: dict[int, Mapping[int, frozenset[str]]] = {}

    def score_answers(
        self, block: Answers, prompt_ids: NDArray[np.int64], benchmark_id: int, place: Callable[[int], str]
    ) -> NDArray[np.float64]:
        """Return the score of each answer: 1 if it equals the reference answer, else 0.

        NaN if the file holds no answer, or the model failed (status ``error``).

        Args:
            block: the answers.
            prompt_ids: ``(n,)`` keys of their prompts; negative for skipped ones.
            benchmark_id: benchmark of the reference answers.
            place: returns the place of a row's answer, for messages.

        Raises:
            BadInputError: the store has no reference answer for a prompt.
        """
        accepted = self._load_references(benchmark_id)
        measured = np.ones(len(block.text), dtype=bool) if block.predicted is None else block.predicted.copy()
        if block.status is not None:
            measured &= np.array([status != "error" for status in block.status], dtype=bool)
        measured &= prompt_ids >= 0
        values = np.full(len(measured), np.nan)
        ids = prompt_ids.tolist()
        rows = np.flatnonzero(measured).tolist()
        lacking = [row for row in rows if ids[row] not in accepted]
        if lacking:
            raise BadInputError(
                self.path,
                [f"{place(row)}: the store has no reference answer" for row in lacking[: BadInputError.MAX_LISTED]],
                count=len(lacking),
                advice="Ingest a prompt table with the reference answers first.",
            )
        for row in rows:
            text = block.text[row]
            values[row] = float(text is not None and make_storable(text).strip() in accepted[ids[row]])
        return values

    def _load_references(self, benchmark_id: int) -> Mapping[int, frozenset[str]]:
        if benchmark_id not in self._accepted:
            query = (
                sa.select(PROMPT.c.id, PROMPT.c.answer, PROMPT.c.choices)
                .join(TASK, TASK.c.id == PROMPT.c.task_id)
                .where(TASK.c.benchmark_id == benchmark_id, PROMPT.c.answer.is_not(None))
            )
            self._accepted[benchmark_id] = {
                key: list_accepted_answers(gold, choices) for key, gold, choices in self.session.execute(query)
            }
        return self._accepted[benchmark_id]


def _digests(texts: Sequence[str | None], statuses: Sequence[str]) -> NDArray[np.int64]:
    """Return Python's hash of text and status, which is fast and has 64 bits."""
    return np.fromiter(map(hash, zip(texts, statuses, strict=True)), dtype=np.int64, count=len(texts))


def _probabilities(block: Answers, n: int) -> NDArray[np.float64]:
    return np.full(n, np.nan) if block.probability is None else np.asarray(block.probability, dtype=np.float64)
