"""One prompt with the responses of all models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.resolution import benchmark_label
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class StoredPrompt:
    """A prompt.

    Attributes:
        id: its key.
        name: its name in files.
        benchmark_id, benchmark, task: where it belongs.
        text, choices, answer, split: as stored; None if unknown.
        details: further fields.
    """

    id: int
    name: str
    benchmark_id: int
    benchmark: str
    task: str
    text: str | None
    choices: Sequence[str] | None
    answer: str | None
    split: str | None
    details: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrialResponse:
    """One response of a run to a prompt.

    Attributes:
        trial: its number, from 0.
        answers: stored texts by extraction method; '' is the default method.
        probability: the model's probability of its answer; None if unknown.
        status: of the default answer, such as ``truncated``; '' without an answer.
        scores: by metric.
    """

    trial: int
    answers: Mapping[str, str | None]
    probability: float | None
    status: str
    scores: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class RunResponses:
    """All responses of a run to a prompt.

    Attributes:
        run_id, model_id, model, condition, variant: of the run.
        trials: its responses.
    """

    run_id: int
    model_id: int
    model: str
    condition: str
    variant: str
    trials: Sequence[TrialResponse] = field(default=())


def find_prompt(session: Session, key: int) -> StoredPrompt:
    """Return a prompt.

    Raises:
        NotFoundError: no prompt has this key.
    """
    query = (
        sa.select(
            tables.prompt,
            tables.task.c.name.label("task"),
            tables.benchmark.c.id.label("benchmark_id"),
            tables.benchmark.c.name.label("benchmark"),
            tables.benchmark.c.revision.label("revision"),
        )
        .join(tables.task, tables.task.c.id == tables.prompt.c.task_id)
        .join(tables.benchmark, tables.benchmark.c.id == tables.task.c.benchmark_id)
        .where(tables.prompt.c.id == key)
    )
    row = session.execute(query).one_or_none() if 0 <= key <= MAX_KEY else None
    if row is None:
        raise NotFoundError("prompt", key, [])
    names = load_prompt_names(session, tables.prompt_alias.c.prompt_id == key)
    return StoredPrompt(
        id=row.id,
        name=names.get(row.id, str(row.id)),
        benchmark_id=row.benchmark_id,
        benchmark=benchmark_label(row.benchmark, row.revision),
        task=row.task,
        text=row.text,
        choices=row.choices,
        answer=row.answer,
        split=row.split,
        details=row.details or {},
    )


def load_responses(session: Session, prompt: StoredPrompt) -> list[RunResponses]:
    """Return the responses of all complete runs with a score or an answer for a prompt, by model."""
    runs = session.execute(
        sa.select(
            tables.run.c.id, tables.run.c.model_id, tables.model.c.name, tables.run.c.condition, tables.run.c.variant
        )
        .join(tables.model, tables.model.c.id == tables.run.c.model_id)
        .where(tables.run.c.benchmark_id == prompt.benchmark_id, tables.run.c.status == "complete")
        .order_by(tables.model.c.name, tables.run.c.id.desc())
    ).all()
    keys = [row.id for row in runs]
    scores = _scores(session, keys, prompt.id)
    answers = _answers(session, keys, prompt.id)
    responses = []
    for key, model_id, model, condition, variant in runs:
        trials = sorted({trial for run, trial in (*scores, *answers) if run == key})
        if trials:
            responses.append(
                RunResponses(
                    run_id=key,
                    model_id=model_id,
                    model=model,
                    condition=condition,
                    variant=variant,
                    trials=tuple(_trial(n, answers.get((key, n), ()), scores.get((key, n), {})) for n in trials),
                )
            )
    return responses


def _trial(number: int, answers: Sequence[sa.Row[Any]], scores: Mapping[str, float]) -> TrialResponse:
    main = min(answers, key=lambda row: row.extraction, default=None)
    return TrialResponse(
        trial=number,
        answers={row.extraction: row.text for row in answers},
        probability=None if main is None else main.probability,
        status="" if main is None else main.status,
        scores=scores,
    )


def _scores(session: Session, run_ids: Sequence[int], prompt_id: int) -> dict[tuple[int, int], dict[str, float]]:
    kept = tables.score.c
    metrics = dict(session.execute(sa.select(tables.metric.c.id, tables.metric.c.name)).all())
    # The key of the table begins with run and metric: naming both makes each row a single look-up.
    rows = session.execute(
        sa.select(kept.run_id, kept.metric_id, kept.trial, kept.value).where(
            kept.run_id.in_(run_ids), kept.metric_id.in_(list(metrics)), kept.prompt_id == prompt_id
        )
    )
    scores: dict[tuple[int, int], dict[str, float]] = {}
    for run, metric, trial, value in rows:
        scores.setdefault((run, trial), {})[metrics[metric]] = value
    return scores


def _answers(session: Session, run_ids: Sequence[int], prompt_id: int) -> dict[tuple[int, int], list[sa.Row[Any]]]:
    kept = tables.answer.c
    rows = session.execute(
        sa.select(tables.answer)
        .where(kept.run_id.in_(run_ids), kept.prompt_id == prompt_id)
        .order_by(kept.run_id, kept.extraction)
    )
    answers: dict[tuple[int, int], list[sa.Row[Any]]] = {}
    for row in rows:
        answers.setdefault((row.run_id, row.trial), []).append(row)
    return answers
