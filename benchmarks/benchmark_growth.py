"""The order of a growing benchmark, beside NumPy: all similarities at once and a running sum of their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from analyses.benchmark_growth.method import measure_growth
from analyses.numerics.growth.farthest_first import order_farthest_first
from analyses.numerics.growth.groups import group_rows
from benchmarks._costs import in_own_process, seconds
from benchmarks._tables import binary_table

TURNS = 3
"""Both sides are timed so often, in turn, each time in a separate process."""


def vectors(n: int, d: int) -> np.ndarray:
    """SIMULATED embeddings: directions around a common one, as those of sentence encoders are."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + 0.4 * rng.normal(size=d)


def _peer(rows: np.ndarray, criterion: str) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    similarity = unit @ unit.T
    close = similarity[0].copy()
    close[0] = np.inf
    order = [0]
    for _ in range(len(rows) - 1):
        row = int(close.argmin())
        order.append(row)
        close = close + similarity[row] if criterion == "mean" else np.maximum(close, similarity[row])
        close[row] = np.inf
    return np.array(order)


def _peer_seconds(criterion: str, rows: np.ndarray) -> float:
    return seconds(partial(_peer, rows, criterion))


def _our_seconds(criterion: Any, rows: np.ndarray) -> float:
    order_farthest_first(group_rows(rows[:300]), 0, criterion)
    return seconds(lambda: order_farthest_first(group_rows(rows), 0, criterion))


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each kind of rows and each criterion, then a whole analysis."""
    for source, rows in (
        ("1200x14 binary", binary_table(1200, 14)),
        ("14042x100 binary", binary_table(14_042, 100)),
        ("14042x384 embeddings", vectors(14_042, 384)),
    ):
        for criterion in ("mean", "min"):
            turns = [
                [in_own_process(partial(run, criterion, rows)) for run in (_our_seconds, _peer_seconds)]
                for _ in range(TURNS)
            ]
            (seconds_ours, our_memory), (peer, peer_memory) = (min(side) for side in zip(*turns, strict=True))
            yield {
                "name": f"benchmark growth {source}, {criterion} distance",
                "ours_s": round(seconds_ours, 4),
                "peer_s": round(peer, 3),
                "ratio": round(peer / seconds_ours, 1),
                "ours_mb": round(our_memory),
                "peer_mb": round(peer_memory),
                "note": f"one order, the least of {TURNS} turns; peak memory above that of the process before the run",
            }
    table = binary_table(14_042, 100)
    measure_growth(table[:60], n_orders=1, n_permutations=1)
    yield {
        "name": "benchmark growth 14042x100 binary, whole: 1 + 20 orders of tables, 100 random orders",
        "ours_s": round(seconds(partial(measure_growth, table)), 2),
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
