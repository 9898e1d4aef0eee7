"""The same scores ranked by every rule, and Kemeny's order beside a plain integer program."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.numerics.elections.voting.kemeny import find_kemeny_order
from analyses.numerics.elections.voting.pivotal import find_leaders, find_pivotal_models, find_pivotal_tasks
from analyses.numerics.elections.voting.rules import VOTING_RULES, Election, VotingRule, count_points
from benchmarks._costs import seconds
from benchmarks._tables import continuous_table


def _plain_program(wins: np.ndarray) -> int:
    """A variable for each pair, a constraint for each three: the textbook's program, all at once."""
    m = len(wins)
    number = {pair: place for place, pair in enumerate(itertools.combinations(range(m), 2))}
    costs = np.array([wins[j, i] - wins[i, j] for i, j in number], dtype=float)
    triangles = list(itertools.combinations(range(m), 3))
    at = [number[pair] for i, j, k in triangles for pair in ((i, j), (j, k), (i, k))]
    signs = np.tile([1.0, 1.0, -1.0], len(triangles))
    rows = np.repeat(np.arange(len(triangles)), 3)
    matrix = coo_array((signs, (rows, at)), shape=(len(triangles), len(number))).tocsr()
    result = milp(costs, constraints=LinearConstraint(matrix, 0, 1), bounds=Bounds(0, 1), integrality=1)
    return round(result.fun) + sum(int(wins[i, j]) for i, j in number)


def _kemeny(name: str, T: np.ndarray) -> dict[str, Any]:
    codes = Election.from_scores(exact_scores(T)).codes
    wins = (T[:, :, None] > T[:, None, :]).sum(axis=0)
    result = find_kemeny_order(codes, deadline=time.monotonic() + 60, with_uniqueness=False)
    started = time.perf_counter()
    peer = _plain_program(wins)
    peer_s = time.perf_counter() - started
    assert result.is_exact
    assert result.distance == peer
    measured = seconds(lambda: find_kemeny_order(codes, deadline=time.monotonic() + 60, with_uniqueness=False), 3)
    return {
        "name": f"Kemeny's order, {name}",
        "ours_s": round(measured, 3),
        "peer_s": round(peer_s, 2),
        "ratio": round(peer_s / measured, 1),
        "note": f"both proven: {peer:,} contradictions; the peer is SciPy's milp with all constraints of three",
    }


def _rule(rule: VotingRule, T: np.ndarray) -> dict[str, Any]:
    def run() -> None:
        result = count_points(rule, Election.from_scores(exact_scores(T)))
        assert len(result.ranks) == T.shape[1]

    return {"name": f"{rule}, {len(T)} tasks, {T.shape[1]} models", "ours_s": round(seconds(run), 3)}


def _removals(rule: VotingRule, T: np.ndarray) -> dict[str, Any]:
    field = Election.from_scores(exact_scores(T))

    def run() -> None:
        first = find_leaders(rule, field, deadline=time.monotonic() + 10)
        assert first is not None
        for search in (find_pivotal_tasks, find_pivotal_models):
            search(rule, field, first, deadline=time.monotonic() + 10)

    return {"name": f"removals by {rule}, {len(T)} tasks, {T.shape[1]} models", "ours_s": round(seconds(run), 3)}


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each question."""
    rng = np.random.default_rng(0)
    for n_models in (15, 25):
        yield _kemeny(f"9 random tasks, one cycle of {n_models} models", rng.random((9, n_models)))
    yield _kemeny("27 tasks, 40 models", continuous_table(27, 40).round(3))
    large = continuous_table(100, 1000).round(4)
    for rule in VOTING_RULES:
        if rule not in ("kemeny", "bradley-terry"):
            yield _rule(rule, large)
    displayed: tuple[VotingRule, ...] = ("mean", "borda")
    for rule in displayed:
        yield _removals(rule, large)
    codes = Election.from_scores(exact_scores(large)).codes
    search = partial(find_kemeny_order, codes, deadline=time.monotonic() + 30)
    yield {
        "name": "Kemeny's order, 100 tasks, 1,000 models",
        "ours_s": round(seconds(search, 1), 2),
        "note": "an order and a bound; not proven",
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
