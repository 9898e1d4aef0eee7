"""Loops over the response curves of prompts: their likelihood, one step towards their fit, their information.

A prompt's curve is the chance ``p`` of knowing the answer by ability ``t``, ``1 / (1 + exp(c - a (t - nu)))`` with
``a = exp(slope)``: ``a`` is its discrimination, ``nu`` one ability for all prompts, and ``-c`` the log odds there.
Slope and ``c`` are a prompt's two numbers here, since any pair of them is a curve that rises. A model that does not
know the answer is right with the chance ``g``, the floor of the prompt: ``P = g + (1 - g) p``.

Abilities are given as nodes and weights of each model, ``(n_models, n_nodes)`` both. Answers are int8: 0, 1, or -1 for
not measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.statistics.jit import jit

MAX_STEP = 1.0
"""Of either number of a prompt, and of an ability: curves bend too much for a longer one to be trusted."""


@jit
def _derivatives(answer: Any, p: Any, floor: Any) -> Any:
    """First and second derivative of the log likelihood by the log odds, and the expected second; their signs changed.

    Args:
        answer: 0 or 1.
        p: chance of knowing the answer.
        floor: chance of guessing it.
    """
    if floor == 0.0:
        return answer - p, p * (1 - p), p * (1 - p)
    P = floor + (1 - floor) * p
    expected = (1 - floor) * p * p * (1 - p) / P
    if answer == 0:
        return -p, p * (1 - p), expected
    rise = (1 - floor) * p * (1 - p) / P
    return rise, rise * (rise - 1 + 2 * p), expected


@jit
def log_likelihood(answers: Any, floors: Any, counts: Any, slopes: Any, c: Any, nu: Any, nodes: Any, out: Any) -> None:
    """Add to ``out``, ``(n_models, n_nodes)``, the log likelihood of each model's answers at each of its nodes.

    Args:
        answers: ``(n, n_models)``.
        floors: ``(n,)`` in [0, 1).
        counts: ``(n,)``, how many prompts have these answers.
        slopes, c: ``(n,)``.
        nu: as above.
        nodes: abilities.
    """
    for i in range(answers.shape[0]):
        a = np.exp(slopes[i])
        for j in range(answers.shape[1]):
            if answers[i, j] >= 0:
                for k in range(nodes.shape[1]):
                    odds = a * (nodes[j, k] - nu) - c[i]
                    if answers[i, j] == 0:
                        odds = -odds
                    knows = -(np.log1p(np.exp(-np.abs(odds))) + max(-odds, 0.0))
                    if floors[i] > 0.0 and answers[i, j] == 0:
                        knows += np.log1p(-floors[i])
                    elif floors[i] > 0.0:
                        knows = np.log(floors[i] + (1 - floors[i]) * np.exp(knows))
                    out[j, k] += counts[i] * knows


@jit
def ability_slopes(answers: Any, floors: Any, counts: Any, slopes: Any, c: Any, nu: Any, at: Any, out: Any) -> None:
    """Add to ``out``, ``(2, n_models)``, slope and expected curvature (its sign changed) of the log likelihood.

    Args:
        answers, floors, counts, slopes, c, nu: as for `log_likelihood`.
        at: ``(n_models,)``.
    """
    for i in range(answers.shape[0]):
        a = np.exp(slopes[i])
        for j in range(answers.shape[1]):
            if answers[i, j] >= 0:
                p = 1 / (1 + np.exp(c[i] - a * (at[j] - nu)))
                miss, _, expected = _derivatives(answers[i, j], p, floors[i])
                out[0, j] += counts[i] * a * miss
                out[1, j] += counts[i] * a * a * expected


@jit
def step_prompts(
    answers: Any,
    floors: Any,
    slopes: Any,
    c: Any,
    nu: Any,
    nodes: Any,
    weights: Any,
    centre: Any,
    slope_sd: Any,
    odds_sd: Any,
) -> None:
    """One Newton step of each prompt's ``slopes`` and ``c``, in place, abilities being what their weights say.

    Where the curvature is not that of a maximum, its expectation stands for it.

    Args:
        answers, floors, slopes, c, nu: as for `log_likelihood`.
        nodes, weights: of abilities.
        centre: mean of the prior of slopes.
        slope_sd, odds_sd: standard deviations of the priors of slopes and of ``c``.
    """
    for i in range(answers.shape[0]):
        a = np.exp(slopes[i])
        g1, g2, h11, h12, h22 = 0.0, 0.0, 0.0, 0.0, 0.0
        e11, e12, e22 = 0.0, 0.0, 0.0
        for j in range(answers.shape[1]):
            if answers[i, j] >= 0:
                for k in range(nodes.shape[1]):
                    t = nodes[j, k] - nu
                    p = 1 / (1 + np.exp(c[i] - a * t))
                    miss, spread, expected = _derivatives(answers[i, j], p, floors[i])
                    miss, spread, expected = weights[j, k] * miss, weights[j, k] * spread, weights[j, k] * expected
                    e11 += expected * t * t
                    e12 -= expected * t
                    e22 += expected
                    g1 += miss * t
                    g2 -= miss
                    h11 += spread * t * t
                    h12 -= spread * t
                    h22 += spread
        g1 *= a
        h11, h12, h22 = a * a * h11 + 1 / (slope_sd * slope_sd) - g1, a * h12, h22 + 1 / (odds_sd * odds_sd)
        if not (h11 > 0 and h11 * h22 > h12 * h12):
            h11, h12, h22 = a * a * e11 + 1 / (slope_sd * slope_sd), a * e12, e22 + 1 / (odds_sd * odds_sd)
        g1 -= (slopes[i] - centre) / (slope_sd * slope_sd)
        g2 -= c[i] / (odds_sd * odds_sd)
        determinant = h11 * h22 - h12 * h12
        step1, step2 = (h22 * g1 - h12 * g2) / determinant, (h11 * g2 - h12 * g1) / determinant
        length = max(abs(step1), abs(step2))
        shortened = min(1.0, MAX_STEP / length) if length > 0 else 1.0
        slopes[i] += shortened * step1
        c[i] += shortened * step2


@jit
def information(answers: Any, floors: Any, slopes: Any, c: Any, nu: Any, nodes: Any, weights: Any, out: Any) -> None:
    """Fill ``out``, ``(n, 3)``, with each prompt's observed information about its slope and ``c``.

    Entries are the second derivatives of the marginal log likelihood, signs changed: slope twice, slope and ``c``,
    ``c`` twice. What is known of abilities counts as it is; the information that unknown abilities take away is
    Louis's: the variance of a model's score under its posterior.

    Args:
        answers, floors, slopes, c, nu, nodes, weights: as for `step_prompts`.
    """
    for i in range(answers.shape[0]):
        a = np.exp(slopes[i])
        out[i] = 0.0
        for j in range(answers.shape[1]):
            if answers[i, j] >= 0:
                s1, s2, s11, s12, s22 = 0.0, 0.0, 0.0, 0.0, 0.0
                for k in range(nodes.shape[1]):
                    t, weight = a * (nodes[j, k] - nu), weights[j, k]
                    p = 1 / (1 + np.exp(c[i] - t))
                    miss, spread, _ = _derivatives(answers[i, j], p, floors[i])
                    s1 += weight * miss * t
                    s2 -= weight * miss
                    s11 += weight * miss * miss * t * t
                    s12 -= weight * miss * miss * t
                    s22 += weight * miss * miss
                    out[i, 0] += weight * (spread * t * t - miss * t)
                    out[i, 1] -= weight * spread * t
                    out[i, 2] += weight * spread
                out[i, 0] -= s11 - s1 * s1
                out[i, 1] -= s12 - s1 * s2
                out[i, 2] -= s22 - s2 * s2
