"""The scores and answers of one run, prompt by prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.queries.browsing.prompt_list import describe_prompts
from tracker.queries.sql import tables
from tracker.queries.sql.kept_reads import read_once


@dataclass(frozen=True, kw_only=True)
class RunPrompts:
    """The prompts of a run, by key.

    Attributes:
        prompt_ids: ``(n,)`` int64, ascending: every prompt with a score or an answer.
        tasks: ``(n,)`` their tasks.
        score: ``(n,)`` mean over the trials under the metric; NaN without a score.
        metric: name of the metric, the first one by name; '' without any.
    """

    prompt_ids: NDArray[np.int64]
    tasks: NDArray[np.str_]
    score: NDArray[np.float64]
    metric: str


def load_run_prompts(session: Session, run_id: int, metric: str = "") -> RunPrompts:
    """Return the prompts of a run.

    Args:
        session: the store.
        run_id: its key.
        metric: name of a metric; '' for the first one by name.
    """
    score, answer = tables.score.c, tables.answer.c
    names = sa.select(tables.metric.c.name).join(tables.score, score.metric_id == tables.metric.c.id)
    scores_of_run = score.run_id == run_id, in_partitions_of_runs(session, tables.score, [run_id])
    known = sorted(session.scalars(names.where(*scores_of_run).distinct()))
    chosen = metric if metric in known else next(iter(known), "")
    means = session.execute(
        sa.select(score.prompt_id, sa.func.avg(score.value))
        .join(tables.metric, tables.metric.c.id == score.metric_id)
        .where(*scores_of_run, tables.metric.c.name == chosen)
        .group_by(score.prompt_id)
    ).all()
    scored, values = (
        np.array(column, dtype) for column, dtype in zip(_transpose(means), (np.int64, float), strict=True)
    )
    answers_of_run = answer.run_id == run_id, in_partitions_of_runs(session, tables.answer, [run_id])
    answered = session.scalars(sa.select(answer.prompt_id).where(*answers_of_run).distinct()).all()
    keys = np.union1d(scored, np.array(answered, dtype=np.int64))
    scores = np.full(len(keys), np.nan)
    scores[np.searchsorted(keys, scored)] = values
    return RunPrompts(prompt_ids=keys, tasks=_find_tasks(session, run_id, keys), score=scores, metric=chosen)


def _find_tasks(session: Session, run_id: int, prompt_ids: NDArray[np.int64]) -> NDArray[np.str_]:
    """Return the names of the tasks of some prompts, most or all of them of the run's benchmark."""
    prompt, task = tables.prompt.c, tables.task.c
    query = sa.select(prompt.id, task.name).join(tables.task, task.id == prompt.task_id).order_by(prompt.id)
    benchmark = session.scalar(sa.select(tables.run.c.benchmark_id).where(tables.run.c.id == run_id))

    def read(condition: sa.ColumnElement[bool]) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
        ids, names = _transpose(session.execute(query.where(condition)).all())
        return np.array(ids, dtype=np.int64), np.array(names, dtype=np.str_)

    known = read_once(session, ("task_names", benchmark), lambda: read(task.benchmark_id == benchmark))
    missing = np.setdiff1d(prompt_ids, known[0], assume_unique=True).tolist()
    parts = [known, *(read(prompt.id.in_(part)) for part in split_keys(missing))]
    ids, names = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(ids)
    places = order[np.searchsorted(ids, prompt_ids, sorter=order)]
    return names[places]


def _transpose(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return the two columns of some rows."""
    return list(zip(*rows, strict=True)) or ((), ())


def describe_run_responses(session: Session, run_id: int, prompt_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return a record for each of some prompts, by key: the prompt, and the answer of a run in its first trial."""
    kept, prompt = tables.answer.c, tables.prompt.c
    records = describe_prompts(session, prompt_ids)
    for part in split_keys(prompt_ids):
        references = session.execute(sa.select(prompt.id, prompt.answer).where(prompt.id.in_(part)))
        for key, reference in references:
            records[key] |= {"reference": reference, "answer": None, "probability": None, "status": ""}
        rows = session.execute(
            sa.select(kept.prompt_id, kept.text, kept.probability, kept.status)
            .where(
                kept.run_id == run_id, kept.prompt_id.in_(part), in_partitions_of_runs(session, tables.answer, [run_id])
            )
            .order_by(kept.prompt_id, kept.trial.desc(), kept.extraction.desc())
        )
        for key, text, probability, status in rows:  # the first trial and the default extraction come last
            records[key] |= {"answer": text, "probability": probability, "status": status}
    return records


def load_first_answers(
    session: Session, run_ids: Sequence[int], prompt_ids: Sequence[int]
) -> dict[tuple[int, int], str | None]:
    """Return the answers of some runs to some prompts, by keys of run and prompt: those of the first trial."""
    kept = tables.answer.c
    answers: dict[tuple[int, int], str | None] = {}
    for part in split_keys(prompt_ids):
        rows = session.execute(
            sa.select(kept.run_id, kept.prompt_id, kept.text)
            .where(
                kept.run_id.in_(list(run_ids)),
                kept.prompt_id.in_(part),
                in_partitions_of_runs(session, tables.answer, run_ids),
            )
            .order_by(kept.run_id, kept.prompt_id, kept.trial.desc(), kept.extraction.desc())
        )
        answers |= {(run, prompt): text for run, prompt, text in rows}  # the first trial comes last
    return answers
