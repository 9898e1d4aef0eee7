"""A whole SMART filter of a benchmark as large as MMLU: load, compute, draw, record, on SQLite, without MLflow.

14,042 prompts in 57 tasks, 30 models with answers, the probabilities of the gold letter and of the model's own, each
with a run without the question, and two kinds of stored vectors: with near-duplicates, where the threshold is small,
and without, where it lies among all distances and most pairs are compared. Each analysis is a separate process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from benchmarks._costs import in_own_process
from benchmarks._stores import empty_store
from tracker.database import connect, transaction
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.vectors import EncoderName, ingest_vectors
from tracker.ingest.write.writer import store_file
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.pipeline import run_analysis

N_PROMPTS, N_MODELS, N_TASKS, N_DIMENSIONS = 14_042, 30, 57, 384
BAR_S = 30
CORES = 2
OPTIONS = ReadOptions(benchmark="large", probability_kind="letters")
NEAR, DISTINCT = "with near-duplicates", "without near-duplicates"


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each kind of vectors and number of workers."""
    with empty_store("sqlite") as few:
        _fill(few, 200, 8)
        in_own_process(partial(_time_analysis, str(few.url), NEAR, 1))  # compiles the kernels
    with empty_store("sqlite") as engine:
        _fill(engine, N_PROMPTS, N_MODELS)
        for encoder, workers in ((NEAR, 1), (NEAR, CORES), (DISTINCT, CORES)):
            seconds, megabytes = in_own_process(partial(_time_analysis, str(engine.url), encoder, workers))
            laps, numbers = _read_finding(engine)
            yield {
                "name": f"smart-filtering, {N_PROMPTS}x{N_MODELS} in {N_TASKS} tasks, vectors {encoder}",
                "workers": workers,
                "ours_s": round(seconds, 2),
                "laps_s": {lap: round(spent, 2) for lap, spent in laps.items()},
                "ours_mb": round(megabytes),
                "bar_s": BAR_S,
                **numbers,
            }


def _time_analysis(url: str, encoder: str, workers: int) -> float:
    """Seconds from the call of the analysis to its record."""
    engine = connect(url)
    selection = Selection(benchmark="large", metric="accuracy", encoder=encoder)
    started = time.perf_counter()
    run_analysis(engine, "smart-filtering", selection, workers=workers)
    spent = time.perf_counter() - started
    engine.dispose()
    return spent


def _read_finding(engine: sa.Engine) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of the latest finding's stages, and what it found."""
    metric_names = ("n_kept", "easy.n_flagged", "contaminated.n_flagged", "similar.n_flagged", "similar.n_pairs")
    analysis, metric = tables.finding.c, tables.finding_metric.c
    with transaction(engine, write=False) as session:
        key, laps = session.execute(
            sa.select(analysis.id, analysis.timings).order_by(analysis.id.desc()).limit(1)
        ).one()
        query = sa.select(metric.name, metric.value).where(metric.finding_id == key, metric.name.in_(metric_names))
        numbers = {str(name): None if value is None else int(value) for name, value in session.execute(query)}
    return laps, {name: numbers[name] for name in metric_names}


def _fill(engine: sa.Engine, n: int, m: int) -> None:
    """SIMULATED: a quarter easy for all, a twentieth known without the question, an eighth near-duplicates."""
    rng = np.random.default_rng(0)
    prompts = [f"p{i}" for i in range(n)]
    tasks = [f"task {i * N_TASKS // n:02d}" for i in range(n)]
    choices = [f"option {letter}" for letter in "ABCD"]
    gold = rng.integers(0, 4, n)
    easy, leaked = rng.random(n) < 0.25, rng.random(n) < 0.05
    odds = rng.normal(0.3, 0.8, (1, m)) - rng.normal(0, 1.2, (n, 1))
    with TemporaryDirectory() as folder:
        columns = {
            "prompt_id": prompts,
            "task": tasks,
            "question": [f"Question {i} of many: what is the value of item {i * 7919 % 104729}?" for i in range(n)],
            "choices": [json.dumps(choices)] * n,
            "answer": ["ABCD"[place] for place in gold],
        }
        _ingest(engine, Path(folder) / "prompts.parquet", columns)
        for condition, by_all in (("full", easy | leaked), ("answer_only", leaked)):
            knows = odds if condition == "full" else odds - 2
            right = (rng.random((n, m)) < 1 / (1 + np.exp(-knows))) | by_all[:, None]
            answers = np.where(right, gold[:, None], (gold[:, None] + rng.integers(1, 4, (n, m))) % 4)
            sure = np.where(by_all[:, None], rng.uniform(0.85, 1, (n, m)), rng.uniform(0.3, 0.95, (n, m)))
            answered = {
                "model": np.repeat([f"maker {j % 12}/model {j}" for j in range(m)], n).tolist(),
                "prompt_id": prompts * m,
                "task": tasks * m,
                "metric": ["accuracy"] * (n * m),
                "score": right.T.ravel().astype(np.float64),
                "predicted": np.array(list("ABCD"))[answers].T.ravel().tolist(),
                "predicted_probability": sure.T.ravel(),
                "gold_probability": np.where(right, sure, (1 - sure) / 3).T.ravel(),
                "condition": [condition] * (n * m),
            }
            _ingest(engine, Path(folder) / f"{condition}.parquet", answered)
        for encoder in (NEAR, DISTINCT):
            path = Path(folder) / f"{encoder}.parquet"
            _write(path, {"prompt_id": prompts, "vector": list(_vectors(rng, tasks, near=encoder == NEAR))})
            name = EncoderName(name=encoder, revision="", template="question+choices")
            with transaction(engine, exclusive=True) as session:
                ingest_vectors(session, read_vectors(path), find_benchmark(session, "large").id, "large", name)


def _vectors(rng: np.random.Generator, tasks: list[str], *, near: bool) -> np.ndarray:
    """Around a middle of each task; near-duplicates are edits of prompts before them."""
    n = len(tasks)
    middle = rng.normal(0, 1, (N_TASKS, N_DIMENSIONS))
    E = middle[np.unique(tasks, return_inverse=True)[1]] + rng.normal(0, 1.2, (n, N_DIMENSIONS))
    if near:
        originals = np.arange(0, n - 6, 24)
        for edit in range(1, 4):
            E[originals + edit] = E[originals] + rng.normal(0, 0.3, (len(originals), N_DIMENSIONS))
    return np.asarray(E, dtype=np.float32)


def _write(path: Path, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), path)


def _ingest(engine: sa.Engine, path: Path, columns: dict[str, Any]) -> None:
    _write(path, columns)
    reading = parse_file(path, OPTIONS)
    with transaction(engine, exclusive=True) as session:
        store_file(session, reading, OPTIONS)


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
