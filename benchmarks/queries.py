"""Loading 5.6 million scores as a dense matrix, beside pandas, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from benchmarks._stores import ENGINES, empty_store
from tracker.database import transaction
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection

N_PROMPTS, N_RUNS, N_TASKS = 14_000, 400, 57


def measurements() -> Iterator[dict[str, Any]]:
    """One dictionary per measurement: seconds are the best of three for ours, of one for the peer."""
    for engine in ENGINES:
        with empty_store(engine) as store:
            yield from _measured(store)


def _measured(store: sa.Engine) -> Iterator[dict[str, Any]]:
    _fill(store)
    ours_s, peer_s = [], []
    for _ in range(3):
        with transaction(store, write=False) as session:
            start = time.perf_counter()
            matrix = load_performance_matrix(session, "simulated")
            ours_s.append(time.perf_counter() - start)
    start = time.perf_counter()
    Q = _by_pandas(store)
    peer_s.append(time.perf_counter() - start)
    order = np.argsort(matrix.prompt_ids), np.argsort(matrix.run_ids)
    assert np.array_equal(matrix.Q[order[0]][:, order[1]], Q)
    yield {
        "name": f"{store.dialect.name}: 5.6 million scores to a dense matrix, beside pandas.read_sql and a scatter",
        "ours_s": min(ours_s),
        "ours_worst_s": max(ours_s),
        "peer_s": min(peer_s),
        "ratio": min(peer_s) / min(ours_s),
        "bar_s": 2.5,
    }
    with transaction(store, write=False) as session:
        start = time.perf_counter()
        load_leaderboard(session, Selection(benchmark="simulated"), with_rank_intervals=False)
        yield {
            "name": f"{store.dialect.name}: leaderboard of 400 models over 14,000 prompts, clustered errors included",
            "ours_s": time.perf_counter() - start,
        }


def _by_pandas(store: sa.Engine) -> NDArray[np.float64]:
    import pandas as pd

    with store.connect() as connection:
        frame = pd.read_sql(sa.text("SELECT run_id, prompt_id, value FROM score WHERE metric_id = 1"), connection)
    Q = np.full((N_PROMPTS, N_RUNS), np.nan)
    Q[frame["prompt_id"].to_numpy() - 1, frame["run_id"].to_numpy() - 1] = frame["value"].to_numpy()
    return Q


def _fill(store: sa.Engine) -> None:
    """14,000 prompts × 400 runs, written by the engine itself."""
    postgresql = store.dialect.name == "postgresql"

    def numbers(n: int) -> str:
        if postgresql:
            return f"generate_series(1, {n}) AS s(i)"
        return f"(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {n}) SELECT i FROM s) AS s"

    statements = [
        "INSERT INTO benchmark (id, name, revision) VALUES (1, 'simulated', '')",
        "INSERT INTO metric (id, name, higher_is_better) VALUES (1, 'accuracy', true)",
        f"INSERT INTO task (id, benchmark_id, name) SELECT i, 1, 'task ' || i FROM {numbers(N_TASKS)}",
        f"INSERT INTO model (id, name) SELECT i, 'model ' || i FROM {numbers(N_RUNS)}",
        "INSERT INTO prompt (id, task_id, occurrence, content_hash, text) "
        f"SELECT i, 1 + mod(i, {N_TASKS}), 0, 'hash ' || i, 'question ' || i FROM {numbers(N_PROMPTS)}",
        "INSERT INTO run (id, benchmark_id, model_id, condition, variant, label, limited, status, n_scores, checksum, "
        f"ingested) SELECT i, 1, i, 'full', '', '', false, 'complete', {N_PROMPTS}, '0', '2026-01-01 00:00:00' "
        f"FROM {numbers(N_RUNS)}",
        "INSERT INTO score (run_id, metric_id, prompt_id, trial, value) "
        "SELECT run.id, 1, prompt.id, 0, mod(run.id * 7 + prompt.id * prompt.id, 5) / 3 "
        "FROM run CROSS JOIN prompt ORDER BY run.id, prompt.id",
    ]
    with store.execution_options(begin="IMMEDIATE").begin() as connection:
        if postgresql:  # what the engine makes up here has parents; do not time the checks
            connection.exec_driver_sql("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(sa.text(statement))
    with store.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
