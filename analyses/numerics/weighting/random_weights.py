"""What random weights of the prompts do to a table of scores: every model's mean, every pair, every place.

Source: Ailem et al. 2024, sections 3.3 and 5.2.3; Rubin 1981, "The Bayesian bootstrap".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analyses.numerics.weighting.rank_draws import RankDraws, draw_rankings
from analyses.numerics.weighting.simplex import compute_lead_chances, density, moments, quantiles
from tracker.statistics.ranking import TIE_TOLERANCE, overflow_exponent

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

CENTRAL = (0.025, 0.975)
"""Levels of the interval of a mean and of a place."""
POINTS = 48
"""At which the distribution of each weighted mean is drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomWeights:
    """Outcome for ``k`` models, in the order of the table's columns.

    Attributes:
        n_draws: of the weights of all prompts.
        mean, sd: ``(k,)`` of each weighted mean.
        low, high: ``(k,)`` its 2.5 and 97.5 % quantiles.
        range_low, range_high: ``(k,)`` its quantiles 1/(B + 1) and B/(B + 1) for B draws.
        least, most: ``(k,)`` what any weights at all can make of it: the smallest and the largest score.
        at, height: ``(k, POINTS)`` where its density was computed, and the density; 0 where the mean does not move.
        beats: ``(k, k)`` chance that the row is ahead of the column; 0.5 where they are identical.
        better: ``(k, k)`` int64 prompts on which the row is better than the column.
        gap, gap_error: ``(k, k)`` mean difference, positive where the row is better, and its paired standard error.
        places: ``(k, k)`` share of draws in which the row has place j + 1; identical models share theirs evenly.
        expected_rank: ``(k,)``.
        rank_low, rank_high: ``(k,)`` the places at which 2.5 and 97.5 % of the draws are reached.
        twins: ``(k,)`` int64, the first model with the same scores as this one.
        best_places: ``(k, k)`` int64 draws in which the row, or the best placed of its twins, had place j + 1.
        draws_differ_by: largest difference between a chance of being ahead and its share in the draws.
    """

    n_draws: int
    mean: Vector
    sd: Vector
    low: Vector
    high: Vector
    range_low: Vector
    range_high: Vector
    least: Vector
    most: Vector
    at: Matrix
    height: Matrix
    beats: Matrix
    better: NDArray[np.int64]
    gap: Matrix
    gap_error: Matrix
    places: Matrix
    expected_rank: Vector
    rank_low: Vector
    rank_high: Vector
    twins: NDArray[np.int64]
    best_places: NDArray[np.int64]
    draws_differ_by: float

    @property
    def p_normal(self) -> Matrix:
        """``(k, k)`` the normal approximation to ``beats``: Φ(mean difference / paired standard error)."""
        sure = np.where(self.gap == 0, 0.5, np.where(self.gap > 0, 1.0, 0.0))
        z = np.divide(self.gap, self.gap_error, out=np.zeros_like(self.gap), where=self.gap_error > 0)
        return np.where(self.gap_error > 0, special.ndtr(z), sure)

    @property
    def is_identical(self) -> NDArray[np.bool_]:
        """``(k, k)`` whether two models differ on no prompt."""
        return np.asarray(self.better + self.better.T == 0)

    def scaled(self, exponent: int) -> RandomWeights:
        """Return the numbers in the unit of scores times 2**exponent."""
        if not exponent:
            return self
        names = (
            "mean", "sd", "low", "high", "range_low", "range_high", "least", "most", "at", "gap", "gap_error",
        )  # fmt: skip
        values = {name: np.ldexp(getattr(self, name), exponent) for name in names}
        return replace(self, **values, height=np.ldexp(self.height, -exponent))


def weigh_randomly(
    Q: Matrix, alpha: Vector, *, higher_is_better: bool, n_draws: int, exact: bool, seed: int
) -> RandomWeights:
    """Weigh the prompts at random, ``Dirichlet(alpha)``.

    Args:
        Q: ``(n, k)`` finite scores, at least one prompt and one model.
        alpha: ``(n,)`` positive; all 1 is uniform on the simplex.
        higher_is_better: whether being ahead is having the higher weighted mean.
        n_draws: at least 1; places are shares of them, and so is everything else if not exact.
        exact: whether all but the places is computed instead of drawn.
        seed: of all draws.
    """
    exponent = overflow_exponent(Q)
    options: dict[str, Any] = {"higher_is_better": higher_is_better, "n_draws": n_draws, "exact": exact, "seed": seed}
    return _weigh(np.ldexp(Q, -exponent), alpha, **options).scaled(exponent)


def _weigh(Q: Matrix, alpha: Vector, *, higher_is_better: bool, n_draws: int, exact: bool, seed: int) -> RandomWeights:
    """Weigh the prompts of scores whose squares are numbers."""
    X = np.ascontiguousarray(Q if higher_is_better else -Q)
    pairs = compute_lead_chances(X, alpha)
    first = np.argmax(pairs.better + pairs.better.T == 0, axis=0)
    twins = first[first]
    drawn = draw_rankings(X, alpha, twins, n_draws=n_draws, seed=seed, keep_means=not exact)
    mean, sd = moments(Q, alpha)
    levels = np.array([*CENTRAL, 1 / (n_draws + 1), n_draws / (n_draws + 1)])
    shares = np.where(twins[:, None] == twins, 0.5, drawn.ahead / n_draws)
    constant = np.asarray(Q.max(axis=0) == Q.min(axis=0))
    if drawn.means is None:
        bounds = np.array([quantiles(x, alpha, levels) for x in Q.T])
        at, height = _curves(Q, alpha, bounds[:, 2], bounds[:, 3])
    else:
        means = np.where(constant[:, None], mean[:, None], drawn.means if higher_is_better else -drawn.means)
        bounds = np.quantile(means, levels, axis=1, method="weibull").T
        sd = np.where(constant, 0.0, means.std(axis=1))
        at, height = _histograms(means, constant)
    gap, gap_error = _gaps(X, alpha)
    places, expected, rank_low, rank_high = _places(drawn, twins)
    return RandomWeights(
        n_draws=n_draws,
        mean=mean,
        sd=sd,
        low=bounds[:, 0],
        high=bounds[:, 1],
        range_low=bounds[:, 2],
        range_high=bounds[:, 3],
        least=Q.min(axis=0),
        most=Q.max(axis=0),
        at=at,
        height=height,
        beats=pairs.beats if exact else shares,
        better=pairs.better,
        gap=gap,
        gap_error=gap_error,
        places=places,
        expected_rank=expected,
        rank_low=rank_low,
        rank_high=rank_high,
        twins=twins,
        best_places=drawn.places,
        draws_differ_by=float(np.abs(pairs.beats - shares).max()),
    )


def _curves(Q: Matrix, alpha: Vector, low: Vector, high: Vector) -> tuple[Matrix, Matrix]:
    """Exact densities at points evenly between two quantiles."""
    share = (np.arange(POINTS) + 0.5) / POINTS
    at = low[:, None] + (high - low)[:, None] * share
    height = np.zeros_like(at)
    for model, x in enumerate(Q.T):
        if low[model] < high[model]:
            height[model] = density(x, alpha, at[model])
    return at, height


def _histograms(means: Matrix, constant: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    """Densities of draws in equal bins between the smallest and the largest."""
    at, height = np.empty((len(means), POINTS)), np.zeros((len(means), POINTS))
    for model, some in enumerate(means):
        low, high = some.min(), some.max()
        at[model] = low + (high - low) * (np.arange(POINTS) + 0.5) / POINTS
        # Bins must be wide enough to have different edges: weights next to 0 may leave a mean next to no room.
        if not constant[model] and high - low > 4 * POINTS * np.spacing(max(abs(low), abs(high))):
            height[model] = np.histogram(some, bins=POINTS, range=(low, high), density=True)[0]
    return at, height


def _gaps(X: Matrix, alpha: Vector) -> tuple[Matrix, Matrix]:
    """Mean difference of every two models, and its standard error from the differences prompt by prompt."""
    k = X.shape[1]
    gap, error = np.zeros((k, k)), np.zeros((k, k))
    share, n = alpha / alpha.sum(), alpha.sum()
    slack = TIE_TOLERANCE * np.abs(X).max(initial=0.0)
    for i in range(k - 1):
        d = X[:, i : i + 1] - X[:, i + 1 :]
        mean = share @ d
        gap[i, i + 1 :] = np.where(np.abs(mean) <= slack, 0.0, mean)
        error[i, i + 1 :] = np.sqrt(share @ (d - gap[i, i + 1 :]) ** 2 / max(n - 1, np.finfo(float).eps))
    return gap - gap.T, error + error.T


def _places(drawn: RankDraws, twins: NDArray[np.int64]) -> tuple[Matrix, Vector, Vector, Vector]:
    """Share of each place, its mean, and the places at which 2.5 and 97.5 % of the draws are reached."""
    k = len(twins)
    places = np.zeros((k, k))
    for model, size in enumerate(np.bincount(twins, minlength=k)[twins]):
        for shared in range(size):
            places[model, shared:] += drawn.places[model, : k - shared] / (size * drawn.n_draws)
    reached = np.cumsum(places, axis=1) + TIE_TOLERANCE
    low, high = (1.0 + np.argmax(reached >= level, axis=1) for level in CENTRAL)
    return places, places @ np.arange(1.0, k + 1), low, high
