"""Loading 5.6 million scores as a dense matrix, beside ADBC and pandas, on SQLite and PostgreSQL.

Suffrage selects the benchmark, metric and runs by name, and loads prompts, tasks and models beside the scores. The
peers read three columns of `score` by known keys and scatter the values into a matrix of known shape. The stronger one
reads an Arrow table through ADBC. Suffrage does so with two connections to SQLite, which read half of the runs each,
and lets PostgreSQL gather the scores. Scores are 0 and 1, which are read faster than scores of more values. Later reads
load packed scores: the rows with "packed". The table shows the least of three turns, and of ten packed reads.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from benchmarks._costs import seconds
from benchmarks._stores import ENGINES, connect_adbc, empty_store
from tracker.database import transaction
from tracker.queries.packed.pack_folder import VARIABLE
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection

N_PROMPTS, N_RUNS, N_TASKS = 14_000, 400, 57
N_TURNS, N_PACKED = 3, 10
SCORES_OF_TWO_VALUES = "mod(run.id * 7 + prompt.id * prompt.id, 5) % 2"
SCORES_OF_FIVE_VALUES = "mod(run.id * 7 + prompt.id * prompt.id, 5) / 3.0"
SCORES = "SELECT run_id, prompt_id, value FROM score WHERE metric_id = 1"


def measurements() -> Iterator[dict[str, Any]]:
    """One dictionary per measurement: seconds are the least of three turns."""
    for engine in ENGINES:
        with empty_store(engine) as store, packs_in("off"):
            fill(store, SCORES_OF_TWO_VALUES)
            yield from _matrices(
                store, "", {"ADBC and a scatter": _by_adbc, "pandas.read_sql and a scatter": _by_pandas}
            )
            yield _leaderboard(store)
        with empty_store(engine) as store, packs_in("off"):
            fill(store, SCORES_OF_FIVE_VALUES)
            yield from _matrices(store, " of five values", {"ADBC and a scatter": _by_adbc})


def _matrices(store: sa.Engine, values: str, peers: dict[str, Callable[[sa.Engine], Any]]) -> Iterator[dict[str, Any]]:
    own_times, peer_times = [], {name: [] for name in peers}
    for _ in range(N_TURNS):
        own_times.append(seconds(lambda: load(store)))
        for name, load_peer in peers.items():
            peer_times[name].append(seconds(partial(load_peer, store)))
    with tempfile.TemporaryDirectory() as folder, packs_in(folder):
        load(store)  # packs them
        packed_times = [seconds(lambda: load(store)) for _ in range(N_PACKED)]
        packed = load(store)
    matrix = load(store)
    assert packed.digest == matrix.digest
    order = np.argsort(matrix.prompt_ids), np.argsort(matrix.run_ids)
    for name, load_peer in peers.items():
        assert np.array_equal(matrix.Q[order[0]][:, order[1]], load_peer(store))
        for kind, times in (("", own_times), (", packed", packed_times)):
            yield {
                "name": f"{store.dialect.name}: 5.6 million scores{values} to a dense matrix{kind}, beside {name}",
                "ours_s": round(min(times), 3),
                "ours_worst_s": round(max(times), 3),
                "peer_s": round(min(peer_times[name]), 3),
                "ratio": round(min(peer_times[name]) / min(times), 2),
            }


def _leaderboard(store: sa.Engine) -> dict[str, Any]:
    with transaction(store, write=False) as session:
        start = time.perf_counter()
        load_leaderboard(session, Selection(benchmark="simulated"), with_rank_intervals=False)
        return {
            "name": f"{store.dialect.name}: leaderboard of 400 models over 14,000 prompts, clustered errors included",
            "ours_s": time.perf_counter() - start,
        }


def load(store: sa.Engine) -> PerformanceMatrix:
    """Load the matrix as an analysis does."""
    with transaction(store, write=False) as session:
        return load_performance_matrix(session, "simulated")


def _scatter(table: Any) -> NDArray[np.float64]:
    run_ids, prompt_ids, values = (table[name].to_numpy() for name in ("run_id", "prompt_id", "value"))
    Q = np.full((N_PROMPTS, N_RUNS), np.nan)
    Q[prompt_ids - 1, run_ids - 1] = values
    return Q


def _by_adbc(store: sa.Engine) -> NDArray[np.float64]:
    options = {"adbc.sqlite.query.batch_rows": str(2**16)} if store.dialect.name == "sqlite" else {}
    with connect_adbc(store) as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:
        cursor.execute(SCORES)
        return _scatter(cursor.fetch_arrow_table())


def _by_pandas(store: sa.Engine) -> NDArray[np.float64]:
    import pandas as pd

    with store.connect() as connection:
        return _scatter(pd.read_sql(sa.text(SCORES), connection))


@contextmanager
def packs_in(place: str) -> Iterator[None]:
    """Keep packed scores in a folder, or switch them off: ``off``."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = place
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def fill(store: sa.Engine, score: str, n_runs: int = N_RUNS) -> None:
    """Store 14,000 prompts × some runs, written by the engine itself.

    Args:
        store: an empty store.
        score: SQL of the score of ``prompt`` in ``run``.
        n_runs: number of runs.
    """
    postgresql = store.dialect.name == "postgresql"
    checksum = "lpad(CAST(i AS text), 32, '1')" if postgresql else f"substr('{'1' * 32}' || i, -32)"

    def numbers(n: int) -> str:
        if postgresql:
            return f"generate_series(1, {n}) AS s(i)"
        return f"(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {n}) SELECT i FROM s) AS s"

    statements = [
        "INSERT INTO benchmark (id, name, revision) VALUES (1, 'simulated', '')",
        "INSERT INTO metric (id, name, higher_is_better) VALUES (1, 'accuracy', true)",
        f"INSERT INTO task (id, benchmark_id, name) SELECT i, 1, 'task ' || i FROM {numbers(N_TASKS)}",
        f"INSERT INTO model (id, name) SELECT i, 'model ' || i FROM {numbers(n_runs)}",
        "INSERT INTO prompt (id, task_id, occurrence, content_hash, text) "
        f"SELECT i, 1 + mod(i, {N_TASKS}), 0, 'hash ' || i, 'question ' || i FROM {numbers(N_PROMPTS)}",
        "INSERT INTO run (id, benchmark_id, model_id, condition, variant, label, limited, status, n_scores, checksum, "
        f"ingested) SELECT i, 1, i, 'full', '', '', false, 'complete', {N_PROMPTS}, {checksum}, '2026-01-01 00:00:00' "
        f"FROM {numbers(n_runs)}",
        f"INSERT INTO {'score_1' if postgresql else 'score'} (run_id, metric_id, prompt_id, trial, value) "
        f"SELECT run.id, 1, prompt.id, 0, {score} "
        "FROM run CROSS JOIN prompt ORDER BY run.id, prompt.id",
    ]
    with store.execution_options(begin="IMMEDIATE").begin() as connection:
        connection.execute(sa.text(statements[0]))  # on PostgreSQL this creates the partitions
        if postgresql:  # what the engine makes up here has parents; do not time the checks
            connection.exec_driver_sql("SET session_replication_role = replica")
        for statement in statements[1:]:
            connection.execute(sa.text(statement))
    with store.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
