"""Difficulty and discrimination of prompts beside girth, and random subsets beside a loop over SciPy.

girth maximises the marginal likelihood of the same model without priors. Both fit the same answers. Correlations with
the simulated parameters stand beside the times. All run on one worker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import kendalltau, pearsonr, spearmanr

from analyses.numerics.filtering.effects.random_subsets import random_subset_statistics
from analyses.numerics.filtering.item_response import fit_two_parameter
from benchmarks._costs import in_own_process, seconds
from benchmarks._peers import peer

SHAPES = ((12_032, 29), (14_042, 100))
N_SUBSETS = 1000
N_TIMED = 50


def planted(n_prompts: int, n_models: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SIMULATED difficulty, discrimination, and answers drawn from them."""
    rng = np.random.default_rng(0)
    difficulty, discrimination = rng.normal(0, 1, n_prompts), np.exp(rng.normal(0, 0.5, n_prompts))
    odds = discrimination[:, None] * (rng.normal(0, 1, n_models) - difficulty[:, None])
    right = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    return difficulty, discrimination, right.astype(np.float64)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    return round(float(np.corrcoef(a, b)[0, 1]), 4)


def _fit(n_prompts: int, n_models: int) -> float:
    return seconds(partial(fit_two_parameter, planted(n_prompts, n_models)[2]))


def _one_after_the_other(Q: np.ndarray, external_scores: np.ndarray, size: int, n_subsets: int) -> None:
    full = Q.mean(axis=0)
    for seed in range(n_subsets):
        means = Q[np.random.default_rng(seed).choice(len(Q), size, replace=False)].mean(axis=0)
        kendalltau(full, means)
        kendalltau(full[7:], means[7:])
        pearsonr(means, external_scores)
        spearmanr(means, external_scores)


def measurements() -> Iterator[dict[str, Any]]:
    """Beside each peer, then our costs alone."""
    girth = peer("girth")
    fit_two_parameter(planted(30, 8)[2])
    difficulty, discrimination, right = planted(200, 1000)
    fit = fit_two_parameter(right)
    girth_fit: dict[str, np.ndarray] = {}
    peer_s = seconds(lambda: girth_fit.update(girth.twopl_mml(right.astype(int))))
    ours_s = seconds(partial(fit_two_parameter, right), times=3)
    yield {
        "name": "two-parameter model of 200 prompts x 1,000 models, beside girth twopl_mml",
        "note": "standard errors are within our time alone",
        "ours_s": round(ours_s, 3),
        "peer_s": round(peer_s, 2),
        "ratio": round(peer_s / ours_s, 1),
        "r_difficulty": {
            "ours": _correlation(fit.difficulty, difficulty),
            "peer": _correlation(girth_fit["Difficulty"], difficulty),
            "of_both": _correlation(fit.difficulty, girth_fit["Difficulty"]),
        },
        "r_discrimination": {
            "ours": _correlation(fit.discrimination, discrimination),
            "peer": _correlation(girth_fit["Discrimination"], discrimination),
            "of_both": _correlation(fit.discrimination, girth_fit["Discrimination"]),
        },
    }
    Q = planted(*SHAPES[0])[2]
    size, external_scores, aside = len(Q) // 2, np.arange(Q.shape[1], dtype=np.float64), np.arange(Q.shape[1]) < 7
    ours_s = seconds(
        lambda: random_subset_statistics(
            Q, size, n_subsets=N_SUBSETS, seed=0, excluded=aside, external_scores=external_scores
        )
    )
    peer_s = seconds(lambda: _one_after_the_other(Q, external_scores, size, N_TIMED)) * N_SUBSETS / N_TIMED
    yield {
        "name": f"{N_SUBSETS:,} random subsets of half of {len(Q):,} prompts x {Q.shape[1]} models, beside scipy",
        "note": f"means, two tau-b, Pearson and Spearman of each; the peer is scaled from {N_TIMED}",
        "ours_s": round(ours_s, 3),
        "peer_s": round(peer_s, 3),
        "ratio": round(peer_s / ours_s, 1),
    }
    for n_prompts, n_models in SHAPES:
        spent, megabytes = in_own_process(partial(_fit, n_prompts, n_models))
        yield {
            "name": f"two-parameter model of {n_prompts:,} prompts x {n_models} models",
            "ours_s": round(spent, 2),
            "ours_MB": round(megabytes),
        }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
