"""One prompt with the responses of all models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
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
    prompts = load_prompts(session, [key] if 0 <= key <= MAX_KEY else [])
    if not prompts:
        raise NotFoundError("prompt", key, [])
    return prompts[0]


def load_prompts(session: Session, keys: Sequence[int]) -> list[StoredPrompt]:
    """Return the prompts that exist of some hundred keys, by key."""
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
        .where(tables.prompt.c.id.in_(keys))
        .order_by(tables.prompt.c.id)
    )
    names = load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(keys))
    return [
        StoredPrompt(
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
        for row in session.execute(query)
    ]


def load_responses(session: Session, prompt: StoredPrompt) -> list[RunResponses]:
    """Return the responses of all complete runs with a score or an answer for a prompt, by model."""
    return load_responses_of_prompts(session, prompt.benchmark_id, [prompt.id])[prompt.id]


def load_responses_of_prompts(
    session: Session, benchmark_id: int, prompt_ids: Sequence[int]
) -> dict[int, list[RunResponses]]:
    """Return the responses to some hundred prompts of a benchmark, by prompt, as `load_responses` does."""
    runs = session.execute(
        sa.select(
            tables.run.c.id, tables.run.c.model_id, tables.model.c.name, tables.run.c.condition, tables.run.c.variant
        )
        .join(tables.model, tables.model.c.id == tables.run.c.model_id)
        .where(tables.run.c.benchmark_id == benchmark_id, tables.run.c.status == "complete")
        .order_by(tables.model.c.name, tables.run.c.id.desc())
    ).all()
    keys = [row.id for row in runs]
    scores = _scores(session, keys, prompt_ids)
    answers = _answers(session, keys, prompt_ids)
    trials: dict[tuple[int, int], set[int]] = {}
    for prompt_id, run_id, trial in (*scores, *answers):
        trials.setdefault((prompt_id, run_id), set()).add(trial)
    return {
        prompt_id: [
            RunResponses(
                run_id=row.id,
                model_id=row.model_id,
                model=row.name,
                condition=row.condition,
                variant=row.variant,
                trials=tuple(
                    _trial(n, answers.get((prompt_id, row.id, n), ()), scores.get((prompt_id, row.id, n), {}))
                    for n in sorted(trials[prompt_id, row.id])
                ),
            )
            for row in runs
            if (prompt_id, row.id) in trials
        ]
        for prompt_id in prompt_ids
    }


def _trial(number: int, answers: Sequence[sa.Row[Any]], scores: Mapping[str, float]) -> TrialResponse:
    main = min(answers, key=lambda row: row.extraction, default=None)
    return TrialResponse(
        trial=number,
        answers={row.extraction: row.text for row in answers},
        probability=None if main is None else main.probability,
        status="" if main is None else main.status,
        scores=scores,
    )


def _scores(
    session: Session, run_ids: Sequence[int], prompt_ids: Sequence[int]
) -> dict[tuple[int, int, int], dict[str, float]]:
    """Return the scores by metric, by prompt, run and trial."""
    kept = tables.score.c
    metrics = dict(session.execute(sa.select(tables.metric.c.id, tables.metric.c.name)).all())
    # The key of the table begins with run and metric: naming both makes each row a single look-up.
    rows = session.execute(
        sa.select(kept.prompt_id, kept.run_id, kept.metric_id, kept.trial, kept.value).where(
            kept.run_id.in_(run_ids),
            kept.metric_id.in_(list(metrics)),
            kept.prompt_id.in_(prompt_ids),
            in_partitions_of_runs(session, tables.score, run_ids),
        )
    )
    scores: dict[tuple[int, int, int], dict[str, float]] = {}
    for prompt, run, metric, trial, value in rows:
        scores.setdefault((prompt, run, trial), {})[metrics[metric]] = value
    return scores


def _answers(
    session: Session, run_ids: Sequence[int], prompt_ids: Sequence[int]
) -> dict[tuple[int, int, int], list[sa.Row[Any]]]:
    """Return the answers by prompt, run and trial."""
    kept = tables.answer.c
    rows = session.execute(
        sa.select(tables.answer)
        .where(
            kept.run_id.in_(run_ids),
            kept.prompt_id.in_(prompt_ids),
            in_partitions_of_runs(session, tables.answer, run_ids),
        )
        .order_by(kept.run_id, kept.extraction)
    )
    answers: dict[tuple[int, int, int], list[sa.Row[Any]]] = {}
    for row in rows:
        answers.setdefault((row.prompt_id, row.run_id, row.trial), []).append(row)
    return answers
