"""Strengths of models by Bradley and Terry, fitted by evalica where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from analyses.numerics.elections.voting.condorcet import PairwiseDuels

CONVERGENCE = 1e-12
"""Largest relative change of a strength in the last step."""
MAX_ITERATIONS = 10_000
RESIDUAL = 1e-6
"""By so many wins, a model's expected wins may differ from those it has."""
STRENGTH_TOLERANCE = 1e-8
"""Strengths this close to the next better one are tied: above `TIE_TOLERANCE`, as an iteration finds them."""


def is_installed() -> bool:
    """Whether strengths can be fitted."""
    return find_spec("evalica") is not None


def has_finite_strengths(duels: PairwiseDuels) -> bool:
    """Whether finite strengths exist: no group of models wins every task against all others (Ford 1957)."""
    n_groups, _ = connected_components(csr_array(duels.half_points > 0), directed=True, connection="strong")
    return bool(n_groups == 1)


def fit_strengths(duels: PairwiseDuels) -> NDArray[np.float64] | None:
    """Strengths s with P(i beats j) = 1 / (1 + exp(s_j − s_i)) of largest likelihood; their mean is 0.

    Each task both models have is one comparison; a tie counts as half a win of each.

    Args:
        duels: with `has_finite_strengths`.

    Returns:
        ``(n_models,)``, or None where the equations of the maximum are not met when steps run out.

    Source: Bradley & Terry 1952; fitted by evalica's ``bradley_terry``.
    """
    import evalica

    won = duels.half_points / 2
    i, j = np.nonzero(won)
    fit = evalica.bradley_terry(
        i.tolist(),
        j.tolist(),
        [evalica.Winner.X] * len(i),
        weights=won[i, j].tolist(),
        tolerance=CONVERGENCE,
        limit=MAX_ITERATIONS,
    )
    strengths = fit.scores.reindex(range(len(won))).to_numpy(dtype=np.float64)
    if not (strengths > 0).all():
        return None
    log_strengths = np.log(strengths)
    win_probabilities = expit(log_strengths[:, None] - log_strengths[None, :])
    expected = ((won + won.T) * win_probabilities).sum(axis=1)
    if np.abs(expected - won.sum(axis=1)).max() > RESIDUAL:
        return None
    return np.asarray(log_strengths - log_strengths.mean())


def tie_levels(strengths: NDArray[np.float64]) -> NDArray[np.int64]:
    """``(n_models,)`` larger is better, equal is tied.

    Args:
        strengths: of `fit_strengths`. They are roots of equations, not rational numbers, so ties need a tolerance.
    """
    order = np.argsort(strengths)
    steps = np.concatenate([[0], np.cumsum(np.diff(strengths[order]) > STRENGTH_TOLERANCE)])
    levels = np.empty(len(strengths), dtype=np.int64)
    levels[order] = steps
    return levels
