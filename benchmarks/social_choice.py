"""Sensitivity of benchmarks as elections, beside the package of the paper's authors.

The peer, `benchbench` on PyPI, provides the leaderboards. It searches by gradient descent and returns weights, or added
models. The benchmark counts their strict reversals in exact numbers, as for Suffrage. The peer's weights have a fixed
sum and a minimum share for each task: a subset of the weights that Suffrage may choose. The peer runs on one thread,
its fastest setting.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from analyses.numerics.elections.cardinal.cardinal_sensitivity import cardinal_sensitivity
from analyses.numerics.elections.diversity.concordance import diversity
from analyses.numerics.elections.diversity.ranking_distance import average_ranks, ranking_distance
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.ordinal.ordinal_sensitivity import ordinal_sensitivity, select_leading_models
from analyses.numerics.elections.win_rates import WIN_RATE_RULES, win_rates
from benchmarks._costs import in_own_process, seconds
from benchmarks._peers import peer

CARDINAL = ("GLUE", "SuperGLUE", "OpenLLM", "VTAB")
ORDINAL = ("HELM-accuracy", "HEIM-nudity")
EPSILON = Fraction(1, 100)
TIME_LIMIT = 30.0
DIGITS = 10
"""To so many decimals halves of sums are what they were before floats."""

Search = Callable[[np.ndarray, float], CardinalSensitivity | OrdinalSensitivity]


def _by_weights(T: np.ndarray, time_limit: float) -> CardinalSensitivity:
    return cardinal_sensitivity(exact_scores(T), epsilon=EPSILON, standardised=True, time_limit=time_limit)


def _by_additions(T: np.ndarray, time_limit: float) -> OrdinalSensitivity:
    """The leading fifth comes first, as the peer has it."""
    return ordinal_sensitivity(exact_scores(T), leading=np.arange(T.shape[1] // 5), time_limit=time_limit)


def _reversed_by_weights(scores: ExactScores, alpha: np.ndarray) -> int:
    before = average_ranks(scores.numerators.sum(axis=0))
    weights = np.array([Fraction(float(weight)) for weight in alpha], dtype=object)
    return ranking_distance(before, average_ranks((weights[:, None] * scores.numerators).sum(axis=0))).n_reversed


def _reversed_by_additions(scores: ExactScores, field: np.ndarray) -> int:
    leading = np.arange(scores.n_models // 5)
    before, after = (
        average_ranks(np.array(win_rates(scores, columns)[: len(leading)], dtype=object))
        for columns in (leading, np.concatenate([leading, np.setdiff1d(field, leading)]))
    )
    return ranking_distance(before, after).n_reversed


def _peer_run(measure: Any, **options: Any) -> tuple[float, Any]:
    result: list[Any] = []
    with redirect_stdout(io.StringIO()):
        spent = seconds(lambda: result.append(measure.get_sensitivity(**options)))
    return spent, result[-1]


def _beside_peer(name: str, kind: str, measured: Search) -> dict[str, Any]:
    load = getattr(peer("benchbench.data"), f"load_{kind}_benchmark")
    measure = peer(f"benchbench.measures.{kind}")
    data, tasks = load(name)
    T = np.round(data[tasks].to_numpy(dtype=np.float64).T, DIGITS)
    scores = exact_scores(T)
    selected = {"return_weight": True} if kind == "cardinal" else {"return_indices": True}
    quick: list[float] = []
    exact: list[float] = []
    published: list[float] = []
    measured(T, 0.0)
    for _ in range(2):  # in turn, so that all meet the same load of the machine
        quick.append(seconds(partial(measured, T, 0.0), 2))
        spent, (_, solution) = _peer_run(measure, data=data, cols=tasks, **selected)
        published.append(spent)
        exact.append(seconds(partial(measured, T, TIME_LIMIT)))
    at_once, proven = measured(T, 0.0).tau, measured(T, TIME_LIMIT)
    count = _reversed_by_weights if kind == "cardinal" else _reversed_by_additions
    return {
        "name": f"{kind} sensitivity, {name} {T.shape[1]}x{T.shape[0]}",
        "ours_s": round(min(exact), 3),
        "at_once_s": round(min(quick), 4),
        "peer_s": round(min(published), 2),
        "ratio": round(min(published) / min(exact), 2),
        "at_once_ratio": round(min(published) / min(quick)),
        "reversals": proven.tau.distance.n_reversed,
        "at_once_reversals": at_once.distance.n_reversed,
        "peer_reversals": count(scores, np.asarray(solution)),
        "proven": proven.is_exact,
    }


def _scale() -> float:
    """SIMULATED: every task ranks 1,000 models at random."""
    T = np.random.default_rng(0).random((100, 1000))
    return seconds(partial(_everything, T), 2)


def _everything(T: np.ndarray) -> None:
    scores = exact_scores(T)
    diversity(scores)
    for rule in WIN_RATE_RULES:
        win_rates(scores, rule=rule)
    cardinal_sensitivity(scores, epsilon=EPSILON, standardised=True, time_limit=0.0)
    names = [f"{n:04}" for n in range(T.shape[1])]
    leading = select_leading_models(scores, names, top=10, rule="pairwise")
    ordinal_sensitivity(scores, leading=leading, time_limit=0.0)


def measurements() -> Iterator[dict[str, Any]]:
    """A line for each leaderboard, and one for scale."""
    peer("benchbench")
    peer("torch").set_num_threads(1)
    for name in CARDINAL:
        yield _beside_peer(name, "cardinal", _by_weights)
    for name in ORDINAL:
        yield _beside_peer(name, "ordinal", _by_additions)
    _everything(np.random.default_rng(1).random((3, 20)))
    measured, memory = in_own_process(_scale)
    yield {
        "name": "diversity, win rates and lower bounds of both sensitivities, 1000x100",
        "ours_s": round(measured, 2),
        "ours_mb": round(memory),
        "note": "wanted: below 10 s and 1 GB; in a separate process, the least of 2",
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
