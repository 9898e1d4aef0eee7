"""Readings made by hand, and what a store holds, in names instead of keys."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker import schema
from tracker.database import transaction
from tracker.ingest.measurement import (
    Answers,
    Measurement,
    MetricDescription,
    ParsedFile,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    TaskScores,
)
from tracker.ingest.write.store_changes import StoreChanges
from tracker.ingest.write.writer import store_file

B = ReadOptions(benchmark="b")
ACCURACY = MetricDescription(name="accuracy", higher_is_better=True, lower=0.0, upper=1.0)
Key = str | tuple[str, str]  # a key, or task and key


def prompts(keys: Sequence[Key], **content: Any) -> Prompts:
    tasks = [key[0] for key in keys if isinstance(key, tuple)]
    plain = [key[1] if isinstance(key, tuple) else key for key in keys]
    lines = np.arange(2, 2 + len(plain))
    return Prompts(keys=plain, tasks=tasks if len(tasks) == len(keys) and tasks else None, lines=lines, **content)


def scores(
    values: Mapping[Key, float],
    model: str = "m",
    metric: MetricDescription = ACCURACY,
    *,
    trials: Any = 0,
    of: Prompts | None = None,
    **run: Any,
) -> Scores:
    return Scores(
        run=RunDescription(model=model, **run),
        metric=metric,
        prompts=of or prompts(list(values)),
        values=np.array(list(values.values()), dtype=float),
        trials=trials,
        places=f"column {model!r}",
    )


def answers(texts: Mapping[Key, str | None], model: str = "m", **more: Any) -> Answers:
    run = {name: more.pop(name) for name in ("label", "condition") if name in more}
    return Answers(
        run=RunDescription(model=model, **run), prompts=prompts(list(texts)), text=list(texts.values()), **more
    )


def task_scores(values: Mapping[str, float], model: str = "m", **run: Any) -> TaskScores:
    return TaskScores(
        run=RunDescription(model=model, **run),
        metric=ACCURACY,
        tasks=list(values),
        values=np.array(list(values.values()), dtype=float),
    )


def parsed_file(*blocks: Measurement, identity: str | None = None) -> ParsedFile:
    identity = identity or uuid.uuid4().hex
    return ParsedFile(
        path=Path("results.csv"), files=(), format="made", digest=identity, identity=identity, measurements=blocks
    )


def store_blocks(engine: sa.Engine, *blocks: Measurement, identity: str | None = None, **options: Any) -> StoreChanges:
    """Store blocks as one file, in a transaction of its own."""
    with transaction(engine, exclusive=True) as session:
        return store_file(session, parsed_file(*blocks, identity=identity), options.pop("options", B), **options)


def stored_contents(session: Session) -> dict[str, set[tuple[Any, ...]]]:
    """Scores, answers, task scores, prompts and runs, in names."""
    names = (
        "JOIN run ON run.id = {0}.run_id JOIN model ON model.id = run.model_id "
        "JOIN benchmark ON benchmark.id = run.benchmark_id"
    )
    prompt = "JOIN prompt_alias a ON a.prompt_id = {0}.prompt_id JOIN task ON task.id = a.task_id"
    queries = {
        "scores": "SELECT benchmark.name, model.name, run.condition, run.label, metric.name, task.name, a.namespace, "
        f"a.key, score.trial, score.value FROM score {names} JOIN metric ON metric.id = metric_id {prompt}",
        "answers": "SELECT benchmark.name, model.name, run.label, task.name, a.namespace, a.key, extraction, trial, "
        f"answer.text, probability, answer.status FROM answer {names} {prompt}",
        "task_scores": "SELECT benchmark.name, model.name, run.label, task.name, task_score.value "
        f"FROM task_score {names} JOIN task ON task.id = task_id",
        "prompts": "SELECT benchmark.name, task.name, a.namespace, a.key, p.text, p.content_hash, p.answer, p.split "
        "FROM prompt p JOIN prompt_alias a ON a.prompt_id = p.id JOIN task ON task.id = p.task_id "
        "JOIN benchmark ON benchmark.id = task.benchmark_id",
        "runs": "SELECT model.name, run.condition, run.variant, run.label, run.n_scores FROM run "
        "JOIN model ON model.id = run.model_id",
    }
    tables = {"scores": "score", "answers": "answer", "task_scores": "task_score"}
    return {
        name: {tuple(row) for row in session.execute(sa.text(query.format(tables.get(name, ""))))}
        for name, query in queries.items()
    }


def all_rows(engine: sa.Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with engine.connect() as connection:
        return {
            table.name: sorted(map(str, connection.execute(sa.select(table)).all()))
            for table in schema.metadata.sorted_tables
        }


def values(engine: sa.Engine, model: str = "m", label: str = "") -> dict[tuple[str, str], float]:
    """Scores of one run by task and key."""
    with transaction(engine, write=False) as session:
        return {
            (row[5], row[7]): row[9] for row in stored_contents(session)["scores"] if (row[1], row[3]) == (model, label)
        }
