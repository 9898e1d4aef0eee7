"""Loading 1 to 10 million scores of 0 and 1 as a dense matrix from packed arrays, beside the rows of the store.

The peer is Suffrage without packed scores (`SUFFRAGE_PACKED=off`). Every time includes runs, prompts, tasks and models
by name. Building reads all rows and writes the arrays; the matrix is then loaded from them. The table shows the least
of three turns, in which both alternate, and of one turn with 10 million scores.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import sqlalchemy as sa

from benchmarks._stores import ENGINES, empty_store
from benchmarks.queries import N_PROMPTS, N_TURNS, SCORES_OF_TWO_VALUES, fill, load, packs_in

N_WARM = 10
N_RUNS = {"sqlite": (72, 400, 714), "postgresql": (400,)}
"""Runs of each store that is measured."""
MANY_SCORES = 9_000_000
"""Stores that have one turn alone."""


def measurements() -> Iterator[dict[str, Any]]:
    """One dictionary per measurement: seconds are the least of three turns."""
    for engine in ENGINES:
        for n_runs in N_RUNS[engine]:
            with empty_store(engine) as store:
                yield from _measured(store, n_runs)


def _measured(store: sa.Engine, n_runs: int) -> Iterator[dict[str, Any]]:
    fill(store, SCORES_OF_TWO_VALUES, n_runs)
    n_scores = N_PROMPTS * n_runs
    rows, built, warm = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        packs, digests = Path(folder) / "packs", set()
        for _ in range(N_TURNS if n_scores < MANY_SCORES else 1):
            rmtree(packs, ignore_errors=True)
            for place, times, n in (("off", rows, 1), (str(packs), built, 1), (str(packs), warm, N_WARM)):
                for _ in range(n):
                    with packs_in(place):
                        start = time.perf_counter()
                        matrix = load(store)
                        times.append(time.perf_counter() - start)
                    digests.add(matrix.digest)
                    del matrix
        assert len(digests) == 1
        size = sum(file.stat().st_size for file in packs.rglob("*.npy"))
    for name, times in (("the first read, which packs them", built), ("packed", warm)):
        yield {
            "name": f"{store.dialect.name}: {n_scores / 1e6:.1f} million scores to a dense matrix, {name}",
            "ours_s": round(min(times), 4),
            "ours_worst_s": round(max(times), 4),
            "peer": "the rows of the store",
            "peer_s": round(min(rows), 3),
            "ratio": round(min(rows) / min(times), 2),
            "turns": len(rows),
            "bytes_per_score": round(size / n_scores, 3),
        }


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
