"""Agreement of models on errors, beyond what their accuracies and the difficulties of prompts explain.

Under the null hypothesis models are independent, given the number right of each prompt and of each model. The number of
disagreements of two models then has a mean and a variance that follow from `fitted_margins`; the variance allows for
the fixed sums of both columns. With fewer than `MIN_CONDITIONED` models that approximation fails, and
`conditional_moments` enumerates the patterns of scores.

Source: Kim et al. 2025, "Correlated errors in large language models"; Goel et al. 2025, arXiv 2502.04313, for agreement
corrected for accuracy. The null is that of the fixed margins in Ailem et al. 2024, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.related.conditional_moments import compute_disagreement_moments
from tracker.statistics.related.fitted_margins import FittedMargins, fit_margins

Floats = NDArray[np.float64]

MIN_MODELS = 3
"""With two models, row sums leave no freedom: every disagreement is explained."""
MIN_CONDITIONED = 8
"""Least number of models whose moments come from the fitted margins; those of fewer models are enumerated."""
NEAR_COPY_EXCESS = 1 / 3
"""Share of the expected disagreements that near-copies avoid, at least."""
MIN_EXPECTED = 1e-3
"""Least expected number of prompts to divide by: fits of models without errors leave tiny ones."""
LEVEL = 0.05
"""Family-wise level at which near-copies differ from independent models."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorAgreement:
    """Disagreements and common errors of all pairs of models; every array is ``(k, k)``.

    Attributes:
        n: prompts with a score from both models.
        disagreements: prompts that exactly one of them solves.
        expected_disagreements, variance: mean and variance of that number under the null.
        both_wrong, expected_both_wrong: prompts that neither solves, and their mean under the null.
    """

    n: Floats
    disagreements: Floats
    expected_disagreements: Floats
    variance: Floats
    both_wrong: Floats
    expected_both_wrong: Floats

    @property
    def agreement(self) -> Floats:
        """Share of prompts that both get wrong, of those that at least one gets wrong; NaN without any."""
        return divide_pairs(self.both_wrong, self.both_wrong + self.disagreements)

    @property
    def expected_agreement(self) -> Floats:
        """The same under the null."""
        expected = self.expected_both_wrong + self.expected_disagreements
        both_wrong = np.maximum(self.expected_both_wrong, 0.0)  # rounding can make it negative
        return divide_pairs(both_wrong, np.where(expected >= MIN_EXPECTED, expected, 0.0))

    @property
    def excess(self) -> Floats:
        """Share of the expected disagreements that do not occur: 1 where two models are identical; NaN without any."""
        expected = self.expected_disagreements
        return 1 - divide_pairs(self.disagreements, np.where(expected >= MIN_EXPECTED, expected, 0.0))

    @property
    def z(self) -> Floats:
        """Disagreements that do not occur, in standard deviations under the null; NaN without spread.

        With three models, fixed sums leave every second number of disagreements only: half of that step is subtracted.
        """
        continuity = 1.0 if len(self.disagreements) == MIN_MODELS else 0.0
        fewer = self.expected_disagreements - self.disagreements - continuity
        return divide_pairs(fewer, np.sqrt(self.variance))

    @property
    def holm(self) -> Floats:
        """One-sided p-value of each pair, adjusted for all pairs; NaN without a test."""
        return adjust_pairs(self.z)

    @property
    def near_copies(self) -> NDArray[np.bool_]:
        """Pairs whose excess is significant and at least `NEAR_COPY_EXCESS`."""
        return find_near_copies(self.excess >= NEAR_COPY_EXCESS, self.z)

    @property
    def excess_variance(self) -> Floats:
        """What each pair adds to the variance of the similarity of prompts, beyond its mean under the null.

        Over all pairs of prompts, the squared number of models that score both equally is a sum over pairs of models
        of C², with C = n − 2 · disagreements. The part of a pair is C² − E(C²), without a common factor.
        """
        mean = self.n - 2 * self.expected_disagreements
        part = (self.n - 2 * self.disagreements) ** 2 - (mean**2 + 4 * self.variance)
        np.fill_diagonal(part, 0.0)
        return np.asarray(part)


def compare_errors(Q: Floats) -> ErrorAgreement:
    """Compare all pairs of models by the prompts that they get wrong.

    Takes matrix products only: about a second for 14,042 prompts and 100 models with scores missing anywhere.

    Args:
        Q: ``(n, k)`` scores, 1 = right and 0 = wrong, NaN = missing.
    """
    fit = fit_margins(Q)
    is_measured = ~np.isnan(Q)
    measured, right = is_measured.astype(np.float64), np.where(is_measured, Q, 0.0)
    if Q.shape[1] < MIN_CONDITIONED:
        sums = right.sum(axis=0)
        expected, variance = compute_disagreement_moments(fit.measured, fit.row_sums, fit.counts, sums)
    else:
        expected, variance = _expect_disagreements(fit)
    n, both_right, alone = measured.T @ measured, right.T @ right, right.T @ measured
    disagreements = alone + alone.T - 2 * both_right
    rate = (fit.counts[:, None] * fit.probability).T @ fit.measured
    for array in (disagreements, expected, variance):
        np.fill_diagonal(array, 0.0)
    return ErrorAgreement(
        n=n,
        disagreements=disagreements,
        expected_disagreements=expected,
        variance=variance,
        both_wrong=n - (alone + alone.T + disagreements) / 2,
        expected_both_wrong=n - (rate + rate.T + expected) / 2,
    )


def _expect_disagreements(fit: FittedMargins) -> tuple[Floats, Floats]:
    """Return mean and variance of the disagreements of all pairs.

    In a row the probability of a disagreement is d = p + q − 2pq + 2cd', with probabilities p and q and couplings c and
    d'; its variance is d − d². Both are sums of products of one term per model, hence matrix products.
    """
    p, c, weight = fit.probability, fit.coupling, fit.counts[:, None]

    def products(first: Floats, second: Floats) -> Floats:
        return np.asarray((weight * first).T @ second)

    def both(first: Floats, second: Floats) -> Floats:
        product = products(first, second)
        return product + product.T

    squared, crossed = p * p, p * c
    mean = both(p, fit.measured) - 2 * products(p, p) + 2 * products(c, c)
    square = (
        both(squared, fit.measured)
        + 4 * products(squared, squared)
        + 4 * products(c * c, c * c)
        + 2 * products(p, p)
        - 4 * both(squared, p)
        + 4 * both(crossed, c)
        - 8 * products(crossed, crossed)
    )
    return np.maximum(mean, 0.0), _condition_on_columns(fit, np.maximum(mean - square, 0.0))


def _condition_on_columns(fit: FittedMargins, variance: Floats) -> Floats:
    """Return the variance of the disagreements of each pair, given the sums of both columns.

    Of jointly normal D, S and S', it is var(D) − u'M⁻¹u with u = cov(D, (S, S')) and M = cov((S, S')).
    """
    p, c, weight = fit.probability, fit.coupling, fit.counts[:, None]
    spread, weighted_c = p - p * p, weight * c
    with_first = (weight * spread).T @ fit.measured + weighted_c.T @ c - 2 * (weight * p * (1 - p)).T @ p
    with_first -= 2 * (weighted_c * p).T @ c
    of_sums = (weight * spread).sum(axis=0)
    shared, with_second = weighted_c.T @ c, with_first.T
    determinant = of_sums[:, None] * of_sums - shared**2
    explained = divide_pairs(
        with_first**2 * of_sums + with_second**2 * of_sums[:, None] + 2 * with_first * with_second * shared,
        determinant,
    )
    left = variance - explained
    return np.asarray(np.where(left > 0, left, variance))


def find_near_copies(is_large: NDArray[np.bool_], z: Floats) -> NDArray[np.bool_]:
    """Return the pairs whose excess is large and, by Holm at `LEVEL`, significant; none among fewer than three models.

    Args:
        is_large: ``(k, k)`` whether the excess of a pair is large.
        z: ``(k, k)`` symmetric standardized excesses.
    """
    n_tests = np.count_nonzero(~np.isnan(z[np.triu_indices(len(z), 1)]))
    if len(z) < MIN_MODELS or not is_large.any() or not n_tests:
        return np.zeros(z.shape, dtype=np.bool_)
    if np.nanmax(z) < NormalDist().inv_cdf(1 - LEVEL / n_tests):  # Holm rejects nothing
        return np.zeros(z.shape, dtype=np.bool_)
    return np.asarray(is_large & (adjust_pairs(z) <= LEVEL))


def adjust_pairs(z: Floats) -> Floats:
    """Return one-sided normal p-values of all pairs, adjusted by Holm; NaN on the diagonal and without a test.

    Args:
        z: ``(k, k)`` symmetric standardized excesses.
    """
    from scipy.special import ndtr  # imports run this module, and few of them get here

    i, j = np.triu_indices(len(z), 1)
    adjusted = np.full(z.shape, np.nan)
    adjusted[i, j] = adjusted[j, i] = holm_values(ndtr(-z[i, j]))
    return adjusted


def divide_pairs(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotients; NaN where the denominator is not positive."""
    return np.asarray(np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0))
