"""Time to publish 1,000 runs to a new MLflow file, beside MLflow's own API.

Suffrage reads each run from the store, looks for it in MLflow, and publishes mean, coverage, the means of 14 tasks,
parameters and tags. The peer logs the same parameters, metrics and tags from memory with MLflow's fluent API: a run in
a `with` block, `set_tags`, `log_params` and `log_metrics`. Both start with a new MLflow file, whose tables are created
before.
"""

from __future__ import annotations

import csv
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks._stores import empty_store
from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.recording.mlflow.client import open_client
from tracker.recording.mlflow.mlflow_logging import quiet_environment, quiet_loggers
from tracker.recording.mlflow.model_run_spec import build_model_run_spec, run_versions
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.mlflow.tracking_store import mlflow_store

N_MODELS, N_PROMPTS, N_TASKS = 1000, 280, 14
N_PEER_RUNS = 200


def measurements() -> Iterator[dict[str, Any]]:
    """Publishing 1,000 runs, publishing them again, and the peer."""
    with tempfile.TemporaryDirectory() as folder, empty_store("sqlite") as engine:
        ingest_file(engine, _write_table(Path(folder, "table.csv")), ReadOptions(benchmark="large", metric="accuracy"))
        uri = _new_file(Path(folder, "ours.db"))
        begun = time.perf_counter()
        assert publish_missing(engine, uri).n_new == N_MODELS
        seconds = time.perf_counter() - begun
        begun = time.perf_counter()
        assert publish_missing(engine, uri).n_new == 0
        again = time.perf_counter() - begun
        peer = _log_by_fluent_api(engine, _new_file(Path(folder, "peer.db"))) * N_MODELS / N_PEER_RUNS
    yield {
        "name": f"publish {N_MODELS:,} runs",
        "n_metrics": 3 + N_TASKS,
        "ours_s": round(seconds, 2),
        "peer": f"MLflow's fluent API, from memory, {N_PEER_RUNS} runs scaled to {N_MODELS}",
        "peer_s": round(peer, 2),
        "ratio": round(peer / seconds, 1),
    }
    yield {"name": f"publish {N_MODELS:,} runs again, all of them known", "ours_s": round(again, 2)}


def _write_table(path: Path) -> Path:
    random = np.random.default_rng(0)
    abilities = random.uniform(0.2, 0.9, N_MODELS)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "prompt", *(f"model-{n:04}" for n in range(N_MODELS))])
        for n in range(N_PROMPTS):
            writer.writerow([f"task {n % N_TASKS}", f"q{n}", *(random.random(N_MODELS) < abilities).astype(int)])
    return path


def _new_file(path: Path) -> str:
    """Return the tracking URI of a new MLflow file with its tables."""
    uri = f"sqlite:///{path}"
    with open_client(mlflow_store(uri)):
        return uri


def _log_by_fluent_api(engine: sa.Engine, uri: str) -> float:
    """Return the seconds in which MLflow's fluent API logs the same runs."""
    with transaction(engine, write=False) as session:
        specs = [build_model_run_spec(session, key) for key in list(run_versions(session))[:N_PEER_RUNS]]
    with quiet_environment():
        import mlflow

        with quiet_loggers():
            mlflow.set_tracking_uri(uri)
            begun = time.perf_counter()
            mlflow.set_experiment("large")
            for spec in specs:
                with mlflow.start_run(run_name=spec.run_name, description=spec.description):
                    mlflow.set_tags(dict(spec.tags))
                    mlflow.log_params(dict(spec.parameters))
                    mlflow.log_metrics(dict(spec.metrics))
            return time.perf_counter() - begun


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
