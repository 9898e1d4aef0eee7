"""Erase the texts of responses; their scores, and everything computed from those, stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.ingest.write.undo_log import UndoLog
from tracker.option_labels import option_letters
from tracker.queries.sql import tables
from tracker.schema import metadata
from tracker.schema.erased_texts import is_mark, make_mark

ANSWER = metadata.tables["answer"]
RECORD = metadata.tables["undo_record"]
NOT_WRITTEN_BY_MODELS = ("finish_reason",)
"""Extractions that hold no words of a response."""
ROWS_PER_BATCH = 2_000


@dataclass(frozen=True, kw_only=True)
class ErasureSelection:
    """Which responses to erase.

    Attributes:
        run_ids: keys of the runs.
        prompt_ids: keys of the prompts; None for all.
        match: a text that a response must contain, in this letter case; '' for all.
    """

    run_ids: Collection[int]
    prompt_ids: Collection[int] | None = None
    match: str = ""


@dataclass(frozen=True, kw_only=True)
class ErasureResult:
    """The effects of an erasure.

    Attributes:
        n_texts: number of erased texts.
        n_runs: number of runs that they belong to.
        n_kept: number of answers that stay, because they are only the name of an option.
        n_records: number of earlier texts that were erased from records of imports.
    """

    n_texts: int
    n_runs: int
    n_kept: int
    n_records: int


def erase_responses(session: Session, selection: ErasureSelection, day: date) -> ErasureResult:
    """Replace the texts of responses with marks; see `tracker.schema.erased_texts`.

    Answers to multiple-choice prompts that are only an option, by letter or text, stay unless the selection has a text
    to match.

    Args:
        session: an exclusive write transaction; to preview, roll it back.
        selection: the responses.
        day: the date in the marks.
    """
    if session.connection().dialect.name == "sqlite":
        session.execute(sa.text("PRAGMA secure_delete=ON"))
    n_texts = n_kept = 0
    runs: set[int] = set()
    for rows in _read_answers(session, selection):
        options = {} if selection.match else _read_options(session, {row.prompt_id for row in rows})
        chosen = [row for row in rows if row.text.strip() not in options.get(row.prompt_id, ())]
        n_kept += len(rows) - len(chosen)
        if not chosen:
            continue
        keys: list[sa.ColumnElement[bool]] = [
            column == sa.bindparam(f"key_{column.name}") for column in ANSWER.primary_key
        ]
        changes = [
            {f"key_{column.name}": getattr(row, column.name) for column in ANSWER.primary_key}
            | {"text": make_mark(row.text, day)}
            for row in chosen
        ]
        keys.append(in_partitions_of_runs(session, ANSWER, {row.run_id for row in chosen}))
        session.connection().execute(sa.update(ANSWER).where(*keys), changes)
        n_texts += len(chosen)
        runs.update(row.run_id for row in chosen)
    n_records = _erase_records(session, selection, day)
    return ErasureResult(n_texts=n_texts, n_runs=len(runs), n_kept=n_kept, n_records=n_records)


def find_runs(
    session: Session, benchmark_id: int | None, model_ids: Sequence[int], run_ids: Sequence[int]
) -> list[int]:
    """Return the runs that meet all conditions; empty conditions select all."""
    run = tables.run.c
    query = sa.select(run.id).order_by(run.id)
    for column, keys in ((run.model_id, model_ids), (run.id, run_ids)):
        query = query.where(column.in_(keys)) if keys else query
    return list(session.scalars(query if benchmark_id is None else query.where(run.benchmark_id == benchmark_id)))


def _read_answers(session: Session, selection: ErasureSelection) -> Iterator[list[sa.Row[Any]]]:
    """Yield the selected answers with a text that is not erased yet."""
    query = sa.select(*ANSWER.primary_key, ANSWER.c.text).where(
        ANSWER.c.text.is_not(None), ANSWER.c.extraction.not_in(NOT_WRITTEN_BY_MODELS)
    )
    for run in selection.run_ids:
        of_run = ANSWER.c.run_id == run, in_partitions_of_runs(session, ANSWER, [run])
        rows: Any = session.execute(query.where(*of_run)).all()
        selected: list[sa.Row[Any]] = [row for row in rows if _is_selected(selection, row.prompt_id, row.text)]
        for first in range(0, len(selected), ROWS_PER_BATCH):
            yield selected[first : first + ROWS_PER_BATCH]


def _is_selected(selection: ErasureSelection, prompt_id: int, text: str) -> bool:
    is_prompt = selection.prompt_ids is None or prompt_id in selection.prompt_ids
    return is_prompt and selection.match in text and not is_mark(text)


def _read_options(session: Session, prompt_ids: Collection[int]) -> Mapping[int, frozenset[str]]:
    """Return the texts and letters of the options of multiple-choice prompts."""
    options: dict[int, frozenset[str]] = {}
    for part in split_keys(prompt_ids):
        query = sa.select(tables.prompt.c.id, tables.prompt.c.choices).where(tables.prompt.c.id.in_(part))
        for key, choices in session.execute(query):
            if choices:
                options[key] = frozenset([*(choice.strip() for choice in choices), *option_letters(len(choices))])
    return options


def _erase_records(session: Session, selection: ErasureSelection, day: date) -> int:
    """Erase earlier texts of the selected responses from the records of imports; return their number."""
    n_texts, runs = 0, set(selection.run_ids)
    for key, changes in session.execute(sa.select(RECORD.c.id, RECORD.c.changes)).all():
        log = UndoLog.from_bytes(changes)
        n_before = n_texts
        for rows in (log.replaced.get("answer", {}), log.written.get("answer", {})):
            for (run, prompt, extraction, _), values in rows.items():
                text = values.get("text")
                is_response = run in runs and extraction not in NOT_WRITTEN_BY_MODELS
                if is_response and text is not None and _is_selected(selection, prompt, text):
                    values["text"] = make_mark(text, day)
                    n_texts += 1
        if n_texts > n_before:
            session.execute(sa.update(RECORD).where(RECORD.c.id == key).values(changes=log.as_bytes()))
    return n_texts
