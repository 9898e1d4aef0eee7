"""Rankings by sets of tasks, beside a loop over `itertools.combinations` and `scipy.stats.kendalltau`.

Where all sets would take minutes, the loop is timed on a part of them and scaled; the note gives their number.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from functools import partial
from math import comb
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.subsets.subset_sampling import SubsetSample
from analyses.numerics.elections.subsets.task_subsets import (
    choose_greedily,
    measure_subsets,
    rank_by_all_tasks,
    validate_on_holdout,
)
from analyses.numerics.elections.voting.task_votes import AggregationRule, TaskVotes, task_votes
from benchmarks._costs import seconds
from benchmarks._tables import continuous_table


def _all_sets(votes: TaskVotes, sizes: range) -> None:
    standard = rank_by_all_tasks(votes)
    for size in sizes:
        sets = SubsetSample.enumerate_or_draw(votes.n_tasks, size, largest_enumeration=200_000, n_samples=1000, seed=0)
        measure_subsets(votes, standard, sets)


def _peer(T: np.ndarray, sizes: range, most: int) -> float:
    """Seconds of the loop over all sets of these sizes, from the first so many of each."""
    full = rankdata(-T.sum(axis=0))
    scaled = 0.0
    for size in sizes:
        n_timed = min(most, comb(len(T), size))
        started = time.perf_counter()
        for tasks in itertools.islice(itertools.combinations(range(len(T)), size), n_timed):
            ranks = rankdata(-T[list(tasks)].sum(axis=0))
            kendalltau(full, ranks), np.abs(full - ranks).max()
        scaled += (time.perf_counter() - started) * comb(len(T), size) / n_timed
    return scaled


def _beside(n_tasks: int, n_models: int, sizes: range, most: int) -> dict[str, Any]:
    T = continuous_table(n_tasks, n_models).round(4)
    votes = task_votes(exact_scores(T), "mean")
    _all_sets(votes, range(1, 3))
    measured, peer = seconds(partial(_all_sets, votes, sizes), 3), _peer(T, sizes, most)
    n_sets = sum(comb(n_tasks, size) for size in sizes)
    return {
        "name": f"all {n_sets:,} sets of {sizes[0]} to {sizes[-1]} of {n_tasks} tasks, {n_models} models",
        "ours_s": round(measured, 3),
        "peer_s": round(peer, 1),
        "ratio": round(peer / measured),
        "note": f"tau in three definitions and MRC; the peer gives tau-b and MRC, scaled from {most:,} sets of a size",
    }


def _whole(n_tasks: int, n_models: int, rule: AggregationRule, share_missing: float = 0.0) -> dict[str, Any]:
    T = continuous_table(n_tasks, n_models).round(4)
    T[np.random.default_rng(0).random(T.shape) < share_missing] = np.nan

    def run() -> None:
        votes = task_votes(exact_scores(T), rule)
        _all_sets(votes, range(1, 7))
        choose_greedily(votes, rank_by_all_tasks(votes), n_steps=n_tasks)
        validate_on_holdout(votes, n_steps=6, n_splits=20, seed=0)

    gaps = f", {share_missing:.0%} missing" if share_missing else ""
    return {
        "name": f"everything by {rule}, {n_tasks} tasks, {n_models} models{gaps}",
        "ours_s": round(seconds(run), 2),
        "note": "sets of 1 to 6 (all up to 200,000 of a size, else 1,000), the greedy order, 20 splits; one core",
    }


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each question."""
    yield _beside(9, 87, range(1, 7), 300)
    yield _beside(23, 100, range(1, 7), 500)
    yield _whole(57, 98, "mean")
    yield _whole(16, 67, "win-rate", 0.18)
    yield _whole(100, 1000, "mean")


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
