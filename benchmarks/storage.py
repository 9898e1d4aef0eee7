"""Time and size from a Parquet file to committed scores.

Suffrage reads the file, detects its format, resolves every prompt, checks bounds, reference answers and duplicates, and
commits. The peers write the same rows from memory without these checks: SQLModel's `add_all`, and pandas' `to_sql`.
They are timed on a part of the rows and scaled.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from numpy.typing import NDArray

from benchmarks._stores import ENGINES, empty_store
from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.writer import StoreChanges, store_file
from tracker.schema import Model, Run, Score

N_PROMPTS, N_MODELS = 14_000, 400
N_PEER_RUNS = 4
N_MORE = 5
OPTIONS = ReadOptions(benchmark="large", metric="accuracy")


def measurements() -> Iterator[dict[str, Any]]:
    """One line per engine and question."""
    with tempfile.TemporaryDirectory() as folder:
        for engine in ENGINES:
            yield from _measured(engine, "binary", Path(folder))
        yield from _measured("sqlite", "continuous", Path(folder))


def _measured(engine_name: str, values: str, folder: Path) -> Iterator[dict[str, Any]]:
    path = _table(folder / f"{engine_name}-{values}.parquet", values, "model", N_MODELS)
    n_scores = N_PROMPTS * N_MODELS
    name = f"{engine_name}, {values} scores"
    with empty_store(engine_name) as engine:
        own_seconds, stored = _ingested(engine, path)
        assert stored.n_scores == n_scores
        size = _size(engine)
        more = []
        for n in range(N_MORE):
            seconds, stored = _ingested(engine, _table(folder / f"more{n}.parquet", values, f"more{n}", 1))
            assert (stored.n_scores, stored.n_prompts_new) == (N_PROMPTS, 0)
            more.append(seconds)
        peers = {"SQLModel add_all": _added_all(engine), "pandas to_sql": _to_sql(engine)}
    for peer, seconds in peers.items():
        scaled = seconds * n_scores / (N_PROMPTS * N_PEER_RUNS)
        yield {
            "name": f"Parquet file to committed scores, {name}",
            "n_scores": n_scores,
            "ours_s": round(own_seconds, 3),
            "scores_per_s": round(n_scores / own_seconds),
            "peer": f"{peer}, from memory, {N_PROMPTS * N_PEER_RUNS} rows scaled to {n_scores}",
            "peer_s": round(scaled, 3),
            "ratio": round(scaled / own_seconds, 1),
        }
    peer_run = peers["SQLModel add_all"] / N_PEER_RUNS
    yield {
        "name": f"one more run of {N_PROMPTS} into {n_scores}, {name}",
        "ours_s": round(median(more), 4),
        "worst_s": round(max(more), 4),
        "peer": f"SQLModel add_all, from memory, {N_PROMPTS * N_PEER_RUNS} rows scaled to {N_PROMPTS}",
        "peer_s": round(peer_run, 4),
        "ratio": round(peer_run / median(more), 1),
    }
    yield {
        "name": f"size, {name}",
        "unit": "bytes per score; the whole store with its indexes, prompts and their names included",
        "value": round(size / n_scores, 2),
    }


def _table(path: Path, values: str, model: str, n_models: int) -> Path:
    random = np.random.default_rng(n_models)
    columns: dict[str, Any] = {
        "task": [f"task {n % 14}" for n in range(N_PROMPTS)],
        "prompt_id": [f"q{n}" for n in range(N_PROMPTS)],
    }
    for n in range(n_models):
        drawn: NDArray[np.float64] = random.random(N_PROMPTS)
        columns[f"{model}-{n}"] = drawn if values == "continuous" else (drawn < 0.6).astype(np.float64)
    pq.write_table(pa.table(columns), path)
    return path


def _ingested(engine: sa.Engine, path: Path) -> tuple[float, StoreChanges]:
    begun = time.perf_counter()
    reading = parse_file(path, OPTIONS)
    with transaction(engine, exclusive=True) as session:
        stored = store_file(session, reading, OPTIONS)
    return time.perf_counter() - begun, stored


def _size(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            return Path(str(engine.url.database)).stat().st_size
        size: int = connection.scalar(sa.text("SELECT pg_database_size(current_database())"))
        return size


def _peer_rows(engine: sa.Engine, peer: str) -> pd.DataFrame:
    """Rows of a few runs that exist, with keys resolved already."""
    with transaction(engine) as session:
        models = [Model(name=f"{peer} {n}") for n in range(N_PEER_RUNS)]
        session.add_all(models)
        session.flush()
        runs = [Run(benchmark_id=1, model_id=model.id) for model in models]
        session.add_all(runs)
        session.flush()
        prompts = session.scalars(sa.text("SELECT id FROM prompt ORDER BY id")).all()
        keys = [run.id for run in runs]
    values = (np.random.default_rng(0).random(len(prompts) * len(keys)) < 0.6).astype(float)
    return pd.DataFrame(
        {
            "run_id": np.repeat(keys, len(prompts)),
            "metric_id": 1,
            "prompt_id": np.tile(prompts, len(keys)),
            "trial": 0,
            "value": values,
        }
    )


def _added_all(engine: sa.Engine) -> float:
    rows = _peer_rows(engine, "add_all").to_dict("records")
    begun = time.perf_counter()
    with transaction(engine) as session:
        session.add_all(Score(**row) for row in rows)
    return time.perf_counter() - begun


def _to_sql(engine: sa.Engine) -> float:
    rows = _peer_rows(engine, "to_sql")
    begun = time.perf_counter()
    with engine.begin() as connection:
        rows.to_sql("score", connection, if_exists="append", index=False)
    return time.perf_counter() - begun


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
