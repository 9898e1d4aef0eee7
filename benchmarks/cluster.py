"""Two Dask workers beside one, and beside two threads, for the permutations of `prompt-correlation`.

Scheduler, workers and client run on this machine, whose cores they share. The workers are warm: they have compiled code
and the data. All draws are equal. The row of two threads shows how far two cores help without a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from distributed import LocalCluster

from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.continuous import compare_continuous
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarity_test import SimilarityTests
from benchmarks._costs import seconds
from benchmarks._tables import binary_table, continuous_table
from tracker.recording.inputs.workers import Workers, use_workers

TURNS = 2


def _run(table: np.ndarray, n_permutations: int, workers: Workers, kept: list[SimilarityTests]) -> None:
    compare = compare_binary if set(np.unique(table)) <= {0.0, 1.0} else compare_continuous
    with use_workers(workers):
        kept.append(compare(ScoreTable(table, None), seed=0, n_permutations=n_permutations))


def _have_equal_draws(results: list[SimilarityTests]) -> bool:
    first = results[0].tests[0].comparisons
    return all(
        np.array_equal(comparison.null, result.tests[0].comparisons[name].null, equal_nan=True)
        for result in results
        for name, comparison in first.items()
    )


def _local_cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


def measurements() -> Iterator[dict[str, Any]]:
    """Three lines for each table."""
    tables = (
        ("12032x29 binary", binary_table(12_032, 29), 1000),
        ("805x58 continuous", continuous_table(805, 58), 4000),
    )
    with _local_cluster(1) as single, _local_cluster(2) as double:
        choices: dict[str, Workers] = {
            "one thread": 1,
            "two threads": 2,
            "one worker": single.scheduler_address,
            "two workers": double.scheduler_address,
        }
        for name, table, n_permutations in tables:
            kept: list[SimilarityTests] = []
            runs = {label: partial(_run, table, n_permutations, workers, kept) for label, workers in choices.items()}
            for run in runs.values():
                run()
            least = dict.fromkeys(runs, float("inf"))
            for _ in range(TURNS):
                for label, run in runs.items():
                    least[label] = min(least[label], seconds(run))
            assert _have_equal_draws(kept)
            pairs = ("one worker", "two workers"), ("two threads", "two workers"), ("one thread", "two threads")
            for peer, measured in pairs:
                yield {
                    "name": f"{n_permutations:,} permutations, {name}, {measured}",
                    "ours_s": round(least[measured], 3),
                    "peer": peer,
                    "peer_s": round(least[peer], 3),
                    "ratio": round(least[peer] / least[measured], 2),
                    "note": f"the least of {TURNS} turns; equal draws",
                }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
