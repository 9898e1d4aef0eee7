"""What the stored data of a benchmark cannot show."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partition
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.sql import tables

QUESTIONS = {
    "contamination": "Whether models saw the prompts in training: no run is answer-only "
    "(`suffrage evaluate --condition answer_only`).",
    "templates": "Whether another template of the prompts changes the order: only one variant is stored.",
    "trials": "How much a repeated evaluation would change: every prompt has one trial.",
    "reference answers": "How many reference answers are wrong: the scores take all of them as right.",
    "world": "Whether these prompts stand for the use you have in mind: no statistic of the benchmark shows that.",
}
"""Sentences by subject, in the order in which they are shown."""


def list_open_questions(session: Session, selection: Selection) -> Iterator[str]:
    """Yield what the data of a benchmark cannot show, a sentence each.

    Args:
        session: the store.
        selection: the selection.

    Raises:
        NotFoundError: the benchmark does not exist.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    run, score = tables.run.c, tables.score.c
    runs = sa.select(run.id).where(run.benchmark_id == benchmark.id, run.status == "complete")
    answered = {
        "contamination": runs.where(run.condition == "answer_only"),
        "templates": runs.where(run.variant != selection.variant, run.condition == selection.condition),
        "trials": sa.select(score.run_id).where(
            score.run_id.in_(runs), score.trial > 0, in_partition(session, tables.score, benchmark.id)
        ),
    }
    for subject, sentence in QUESTIONS.items():
        query = answered.get(subject)
        if query is None or session.execute(query.limit(1)).first() is None:
            yield sentence
