"""Small stores, filled row by row through the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker import schema
from tracker.database import transaction
from tracker.ingest.write.vectors import EncoderName, add_vectors, find_or_add_encoder
from tracker.queries.sql import tables

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
N_SIMULATED = 60


def _item(session: Session, table: type, **values: object) -> int:
    """Key of the row with these values, which is made where it is not there."""
    result = session.scalars(select(table).filter_by(**values)).first()
    if result is None:
        result = table(**values)
        session.add(result)
        session.flush()
    return result.id


def add_scores(
    engine: sa.Engine,
    Q: NDArray[np.float64],
    *,
    tasks: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    benchmark: str = "b",
    revision: str = "",
    metric: str = "accuracy",
    higher_is_better: bool = True,
    condition: str = "full",
    variant: str = "",
    label: str = "",
    trial: int = 0,
    ingested: datetime = WHEN,
    status: str = "complete",
    texts: Sequence[str] | None = None,
    splits: Sequence[str | None] | None = None,
) -> list[int]:
    """Store a matrix of prompts × models, NaN as no row; returns the key of each column's run.

    Prompts are told apart by their row number, models and everything else by name.
    """
    n, k = Q.shape
    with transaction(engine) as session:
        benchmark_id = _item(session, schema.Benchmark, name=benchmark, revision=revision)
        known = session.scalars(select(schema.Metric).filter_by(name=metric)).first()
        metric_id = known.id if known else _item(session, schema.Metric, name=metric, higher_is_better=higher_is_better)
        prompt_ids = []
        for i in range(n):
            task_id = _item(session, schema.Task, benchmark_id=benchmark_id, name=tasks[i] if tasks else "")
            content = f"{benchmark}-{revision}-{i}"
            result = session.scalars(select(schema.Prompt).filter_by(task_id=task_id, content_hash=content)).first()
            if result is None:
                text = texts[i] if texts else f"Question {i}?"
                result = schema.Prompt(task_id=task_id, content_hash=content, text=text, choices=["a", "b"], answer="A")
                result.split = splits[i] if splits else None
                session.add(result)
                session.flush()
            prompt_ids.append(result.id)
        runs = []
        for j in range(k):
            model_id = _item(session, schema.Model, name=models[j] if models else f"m{j}")
            identity = {
                "benchmark_id": benchmark_id,
                "model_id": model_id,
                "condition": condition,
                "variant": variant,
                "label": label,
            }
            run = session.scalars(select(schema.Run).filter_by(**identity)).first()
            if run is None:
                run = schema.Run(**identity, ingested=ingested, status=status)
                session.add(run)
                session.flush()
            runs.append(run.id)
            rows = [
                {
                    "run_id": run.id,
                    "metric_id": metric_id,
                    "prompt_id": prompt_ids[i],
                    "trial": trial,
                    "value": float(Q[i, j]),
                }
                for i in range(n)
                if not np.isnan(Q[i, j])
            ]
            if rows:
                session.execute(sa.insert(schema.Score), rows)
            run.n_scores += len(rows)
            run.checksum = f"{run.n_scores:032x}"
            session.add(run)
        return runs


def add_task_scores(
    engine: sa.Engine, T: NDArray[np.float64], *, tasks: Sequence[str], models: Sequence[str], metric: str = "accuracy"
) -> list[int]:
    """Store a matrix of tasks × models as published; NaN as no row."""
    with transaction(engine) as session:
        benchmark_id = _item(session, schema.Benchmark, name="b", revision="")
        metric_id = _item(session, schema.Metric, name=metric)
        runs = []
        for j, model in enumerate(models):
            model_id = _item(session, schema.Model, name=model)
            run_id = _item(session, schema.Run, benchmark_id=benchmark_id, model_id=model_id)
            runs.append(run_id)
            for i, task in enumerate(tasks):
                if not np.isnan(T[i, j]):
                    session.add(
                        schema.TaskScore(
                            run_id=run_id,
                            metric_id=metric_id,
                            task_id=_item(session, schema.Task, benchmark_id=benchmark_id, name=task),
                            value=float(T[i, j]),
                            stderr=0.01,
                            n_prompts=100,
                        )
                    )
        return runs


def add_weights(
    engine: sa.Engine,
    weights: Sequence[float],
    *,
    benchmark: str = "b",
    scheme: str = "custom",
    key: int | None = None,
    made_by: str = "custom-weights",
) -> int:
    """Store weights of a benchmark's first prompts in the order of their keys, NaN as none; key of the finding.

    With a key, one more scheme of that finding.
    """
    with transaction(engine) as session:
        owner = session.scalars(select(schema.Benchmark).filter_by(name=benchmark)).one().id
        requested = select(schema.Prompt.id).join(schema.Task).where(schema.Task.benchmark_id == owner)
        prompts = session.scalars(requested.order_by(schema.Prompt.id)).all()
        if key is None:
            finding = schema.StoredFinding(
                benchmark_id=owner,
                analysis=made_by,
                parameters={},
                selection={"benchmark": benchmark},
                input_digest="d",
                code_version="v",
                headline="Weights.",
            )
            session.add(finding)
            session.flush()
            key = finding.id
        rows = [
            {"finding_id": key, "name": f"weight.{scheme}", "prompt_id": prompt, "value": weight}
            for prompt, weight in zip(prompts, weights, strict=False)
            if not np.isnan(weight)
        ]
        if rows:
            session.execute(sa.insert(schema.PromptValue), rows)
        return key


def add_filter(
    engine: sa.Engine,
    kept: Sequence[bool],
    *,
    benchmark: str = "b",
    reasons: Mapping[str, Sequence[tuple[int, bool, int | None]]] | None = None,
    models: Sequence[str] = (),
    made_by: str = "smart-filtering",
    selection: Mapping[str, object] | None = None,
) -> int:
    """Store a filter of a benchmark's first prompts in the order of their keys; key of the finding.

    Reasons are, by step: number of the prompt in that order, whether it is retained, its group.
    """
    with transaction(engine) as session:
        owner = session.scalars(select(schema.Benchmark).filter_by(name=benchmark)).one().id
        requested = select(schema.Prompt.id).join(schema.Task).where(schema.Task.benchmark_id == owner)
        prompts = session.scalars(requested.order_by(schema.Prompt.id)).all()
        finding = schema.StoredFinding(
            benchmark_id=owner,
            analysis=made_by,
            parameters={"confidence": 0.8},
            selection={"benchmark": benchmark, **(selection or {})},
            input_digest="d",
            code_version="v",
            headline="A filter.",
        )
        session.add(finding)
        session.flush()
        key = finding.id
        for prompt, stays in zip(prompts, kept, strict=False):
            session.add(schema.FilterDecision(finding_id=key, prompt_id=prompt, kept=stays))
        for step, rows in (reasons or {}).items():
            for number, retained, group in rows:
                singled_out = {"prompt_id": prompts[number], "step": step, "retained": retained, "cluster": group}
                session.add(schema.FilterReason(finding_id=key, **singled_out))
        for place, name in enumerate(models, start=1):
            model = session.scalars(select(schema.Model).filter_by(name=name)).one().id
            session.add(
                schema.Ranking(finding_id=key, scheme="filter_models", model_id=model, rank=float(place), score=0.0)
            )
        return key


def add_simulated_benchmark(engine: sa.Engine, kept: NDArray[np.bool_]) -> None:
    """Store those of the same 60 prompts, with scores of 9 models and their vectors, that are kept."""
    rng, k = np.random.default_rng(3), 9
    difficulty, ability = rng.normal(size=(N_SIMULATED, 1)), np.linspace(-1.5, 0.8, k)
    Q = (rng.random((N_SIMULATED, k)) < 1 / (1 + np.exp(difficulty - ability))).astype(float)
    tasks = np.array(["law", "math", "art", "logic"] * (N_SIMULATED // 4))
    E = rng.normal(size=(N_SIMULATED, 6)).astype(np.float32)
    texts = np.array([f"What is {i} plus {i}?" for i in range(N_SIMULATED)])
    models = [f"maker {j}/model" for j in range(k)]
    earlier = (rng.random((N_SIMULATED, 1)) < 0.5).astype(float)  # of one model, which the later run then goes before
    add_scores(
        engine,
        earlier[kept],
        tasks=tasks[kept].tolist(),
        texts=texts[kept].tolist(),
        models=models[:1],
        label="earlier",
    )
    add_scores(engine, Q[kept], tasks=tasks[kept].tolist(), texts=texts[kept].tolist(), models=models)
    with transaction(engine, exclusive=True) as session:
        ids = session.scalars(sa.select(tables.prompt.c.id).order_by(tables.prompt.c.id)).all()
        key = find_or_add_encoder(session, EncoderName(name="random", revision="", template="question"), 6)
        add_vectors(session, key, np.array(ids), E[kept])
