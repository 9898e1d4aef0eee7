"""Means of columns with standard errors and intervals, for prompts in clusters and strata.

For clusters, strata and weights, an interval of bounded scores uses the effective number of scores: the variance of
the scores over the squared standard error, times (z / t)², where t has the error's degrees of freedom. Clusters do not
increase it.

Source: Korn and Graubard 1998 (effective number of scores); Bell and McCaffrey 2002 (CR2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.binomial import beta_interval, blaker_interval
from tracker.statistics.intervals.bounded import bounded_intervals
from tracker.statistics.intervals.design_variance import NEGLIGIBLE, design_variance, pooled_variance
from tracker.statistics.intervals.skewed import skewed_intervals
from tracker.statistics.ranking import TIE_TOLERANCE, overflow_exponent
from tracker.statistics.student_t import student_interval, t_quantile

LEVEL = 0.95
MIN_BETS = 20
"""Scores from which intervals are by betting, which are far wider than others below."""
PRIOR_CORRELATION, PRIOR_DEGREES = 0.15, 1.5
"""Intraclass correlation that intervals of few clusters are drawn towards, and the degrees of freedom that it counts.

They are a tenth of the degrees of freedom of the clusters, and at most 1.5."""
Bounds = tuple[float | None, float | None]
NO_BOUNDS: Bounds = (None, None)
Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanEstimates:
    """The weighted mean of each column with its error and interval; every array is ``(k,)``.

    Attributes:
        mean: Σwx / Σw over the scores; NaN for a column without one.
        n: scores.
        n_effective: Kish's effective number of scores, (Σw)² / Σw².
        stderr: of independent prompts; NaN below two scores.
        stderr_design: of prompts in these clusters and strata; NaN below two clusters.
        degrees: degrees of freedom of ``stderr_design``.
        low, high: the interval; NaN without one.
    """

    mean: Vector
    n: Vector
    n_effective: Vector
    stderr: Vector
    stderr_design: Vector
    degrees: Vector
    low: Vector
    high: Vector


def estimate_means(
    Q: NDArray[np.float64],
    groups: Grouping,
    weights: Vector | None = None,
    bounds: Bounds = NO_BOUNDS,
    level: float = LEVEL,
) -> MeanEstimates:
    """Estimate the mean of each column over its scores.

    Args:
        Q: ``(n, k)`` scores of any size, NaN = missing; an infinite score leaves its column without errors. A column
            with values beyond the bounds, as of `linearize_imputed`, has an interval for any scores, cut to the bounds.
        groups: clusters and strata of the rows; rows of a column with scores in a single cluster count as independent.
        weights: ``(n,)`` positive; None for equal weights.
        bounds: of the metric; None where it has none. A table of 0 and 1 without bounds has those.
        level: of the intervals.
    """
    weights = np.ones(len(Q)) if weights is None else weights
    exponent = overflow_exponent(Q)
    Q, seen = np.ldexp(Q, -exponent), ~np.isnan(Q)
    if bounds == NO_BOUNDS and bool(((Q == 0) | (Q == 1) | ~seen).all()):
        bounds = 0.0, 1.0
    scaled = tuple(None if bound is None else math.ldexp(bound, -exponent) for bound in bounds)
    result = {field.name: np.full(Q.shape[1], np.nan) for field in fields(MeanEstimates)}
    result["n"], result["n_effective"] = np.zeros(Q.shape[1]), np.zeros(Q.shape[1])
    for columns in _equal_patterns(seen):
        keep = seen[:, columns[0]]
        if not keep.any():
            continue
        part = groups if keep.all() else groups.rows(keep)
        values = Q[:, columns] if keep.all() else Q[np.ix_(keep, columns)]
        for name, column in _estimate(values, part, weights[keep], (scaled[0], scaled[1]), level).items():
            result[name][columns] = column
    with np.errstate(over="ignore"):
        for name in ("mean", "stderr", "stderr_design", "low", "high"):
            result[name] = np.ldexp(result[name], exponent)
    return MeanEstimates(**result)


def name_interval_method(values: Vector, bounds: Bounds) -> str:
    """Return the method of the interval of the mean of independent scores of equal weight, as by `estimate_means`.

    Args:
        values: ``(n,)`` finite scores.
        bounds: of the metric; None where it has none.
    """
    low, high = bounds
    if low is None and high is None and bool(((values == 0) | (values == 1)).all()):
        low, high = 0.0, 1.0
    if low is None or high is None or bool(((values < low) | (values > high)).any()):
        return "bootstrap-t or Hall 1992"
    if bool(((values == low) | (values == high)).all()):
        return "Blaker"
    return "betting" if len(values) >= MIN_BETS else "Dirichlet shares (Gaffke 2005)"


def united_intervals(
    Q: NDArray[np.float64],
    groups: Grouping,
    weights: Vector | None = None,
    bounds: Bounds = NO_BOUNDS,
    level: float = LEVEL,
) -> tuple[Vector, Vector]:
    """Return the interval of each column's mean over all rows, whatever the missing scores are.

    It unites the intervals with the lower bound and with the upper bound in place of each missing score. An end is NaN
    where a score and its bound are missing.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.
        groups, weights, bounds, level: as for `estimate_means`.
    """
    missing = np.isnan(Q)
    if not missing.any():
        result = estimate_means(Q, groups, weights, bounds, level)
        return result.low, result.high
    lows, highs = [], []
    for bound in bounds:
        filled = Q if bound is None else np.where(missing, bound, Q)
        result = estimate_means(filled, groups, weights, bounds, level)
        is_open = np.isnan(filled).any(axis=0)
        lows.append(np.where(is_open, np.nan if bound is bounds[0] else np.inf, result.low))
        highs.append(np.where(is_open, np.nan if bound is bounds[1] else -np.inf, result.high))
    return np.minimum(*lows), np.maximum(*highs)


def _equal_patterns(seen: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Return the columns that have scores in the same rows."""
    complete = seen.all(axis=0)
    patterns: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(~complete).tolist():
        patterns.setdefault(np.packbits(seen[:, j]).tobytes(), []).append(j)
    groups = [np.array(columns, dtype=np.int64) for columns in patterns.values()]
    return [np.flatnonzero(complete), *groups] if complete.any() else groups


def _estimate(
    Q: NDArray[np.float64], groups: Grouping, weights: Vector, bounds: Bounds, level: float
) -> dict[str, Vector | float | int]:
    """Return the estimates of columns without a missing score."""
    n, w = len(Q), weights / weights.sum()
    groups = group_rows(np.full(n, "")) if groups.problem else groups
    is_equal = bool((weights == weights[0]).all())
    degrees = groups.weighted_degrees(None if is_equal else w)
    with np.errstate(invalid="ignore"):  # an infinite score has no deviation
        mean = Q.mean(axis=0) if is_equal else w @ Q
        plain = np.asarray((w**2 / (1 - w)) @ (Q - mean) ** 2) if n > 1 else np.full(Q.shape[1], np.nan)
        variance = plain if groups.is_independent else design_variance(Q, groups, w)
    is_finite = np.isfinite(mean)
    low, high = np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    design = _SamplingDesign(groups, w, is_equal, degrees, level)
    columns = Q if is_finite.all() else Q[:, is_finite]
    low[is_finite], high[is_finite] = _intervals(columns, mean[is_finite], variance[is_finite], design, bounds)
    with np.errstate(invalid="ignore", over="ignore"):
        rounding = (TIE_TOLERANCE * np.abs(Q).max(axis=0)) ** 2
    return {
        "mean": mean,
        "n": n,
        "n_effective": float(1 / (w**2).sum()),
        "stderr": np.sqrt(np.where(plain <= rounding, 0.0, plain)),
        "stderr_design": np.sqrt(np.where(variance <= rounding, 0.0, variance)),
        "degrees": degrees,
        "low": low,
        "high": high,
    }


@dataclass(frozen=True, slots=True)
class _SamplingDesign:
    """How the rows are a sample.

    Attributes:
        groups: their clusters and strata.
        w: ``(n,)`` weights with a sum of 1.
        is_equal: whether all weights are equal.
        degrees: degrees of freedom.
        level: of the intervals.
    """

    groups: Grouping
    w: Vector
    is_equal: bool
    degrees: float
    level: float


def _intervals(
    Q: NDArray[np.float64], mean: Vector, variance: Vector, design: _SamplingDesign, bounds: Bounds
) -> tuple[Vector, Vector]:
    """Return the interval of each column."""
    low, high = bounds
    if low is not None and high is not None:
        is_within = ((low <= Q) & (high >= Q)).all(axis=0)
        if is_within.all():
            ends = _bounded((Q - low) / (high - low), variance / (high - low) ** 2, design)
            return low + (high - low) * ends[0], low + (high - low) * ends[1]
        parts = np.empty((2, Q.shape[1]))
        parts[:, ~is_within] = _unbounded(Q[:, ~is_within], mean[~is_within], variance[~is_within], design)
        if is_within.any():
            parts[:, is_within] = _intervals(Q[:, is_within], mean[is_within], variance[is_within], design, bounds)
        return np.clip(parts[0], low, high), np.clip(parts[1], low, high)
    ends = _unbounded(Q, mean, variance, design)
    return np.clip(ends[0], low, None), np.clip(ends[1], None, high)


def _unbounded(
    Q: NDArray[np.float64], mean: Vector, variance: Vector, design: _SamplingDesign
) -> tuple[Vector, Vector]:
    """Return the interval of each column of scores without bounds."""
    if design.groups.is_independent and design.is_equal:
        return skewed_intervals(Q, design.level)
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.where(variance > (TIE_TOLERANCE * np.abs(Q).max(axis=0)) ** 2, variance, np.nan))
    return student_interval(mean, errors, design.degrees, design.level)


def _bounded(Y: NDArray[np.float64], variance: Vector, design: _SamplingDesign) -> tuple[Vector, Vector]:
    """Return the interval of each column of scores in [0, 1] with the squared standard errors ``variance``."""
    n, w, binary = len(Y), design.w, ((Y == 0) | (Y == 1)).all(axis=0)
    size = np.full(Y.shape[1], float(n))
    low, high = np.empty(Y.shape[1]), np.empty(Y.shape[1])
    is_exact = design.groups.is_independent and design.is_equal
    if not is_exact:
        size = _effective_sizes(Y, variance, design)
    if is_exact:
        counts = np.rint(Y[:, binary].sum(axis=0)).astype(np.int64)
        low[binary], high[binary] = blaker_interval(counts, n, design.level)
    else:
        low[binary], high[binary] = beta_interval(np.clip(w @ Y[:, binary], 0, 1), size[binary], design.level)
    if binary.all():
        return low, high
    if is_exact and n >= MIN_BETS:
        from tracker.statistics.intervals.betting import betting_intervals  # loads Numba

        low[~binary], high[~binary] = betting_intervals(Y[:, ~binary], design.level)
    else:
        low[~binary], high[~binary] = bounded_intervals(Y[:, ~binary], w[:, None] * size[~binary], design.level)
    return low, high


def _effective_sizes(Y: NDArray[np.float64], variance: Vector, design: _SamplingDesign) -> Vector:
    """Return the effective number of scores of each column of scores in [0, 1].

    Weights and clusters do not increase it. Without strata, the variance between clusters is averaged with that of as
    many clusters of equal size with the intraclass correlation `PRIOR_CORRELATION`, which counts as up to
    `PRIOR_DEGREES` degrees of freedom: few clusters can differ less than the clusters that they stand for. Of equal
    scores, which show no variance, that correlation is all that is known. Strata of equal scores could differ: their
    error is at least that of `_least_variance`.
    """
    groups, w, pooled = design.groups, design.w, pooled_variance(Y, design.w)
    independent = float((w**2).sum())  # the squared error over the variance, of independent scores
    is_known = np.asarray(pooled > NEGLIGIBLE)

    def ratio(variance: Vector) -> Vector:
        known = is_known & (variance > NEGLIGIBLE)
        return np.asarray(np.divide(variance, pooled, out=np.full(len(pooled), independent), where=known))

    is_clustered = groups.n_groups < len(w)
    size = np.full(Y.shape[1], 1 / independent)
    if groups.n_strata > 1:
        rows = design_variance(Y, groups.without_clusters(), w) if is_clustered else variance
        size = 1 / ratio(np.maximum(rows, _least_variance(Y, groups, w)))
    elif not is_clustered:
        size = np.minimum(size, 1 / ratio(variance))
    if is_clustered:
        expected = PRIOR_CORRELATION / groups.n_groups + (1 - PRIOR_CORRELATION) * independent
        prior = min(design.degrees / 10, PRIOR_DEGREES)
        drawn = (design.degrees * ratio(variance) + prior * expected) / (design.degrees + prior)
        size = np.minimum(size, 1 / (drawn if groups.n_strata == 1 else np.where(is_known, ratio(variance), drawn)))
    reach = float(t_quantile(design.level, design.degrees)) if design.degrees > 0 else np.inf
    return np.asarray(size * (special.ndtri((1 + design.level) / 2) / reach) ** 2)


def _least_variance(Y: NDArray[np.float64], groups: Grouping, w: Vector) -> Vector:
    """Return the squared error of the means of 0/1 scores in strata if each had one more right and one more wrong
    score; 0 for other scores.

    A stratum of equal scores has no variance, and a whole table of them would have an error of nearly nothing.
    """
    n = np.bincount(groups.strata)
    right = np.array([np.bincount(groups.strata, weights=column) for column in Y.T]).T
    share = (right + 1) / (n + 2)[:, None]
    squares = np.bincount(groups.strata, weights=w**2)
    is_binary = ((Y == 0) | (Y == 1)).all(axis=0)
    return np.where(is_binary, squares @ (share * (1 - share)), 0.0)
