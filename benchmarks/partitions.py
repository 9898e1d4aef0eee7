"""Partitions of PostgreSQL: import of a new benchmark, a benchmark beside many scores of others, and conversion.

The import is that of 10⁷ scores of 0 and 1 from a Parquet file, into a new benchmark and into one that has a run
already, whose keys and references are checked row by row: the peer. The leaderboard is that of a benchmark of 2,000
prompts and 20 models, read from rows, before and after another benchmark gets 10⁷ scores; the least of 15 turns. The
conversion takes a store of 10⁷ scores of version 0014, is killed three times and then completed; afterwards every row
is compared with the checksums that were stored before. SUFFRAGE_BENCHMARK_SCORES=100000000 has ten times as many scores
of others.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks._costs import in_own_process
from benchmarks._stores import empty_store
from benchmarks.scaling import write_table
from tracker.connections.partition_conversion import BEGUN
from tracker.connections.schema_versions import current_version, downgrade, upgrade
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.packed.pack_folder import VARIABLE
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.recording.doctor import find_faults

N_OTHERS = int(os.environ.get("SUFFRAGE_BENCHMARK_SCORES", "10000000"))
LARGE, SMALL, ONE_RUN = (10_000, 1_000), (2_000, 20), (10_000, 1)
N_TURNS, N_KILLS = 15, 3


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each kind of import, for the leaderboard, and for the conversion."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = "off"
        try:
            yield from _measure_imports(Path(folder))
            yield _measure_leaderboard(Path(folder))
            yield _measure_conversion(Path(folder))
        finally:
            del os.environ[VARIABLE]


def _measure_imports(folder: Path) -> Iterator[dict[str, Any]]:
    path, first = write_table(folder / "large.parquet", *LARGE), write_table(folder / "one.parquet", *ONE_RUN)
    n_scores = LARGE[0] * LARGE[1]
    seconds, megabytes = [], 0.0
    for already in (False, True):
        with empty_store("postgresql") as store:
            url = _close(store)
            if already:
                _import(url, first, "b")
            spent, more = in_own_process(partial(_import, url, path, "b"))
            seconds.append(spent)
            megabytes = megabytes or more
    yield {
        "name": f"import of {n_scores:,} scores into a new benchmark",
        "ours_s": round(seconds[0], 1),
        "ours_mb": round(megabytes),
        "peer": "into a benchmark with a run, row by row",
        "peer_s": round(seconds[1], 1),
        "ratio": round(seconds[1] / seconds[0], 2),
        "scores_per_s": round(n_scores / seconds[0]),
    }


def _measure_leaderboard(folder: Path) -> dict[str, Any]:
    with empty_store("postgresql") as store:
        url = _close(store)
        _import(url, write_table(folder / "small.parquet", *SMALL), "small")
        alone = _rank(url)
        _add_others(url, N_OTHERS)
        beside = _rank(url)
    return {
        "name": f"leaderboard of {SMALL[0] * SMALL[1]:,} scores, with {N_OTHERS:,} of another benchmark",
        "ours_s": round(min(beside), 4),
        "ours_median_s": round(statistics.median(beside), 4),
        "peer": "the same without the other benchmark",
        "peer_s": round(min(alone), 4),
        "peer_median_s": round(statistics.median(alone), 4),
        "ratio": round(min(alone) / min(beside), 2),
    }


def _measure_conversion(folder: Path) -> dict[str, Any]:
    with empty_store("postgresql") as store:
        url = _close(store)
        _import(url, write_table(folder / "large.parquet", *LARGE), "b")
        engine = create_unchecked_engine(url)
        downgrade(engine, "0014")
        n_kills, begun = 0, time.perf_counter()
        while n_kills < N_KILLS:
            process = multiprocessing.get_context("spawn").Process(target=_upgrade, args=(url,))
            process.start()
            process.join(4.0 * (n_kills + 1))
            if process.exitcode is not None:
                break
            process.kill()
            process.join()
            n_kills += 1
        halfway = current_version(engine) == BEGUN
        _upgrade(url)
        seconds = time.perf_counter() - begun
        faults = list(find_faults(engine))
        engine.dispose()
    assert faults == []
    return {
        "name": f"conversion of {LARGE[0] * LARGE[1]:,} scores of version 0014 into partitions",
        "ours_s": round(seconds, 1),
        "killed": n_kills,
        "halfway_after_the_last_kill": halfway,
        "faults": len(faults),
    }


def _close(store: sa.Engine) -> str:
    url = store.url.render_as_string(hide_password=False)
    store.dispose()
    return url


def _import(url: str, path: Path, benchmark: str) -> float:
    store = connect(url)
    begun = time.perf_counter()
    ingest_file(store, path, ReadOptions(benchmark=benchmark, metric="accuracy"))
    seconds = time.perf_counter() - begun
    store.dispose()
    return seconds


def _rank(url: str) -> list[float]:
    seconds = []
    for _ in range(N_TURNS):
        store = connect(url)
        begun = time.perf_counter()
        with transaction(store, write=False) as session:
            assert load_leaderboard(session, Selection(benchmark="small")).rows
        seconds.append(time.perf_counter() - begun)
        store.dispose()
    return seconds


def _add_others(url: str, n_scores: int) -> None:
    """Fill a benchmark of 100 runs with copies of the prompts' keys, on the server."""
    store = connect(url)
    with transaction(store, exclusive=True) as session:
        connection = session.connection()
        statements = (
            "SET CONSTRAINTS benchmark_inserted DEFERRED",
            "INSERT INTO benchmark (name, revision) VALUES ('others', '')",
            "INSERT INTO run (benchmark_id, model_id, condition, variant, label, limited, status, n_scores, checksum, "
            "ingested) SELECT 2, 1, 'full', '', 'other ' || n, false, 'complete', 0, repeat('0', 32), now() "
            "FROM generate_series(1, 100) AS n",
            "SELECT start_partition('score', 2)",
            "INSERT INTO score_2 (run_id, metric_id, prompt_id, trial, value) "
            "SELECT run.id, 1, 1 + n % 2000, n / 2000, n % 2 "
            f"FROM run, generate_series(0, {n_scores // 100 - 1}) AS n WHERE benchmark_id = 2",
            "SELECT attach_partition('score', 2)",
        )
        for statement in statements:
            connection.exec_driver_sql(statement.replace("%", "%%"))
    store.dispose()


def _upgrade(url: str) -> None:
    engine = create_unchecked_engine(url)
    upgrade(engine)
    engine.dispose()


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
