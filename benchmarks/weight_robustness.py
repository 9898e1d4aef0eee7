"""Random weights: exact chances and rank draws, beside SciPy's incomplete beta function and sampling with NumPy.

For binary scores, the stronger peer counts the prompts that only one of two models solves by a matrix product, and
evaluates `betainc` once for all pairs. The other peer draws `Generator.dirichlet` weights in blocks of 500, multiplies
them with the scores and compares or sorts. Where 100,000 draws take too long, it is timed on fewer and scaled; the note
gives their number.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betainc

from analyses.numerics.weighting.rank_draws import draw_rankings
from analyses.numerics.weighting.simplex import compute_lead_chances, quantiles
from benchmarks._costs import in_own_process, seconds
from benchmarks._tables import binary_table, continuous_table

N_DRAWS = 100_000


def _peer_beats(table: np.ndarray, n_draws: int) -> np.ndarray:
    rng, k = np.random.default_rng(0), table.shape[1]
    beats = np.zeros((k, k))
    for _ in range(n_draws // 500):
        means = rng.dirichlet(np.ones(len(table)), 500) @ table
        for i in range(k):
            beats[i] += (means[:, i : i + 1] > means).sum(axis=0)
    return beats / n_draws


def _beats_by_betainc(table: np.ndarray) -> np.ndarray:
    solved_alone = table.T @ (1 - table)
    return np.asarray(betainc(solved_alone.T, solved_alone, 0.5))


def _peer_ranks(table: np.ndarray, n_draws: int) -> np.ndarray:
    rng, k = np.random.default_rng(0), table.shape[1]
    places = np.zeros((k, k), dtype=np.int64)
    for _ in range(n_draws // 500):
        means = rng.dirichlet(np.ones(len(table)), 500) @ table
        order = np.argsort(-means, axis=1)
        for place in range(k):
            places[:, place] += np.bincount(order[:, place], minlength=k)
    return places


def _our_ranks(table: np.ndarray, n_draws: int) -> Any:
    k = table.shape[1]
    return draw_rankings(table, np.ones(len(table)), np.arange(k), n_draws=n_draws, seed=0)


def _our_memory() -> float:
    table = binary_table(1200, 14)
    return seconds(partial(_our_ranks, table, N_DRAWS))


def _rank_times(rounds: int) -> tuple[float, float]:
    """Best seconds of ours and of the peer, in turn, so that both meet the same load of the machine."""
    table = binary_table(1200, 14)
    _our_ranks(table, 1000)
    times = [
        (seconds(partial(_our_ranks, table, N_DRAWS)), seconds(partial(_peer_ranks, table, N_DRAWS)))
        for _ in range(rounds)
    ]
    return min(seconds_ours for seconds_ours, _ in times), min(peer for _, peer in times)


def _exact(n_prompts: int, n_models: int, peer_draws: int) -> Iterator[dict[str, Any]]:
    table, alpha = binary_table(n_prompts, n_models), np.ones(n_prompts)
    compute_lead_chances(table, alpha)
    turns = [
        (seconds(partial(compute_lead_chances, table, alpha), 5), seconds(partial(_beats_by_betainc, table), 5))
        for _ in range(4)
    ]
    seconds_ours, by_betainc = (min(spent) for spent in zip(*turns, strict=True))
    pairs = ~np.eye(n_models, dtype=bool)
    exact = compute_lead_chances(table, alpha).beats[pairs]
    difference = np.abs(_beats_by_betainc(table)[pairs] - exact).max()
    assert difference < 1e-12
    name = f"pairwise P(beats) {n_prompts}x{n_models} binary, exact"
    yield {
        "name": f"{name}, beside SciPy betainc",
        "ours_s": round(seconds_ours, 5),
        "peer_s": round(by_betainc, 5),
        "ratio": round(by_betainc / seconds_ours, 1),
        "largest_difference": float(f"{difference:.1e}"),
    }
    started = time.perf_counter()
    sampled = _peer_beats(table, peer_draws)
    peer = (time.perf_counter() - started) * N_DRAWS / peer_draws
    off = np.abs(sampled[pairs] - exact).max()
    yield {
        "name": f"{name}, beside NumPy dirichlet draws",
        "ours_s": round(seconds_ours, 5),
        "peer_s": round(peer, 1),
        "ratio": round(peer / seconds_ours),
        "note": f"the peer samples 100,000 draws, scaled from {peer_draws:,}, in which it is off by up to {off:.3f}",
    }


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each question."""
    yield from _exact(1200, 14, 5000)
    yield from _exact(14_042, 100, 1000)
    seconds_ours, peer = _rank_times(4)
    _, our_memory = in_own_process(_our_memory)
    yield {
        "name": "100,000 rank draws 1200x14",
        "ours_s": round(seconds_ours, 3),
        "peer_s": round(peer, 2),
        "ratio": round(peer / seconds_ours, 1),
        "ours_mb": round(our_memory),
        "note": "best of 4 in turn; peak memory above that of a fresh process before the run, compiled code included",
    }
    scores = continuous_table(805, 58)
    alpha, levels = np.ones(805), np.array([0.025, 0.975, 1 / (N_DRAWS + 1), N_DRAWS / (N_DRAWS + 1)])
    quantiles(scores[:, 0], alpha, levels), compute_lead_chances(scores[:, :2], alpha)
    yield {
        "name": "pairwise P(beats) 805x58 continuous, exact",
        "ours_s": round(seconds(lambda: compute_lead_chances(scores, alpha)), 3),
    }
    yield {
        "name": "4 quantiles of 58 weighted means of 805 continuous scores, exact",
        "ours_s": round(seconds(lambda: [quantiles(x, alpha, levels) for x in scores.T]), 3),
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
