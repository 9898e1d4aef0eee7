"""How import, leaderboard, check and size grow with the number of scores, on SQLite and PostgreSQL.

Simulated scores of 0 and 1 from a Parquet file with a column for each model. The leaderboard is that of the command:
means, intervals, significance of the first place, rank intervals up to 2,000 models. It is computed twice, each time in
a new process: the first packs the scores, the second reads the pack. `check` is what `suffrage doctor` reads:
references, checksums of all content, and the pages of a SQLite file. The exponent states how a cost grows from the
size before: 1 is in proportion. SUFFRAGE_BENCHMARK_SCORES=100000000 adds larger sizes.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from benchmarks._costs import in_own_process
from benchmarks._stores import ENGINES, empty_store
from tracker.database import connect, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.packed.pack_folder import VARIABLE
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.recording.doctor import find_faults

SIZES = ((10_000, 10), (10_000, 100), (10_000, 1_000), (100_000, 1_000))
"""Prompts and models, from 10⁵ to 10⁸ scores."""
MAX_SCORES = int(os.environ.get("SUFFRAGE_BENCHMARK_SCORES", "10000000"))
N_TASKS = 50
COSTS = ("import", "first leaderboard", "leaderboard from the pack", "check")


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each engine, size and cost."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = str(Path(folder, "packs"))
        try:
            for engine in ENGINES:
                yield from _measured(engine, Path(folder))
        finally:
            del os.environ[VARIABLE]


def _measured(engine: str, folder: Path) -> Iterator[dict[str, Any]]:
    before: dict[str, float] = {}
    n_before = 0
    for n_prompts, n_models in SIZES:
        n_scores = n_prompts * n_models
        if n_scores > MAX_SCORES:
            return
        costs, size = _measure_store(engine, write_table(folder / f"{n_scores}.parquet", n_prompts, n_models))
        for name, (seconds, megabytes) in costs.items():
            line: dict[str, Any] = {
                "name": f"{engine}: {name} of 10^{round(math.log10(n_scores))} scores",
                "ours_s": round(seconds, 3),
                "ours_mb": round(megabytes),
                "n_prompts": n_prompts,
                "n_models": n_models,
            }
            if name == "import":
                line |= {"scores_per_s": round(n_scores / seconds), "bytes_per_score": round(size / n_scores, 2)}
            if name in before:
                line["exponent"] = round(math.log(seconds / before[name], n_scores / n_before), 2)
            yield line
        before, n_before = {name: seconds for name, (seconds, _) in costs.items()}, n_scores


def write_table(path: Path, n_prompts: int, n_models: int) -> Path:
    if path.exists():
        return path
    random = np.random.default_rng(0)
    ability, difficulty = random.normal(size=n_models), random.normal(size=n_prompts)
    columns: dict[str, Any] = {
        "task": [f"task {n % N_TASKS}" for n in range(n_prompts)],
        "prompt_id": [f"q{n}" for n in range(n_prompts)],
    }
    for n in range(n_models):
        chance = 1 / (1 + np.exp(difficulty - ability[n]))
        columns[f"model-{n}"] = (random.random(n_prompts) < chance).astype(np.int8)
    pq.write_table(pa.table(columns), path)
    return path


def _measure_store(engine: str, path: Path) -> tuple[dict[str, tuple[float, float]], int]:
    """Seconds and MB of each cost, and the bytes of the store."""
    with empty_store(engine) as store:
        url = store.url.render_as_string(hide_password=False)
        store.dispose()
        works = (partial(_import, url, path), partial(_rank, url), partial(_rank, url), partial(_check, url))
        costs = {name: in_own_process(work) for name, work in zip(COSTS, works, strict=True)}
        with connect(url).connect() as connection:
            if engine == "sqlite":
                size = Path(str(store.url.database)).stat().st_size
            else:
                size = connection.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0
        connection.engine.dispose()
    return costs, size


def _import(url: str, path: Path) -> float:
    return _seconds(lambda store: ingest_file(store, path, ReadOptions(benchmark="b", metric="accuracy")), url)


def _rank(url: str) -> float:
    def rank(store: sa.Engine) -> None:
        with transaction(store, write=False) as session:
            assert load_leaderboard(session, Selection(benchmark="b")).rows

    return _seconds(rank, url)


def _check(url: str) -> float:
    def check(store: sa.Engine) -> None:
        assert list(find_faults(store)) == []

    return _seconds(check, url)


def _seconds(work: Any, url: str) -> float:
    store = connect(url)
    begun = time.perf_counter()
    work(store)
    store.dispose()
    return time.perf_counter() - begun


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
