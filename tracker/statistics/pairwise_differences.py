"""Differences of means of all pairs of models over their common prompts, with errors.

Pairs are not computed one by one: sums over prompts are matrix products. For two models so similar that such a product
would lose digits, the differences are computed prompt by prompt.

Source: Miller 2024, "Adding Error Bars to Evals", sections 2.2 and 3.2 (paired, clustered); Cameron and Miller 2015,
section II (CR1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.grouping import Grouping
from tracker.statistics.mcnemar import mcnemar_pvalues
from tracker.statistics.ranking import TIE_TOLERANCE, scale_exponent
from tracker.statistics.resampling import ALPHA
from tracker.statistics.standard_errors import Correction, cluster_correction
from tracker.statistics.student_t import t_pvalues

CANCELLATION = 1e-3
"""A sum of squares below this share of its terms would have fewer than twelve digits left."""
MAX_CELLS = 1 << 22
"""Differences held in memory at a time."""
MAX_COUNTED = 60
"""Differing prompts up to which they are counted: the smallest p-value is then 2e-18."""

Square = NDArray[np.float64]
WITH_DIAGONAL = ("difference", "stderr", "stderr_clustered", "pvalues", "pvalues_clustered")
"""Results of a model compared with itself, which do not depend on its missing scores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairwiseDifferences:
    """Model i minus model j, over the common prompts; every array is ``(k, k)``.

    Attributes:
        n: common prompts.
        difference: mean of the differences, in the unit of the scores; NaN without common prompts; infinite beyond
            float64, as are errors.
        stderr: s / √n, assuming independent prompts; NaN below two prompts; exactly 0 for identical models.
        n_clusters: clusters with a common prompt.
        stderr_clustered: CR1 or CR2, as in `estimate_clustered_mean`; NaN below two clusters, or without clusters.
        degrees_clustered: degrees of freedom; 0 without a clustered error.
        only_first, only_second: prompts that only i, or only j, answers correctly; None unless all scores are 0 or 1.
        scale: largest absolute score; values below `TIE_TOLERANCE` of it are rounding.
        pvalues: paired t-test, assuming independent prompts; see `t_pvalues`.
        pvalues_clustered: paired t-test with the clustered error; NaN without one.
    """

    n: NDArray[np.int64]
    difference: Square
    stderr: Square
    n_clusters: NDArray[np.int64]
    stderr_clustered: Square
    degrees_clustered: Square
    only_first: NDArray[np.int64] | None
    only_second: NDArray[np.int64] | None
    scale: float
    pvalues: Square
    pvalues_clustered: Square

    @property
    def pvalues_mcnemar(self) -> Square | None:
        """Exact McNemar test; None unless all scores are 0 or 1."""
        if self.only_first is None or self.only_second is None:
            return None
        return mcnemar_pvalues(self.only_first, self.only_second)


def compare_all_pairs(
    Q: NDArray[np.float64], groups: Grouping | None = None, correction: Correction = "CR1"
) -> PairwiseDifferences:
    """Compare every two columns.

    Args:
        Q: ``(n, k)`` finite scores; NaN = missing.
        groups: clusters and strata of the rows; None for errors without either. With strata, no score may be missing.
        correction: small-sample correction of clustered errors for few clusters; with strata it is CR2.
    """
    exponent = scale_exponent(Q)
    Q, seen = np.ldexp(Q, -exponent), ~np.isnan(Q)  # scores of 0 and 1 stay what they are
    scale = float(np.abs(Q).max(initial=0.0, where=seen))
    M, scores = seen.astype(np.float64), np.where(seen, Q, 0.0)
    values = scores
    is_binary = bool(((values == 0) | (values == 1)).all())
    if not is_binary:  # differences are unchanged, sums of squares become small
        counted = np.maximum(M.sum(axis=1, keepdims=True), 1)
        values = np.where(seen, values - values.sum(axis=1, keepdims=True) / counted, 0.0)
    n, right, squares = (_sum_common(table, M) for table in (M, values, values**2))
    total = right - right.T
    products = values.T @ values
    whole = squares + squares.T
    squared_differences = whole - 2 * products  # sum of squared differences
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        # exact integers until divided, if scores are 0 and 1
        spread = np.maximum((n * squared_differences - total**2) / n, 0.0)
    between, n_clusters, degrees = _between(values, M, (mean, spread), groups, correction)
    close = np.zeros(n.shape, dtype=np.bool_) if is_binary else spread < CANCELLATION * whole
    if groups is not None:
        close |= between < CANCELLATION * squared_differences
    i, j = np.nonzero(np.triu(close & (n > 0), 1))
    _one_by_one(scores, M, groups, (i, j), (mean, spread, between), exact=is_binary, correction=correction)
    stderr, clustered = _errors(spread, between, n, n_clusters, TIE_TOLERANCE * scale)
    np.fill_diagonal(mean, np.where(np.diag(n) > 0, 0.0, np.nan))
    only = np.rint(right - products).astype(np.int64) if is_binary else None
    degrees = np.where(n_clusters >= 2, degrees, 0.0)
    pvalues = t_pvalues(mean, stderr, n, scale), t_pvalues(mean, clustered, n_clusters, scale, degrees)
    with np.errstate(over="ignore"):
        difference, stderr, clustered = (np.ldexp(square, exponent) for square in (mean, stderr, clustered))
    return PairwiseDifferences(
        n=n.astype(np.int64),
        difference=difference,
        stderr=stderr,
        n_clusters=n_clusters.astype(np.int64),
        stderr_clustered=clustered,
        degrees_clustered=degrees,
        only_first=only,
        only_second=None if only is None else only.T,
        scale=float(np.ldexp(scale, exponent)),
        pvalues=pvalues[0],
        pvalues_clustered=pvalues[1],
    )


def _sum_common(values: Square, M: Square) -> Square:
    """Return the sum of each column over the rows that it has in common with each column, ``(k, k)``.

    Args:
        values: ``(n, k)``, 0 where missing.
        M: ``(n, k)``, 1 where there is a score, else 0.
    """
    if M.all():
        return np.repeat(values.sum(axis=0)[:, None], values.shape[1], axis=1)
    return np.asarray(values.T @ M)


def _errors(spread: Square, between: Square, n: Square, n_clusters: Square, slack: float) -> tuple[Square, Square]:
    """Return plain and clustered standard errors; those up to ``slack`` are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        stderr = np.where(n >= 2, np.sqrt(spread / (n - 1) / n), np.nan)
        clustered = np.where(n_clusters >= 2, np.sqrt(between) / n, np.nan)
    for error in (stderr, clustered):
        error[error <= slack] = 0.0
        np.fill_diagonal(error, np.where(np.isnan(np.diag(error)), np.nan, 0.0))
    return stderr, clustered


def compare_worst_cases(
    Q: NDArray[np.float64],
    groups: Grouping | None = None,
    correction: Correction = "CR1",
    *,
    worst: float,
    best: float,
) -> PairwiseDifferences:
    """Compare every two columns with all missing scores set against the first of them.

    Entry (i, j) is column i with ``worst`` for each missing score, minus column j with ``best`` for each, over all
    rows. No completion of the table has a smaller advantage of i over j, prompt by prompt, so a test of the worst case
    that rejects "i is not better than j" keeps its level whatever is missing. Entry (j, i) is the other extreme.

    Source: Horowitz and Manski 2000, "Nonparametric analysis of randomized experiments with missing covariate and
    outcome data".

    Args:
        Q: ``(n, k)`` finite scores within the bounds; NaN = missing.
        groups, correction: as for `compare_all_pairs`.
        worst, best: the bounds of a score, in the order of merit.
    """
    k, missing = Q.shape[1], np.isnan(Q)
    incomplete = np.flatnonzero(missing.any(axis=0))
    if not len(incomplete):
        return compare_all_pairs(Q, groups, correction)
    favoured = np.where(missing[:, incomplete], best, Q[:, incomplete])
    pairs = compare_all_pairs(np.hstack([np.where(missing, worst, Q), favoured]), groups, correction)
    as_second = np.arange(k)
    as_second[incomplete] = k + np.arange(len(incomplete))
    cells = np.ix_(np.arange(k), as_second)
    arrays = {
        name: getattr(pairs, name)[cells].copy() for name in ("n", "n_clusters", "degrees_clustered", *WITH_DIAGONAL)
    }
    for name in WITH_DIAGONAL:
        np.fill_diagonal(arrays[name], np.diag(getattr(pairs, name))[:k])
    only = (pairs.only_first, pairs.only_second)
    first, second = (None if side is None else side[cells] for side in only)
    return replace(pairs, **arrays, only_first=first, only_second=second)


def _between(
    values: Square, M: Square, moments: tuple[Square, Square], groups: Grouping | None, correction: Correction
) -> tuple[Square, Square, Square]:
    """For every two columns, return n² times the squared clustered error, the number of clusters, and degrees of
    freedom.
    """
    k = values.shape[1]
    if groups is None:
        return np.full((k, k), np.nan), np.zeros((k, k)), np.zeros((k, k))
    if groups.n_strata > 1:
        return _between_in_strata(values, M, moments[1], groups)
    order, starts = _in_clusters(groups)
    if M.all():
        S = np.add.reduceat((values - values.mean(axis=0))[order], starts, axis=0)
        if groups.n_groups > 1:
            S *= np.sqrt(cluster_correction(groups.sizes[:, None], groups.n_groups, len(M), correction))
        degrees = groups.n_groups - 1.0 if correction == "CR1" else groups.degrees
        return _squared_differences(S), np.full((k, k), float(groups.n_groups)), np.full((k, k), degrees)
    return _between_with_gaps(values, M, moments[0], np.split(order, starts[1:]), correction)


def _between_in_strata(values: Square, M: Square, spread: Square, groups: Grouping) -> tuple[Square, Square, Square]:
    """The same for clusters in strata; see `design_variance`."""
    if not M.all():
        raise ValueError("errors in strata need a score in every row")
    k = values.shape[1]
    S = _deviation_sums(values, groups)
    factor, prior = stratum_factors(groups)
    between = _squared_differences(np.sqrt(factor)[:, None] * S)
    if groups.n_groups == len(M):
        overall = spread * (len(M) / (len(M) - 1))
    else:
        overall = _squared_differences(np.sqrt(cluster_factors(groups))[:, None] * _sums_in_clusters(values, groups))
    between += prior * overall
    return between, np.full((k, k), float(groups.n_groups)), np.full((k, k), groups.degrees)


def _deviation_sums(values: Square, groups: Grouping) -> Square:
    """Return the sum of the deviations from the mean of the stratum in each cluster, ``(n_groups, k)``."""
    order, starts = _in_clusters(groups)
    sums = np.add.reduceat(values[order], starts, axis=0)
    strata = groups.strata_of_groups
    indicators = (strata == np.arange(groups.n_strata)[:, None]).astype(np.float64)
    means = (indicators @ sums) / (indicators @ groups.sizes)[:, None]
    return np.asarray(sums - groups.sizes[:, None] * means[strata])


def _sums_in_clusters(values: Square, groups: Grouping) -> Square:
    """Return the sum of the deviations from the mean of all rows in each cluster, ``(n_groups, k)``."""
    order, starts = _in_clusters(groups)
    return np.asarray(np.add.reduceat((values - values.mean(axis=0))[order], starts, axis=0))


def _squared_differences(S: Square) -> Square:
    """Return the sums of squared differences of every two columns, ``(k, k)``."""
    H = S.T @ S
    variances = np.diag(H)
    return np.maximum(variances[:, None] + variances[None, :] - 2 * H, 0.0)


def stratum_factors(groups: Grouping) -> tuple[NDArray[np.float64], float]:
    """Return the factor of each cluster's squared sum, and that of n² times the error without strata.

    The error without strata is the sum of squared sums of clusters, times `cluster_factors`; see `design_variance`.
    """
    degrees = groups.stratum_degrees()
    share = groups.shares()
    factor = np.divide(1.0, 1 - share, out=np.zeros(len(share)), where=share < 1)
    squares = np.bincount(groups.strata_of_groups, weights=groups.sizes.astype(np.float64) ** 2)
    prior = float((squares / (degrees + 1)).sum() / squares.sum())
    return factor * (degrees / (degrees + 1))[groups.strata_of_groups], prior


def cluster_factors(groups: Grouping) -> NDArray[np.float64]:
    """Return the factor of CR2 of each cluster's squared sum, without strata, ``(n_groups,)``."""
    return np.asarray(1 / (1 - groups.sizes / groups.sizes.sum()))


def _between_with_gaps(
    values: Square, M: Square, mean: Square, clusters: list[NDArray[np.int64]], correction: Correction
) -> tuple[Square, Square, Square]:
    """The same for columns with missing scores, where cluster sizes differ between pairs."""
    n, filled = M.T @ M, np.where(np.isnan(mean), 0.0, mean)
    number = np.sum([(M[rows].T @ M[rows]) > 0 for rows in clusters], axis=0).astype(np.float64)
    between, squares, parts, parts_squared = (np.zeros(n.shape) for _ in range(4))
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows in clusters:
            sums, shared = values[rows].T @ M[rows], M[rows].T @ M[rows]
            factor = np.where(shared > 0, cluster_correction(shared, number, n, correction), 0.0)
            between += factor * (sums - sums.T - filled * shared) ** 2
            share = shared / n
            part = np.where(shared > 0, share**2 / (1 - share), 0.0)
            squares, parts, parts_squared = squares + share**2, parts + part, parts_squared + part**2
        degrees = number - 1 if correction == "CR1" else 1 / (squares + parts**2 - parts_squared)
    return between, number, degrees


def _in_clusters(groups: Grouping) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows sorted by cluster, and the start of each cluster."""
    return np.argsort(groups.codes, kind="stable"), np.concatenate([[0], np.cumsum(groups.sizes)[:-1]])


def _one_by_one(
    scores: Square,
    M: Square,
    groups: Grouping | None,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    results: tuple[Square, Square, Square],
    *,
    exact: bool,
    correction: Correction,
) -> None:
    """Replace the results of some pairs by those of their differences, prompt by prompt; in place.

    Args:
        scores: ``(n, k)``, 0 where missing.
        M: ``(n, k)``, 1 where there is a score, else 0.
        groups: clusters of the rows, if any.
        pairs: first and second columns.
        results: mean, sum of squared deviations, and its counterpart between clusters.
        exact: whether the first two are already exact.
        correction: of the third.
    """
    mean, spread, between = results
    clusters = None if groups is None else _in_clusters(groups)
    step = max(1, MAX_CELLS // max(len(scores), 1))
    for start in range(0, len(pairs[0]), step):
        i, j = pairs[0][start : start + step], pairs[1][start : start + step]
        both = M[:, i] * M[:, j]
        D = (scores[:, i] - scores[:, j]) * both
        means = D.sum(axis=0) / both.sum(axis=0)
        deviations = (D - means) * both
        if not exact:
            mean[i, j], mean[j, i] = means, -means
            spread[i, j] = spread[j, i] = (deviations**2).sum(axis=0)
        if groups is not None and groups.n_strata > 1:
            factors, prior = stratum_factors(groups)
            overall = cluster_factors(groups) @ _sums_in_clusters(D, groups) ** 2
            between[i, j] = between[j, i] = factors @ _deviation_sums(D, groups) ** 2 + prior * overall
        elif clusters is not None:
            sums = np.add.reduceat(deviations[clusters[0]], clusters[1], axis=0)
            sizes = np.add.reduceat(both[clusters[0]], clusters[1], axis=0)
            number = (sizes > 0).sum(axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(sizes > 0, cluster_correction(sizes, number, sizes.sum(axis=0), correction), 0.0)
                between[i, j] = between[j, i] = (factor * sums**2).sum(axis=0)


def smallest_pvalues(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    pairs: PairwiseDifferences,
    pvalues: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the smallest p-values that the exact sign-flip test can have, 2 / 2**m for m prompts that differ.

    A few differences in one direction have nearly no variance within strata, so that Student's t is too large.

    Args:
        first, second: ``(n, k)`` scores of the row's and of the column's models in each pair; NaN = missing.
        pairs: of their means.
        pvalues: ``(k, k)`` by Student's t.

    Returns:
        ``(k, k)``; 0 where scores are not all 0 and 1, and p-values are above 0.05 or more than
        `MAX_COUNTED` prompts certainly differ.
    """
    if pairs.only_first is not None and pairs.only_second is not None:
        return mcnemar_pvalues(pairs.only_first + pairs.only_second, 0)
    exponent = scale_exponent(first)
    first, second = np.ldexp(first, -exponent), np.ldexp(second, -exponent)
    result, slack = np.zeros(pvalues.shape), TIE_TOLERANCE * float(np.ldexp(pairs.scale, -exponent))
    reach = max(float(np.nanmax(first) - np.nanmin(second)), float(np.nanmax(second) - np.nanmin(first)))
    least = np.zeros(pvalues.shape)
    if reach > 0:  # the mean of n differences up to the largest is over at least so many that are not 0
        least = pairs.n * np.abs(np.ldexp(pairs.difference, -exponent)) / reach
    candidates = np.triu((pvalues <= ALPHA) | (pvalues.T <= ALPHA), 1) & (least <= MAX_COUNTED)
    for row in np.flatnonzero(candidates.any(axis=1)).tolist():
        columns = np.flatnonzero(candidates[row])
        for a, b, cells in (
            (first[:, row], second[:, columns], (row, columns)), (second[:, row], first[:, columns], (columns, row)),
        ):  # fmt: skip
            result[cells] = mcnemar_pvalues((np.abs(a[:, None] - b) > slack).sum(axis=0), 0)
    return result
