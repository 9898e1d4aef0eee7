"""Other intervals of a mean of scores in [0, 1] in clusters, computed from the sums of the clusters.

Source: Cameron and Miller 2015 (CR1, CR3); Bell and McCaffrey 2002 (CR2); Cameron, Gelbach and Miller 2008 and Webb
2023 (wild bootstrap, six-point weights); Korn and Graubard 1998; Ibragimov and Müller 2010 (t of cluster means).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit

from tracker.statistics.intervals.betting import betting_intervals
from tracker.statistics.intervals.binomial import beta_interval

N_WILD, N_WILD_WIDTHS = 2000, 300
"""Tables for methods that are slow."""
N_DRAWS = 399

Ends = tuple[np.ndarray, np.ndarray]


class ClusterSums:
    """Means of columns and the deviations of their clusters.

    Attributes:
        mean: ``(k,)``.
        u: ``(n_clusters, k)`` sums of deviations from the mean, over all rows.
        share: ``(n_clusters, 1)`` share of each cluster in the rows.
    """

    def __init__(self, sums: np.ndarray, sizes: np.ndarray) -> None:
        self.sums, self.sizes, self.n = sums, sizes[:, None], sizes.sum()
        self.mean, self.share = sums.sum(axis=0) / self.n, self.sizes / self.n
        self.u = sums / self.n - self.share * self.mean
        part = (self.share**2 / (1 - self.share)).ravel()
        squares = float((self.share**2).sum())
        self.degrees = 1 / (squares + part.sum() ** 2 - (part**2).sum())

    @property
    def cr2(self) -> np.ndarray:
        return np.asarray(np.sqrt((self.u**2 / (1 - self.share)).sum(axis=0)))


def student(c: ClusterSums, error: np.ndarray, degrees: float) -> Ends:
    reach = stdtrit(degrees, 0.975) * error
    return np.clip(c.mean - reach, 0, 1), np.clip(c.mean + reach, 0, 1)


def cr1(c: ClusterSums) -> Ends:
    g = len(c.u)
    return student(c, np.sqrt(g / (g - 1) * (c.u**2).sum(axis=0)), g - 1)


def cr2(c: ClusterSums) -> Ends:
    return student(c, c.cr2, c.degrees)


def cr3(c: ClusterSums) -> Ends:
    """The jackknife of whole clusters."""
    g = len(c.u)
    return student(c, np.sqrt((g - 1) / g * (c.u**2 / (1 - c.share) ** 2).sum(axis=0)), g - 1)


def logit_cr2(c: ClusterSums) -> Ends:
    inner = np.clip(c.mean, 1e-12, 1 - 1e-12)
    reach = stdtrit(c.degrees, 0.975) * c.cr2 / (inner * (1 - inner))
    return expit(logit(inner) - reach), expit(logit(inner) + reach)


def korn_graubard(c: ClusterSums) -> Ends:
    """Clopper and Pearson's interval for the effective number of scores, which clusters may increase here."""
    variance = np.maximum(c.cr2**2, 1e-30)
    shrink = (ndtri(0.975) / stdtrit(c.degrees, 0.975)) ** 2
    n = np.where(c.cr2 > 0, c.mean * (1 - c.mean) / variance, c.n) * shrink
    return beta_interval(c.mean, np.minimum(n, c.n))


def means_of_clusters(c: ClusterSums) -> Ends:
    """Student's t of the means of the clusters, which have equal weights: another estimate of the same mean."""
    means = c.sums / c.sizes
    center, g = means.mean(axis=0), len(means)
    reach = stdtrit(g - 1, 0.975) * means.std(axis=0, ddof=1) / np.sqrt(g)
    return np.clip(center - reach, 0, 1), np.clip(center + reach, 0, 1)


CLOSED: dict[str, Callable[[ClusterSums], Ends]] = {
    "CR1 t": cr1,
    "CR2 t": cr2,
    "CR3 t": cr3,
    "logit CR2 t": logit_cr2,
    "Korn-Graubard": korn_graubard,
    "t of cluster means": means_of_clusters,
}


def wild_pvalues(c: ClusterSums, null: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """P-values of the wild cluster bootstrap of CR1's t with the null imposed.

    Args:
        c: of k columns.
        null: ``(k,)`` hypothesized means.
        weights: ``(n_draws, n_clusters)``.
    """
    residuals = c.sums / c.n - c.share * null
    observed = np.abs(c.mean - null) / np.sqrt((c.u**2).sum(axis=0))
    drawn = weights @ residuals
    squares = weights**2 @ residuals**2 - 2 * drawn * (weights @ (c.share * residuals))
    errors = np.sqrt(np.maximum(squares + drawn**2 * float((c.share**2).sum()), 1e-30))
    return np.asarray((1 + (np.abs(drawn) / errors >= observed).sum(axis=0)) / (len(weights) + 1))


def wild(c: ClusterSums, truth: float, rng: np.random.Generator) -> tuple[float, float]:
    """Coverage and median width of the wild bootstrap's interval, by bisection for its ends."""
    webb = np.sqrt([0.5, 1, 1.5])
    weights = rng.choice(np.concatenate([-webb, webb]), (N_DRAWS, len(c.u)))
    first = ClusterSums(c.sums[:, :N_WILD], c.sizes.ravel())
    with np.errstate(divide="ignore", invalid="ignore"):
        coverage = float((wild_pvalues(first, np.full(len(first.mean), truth), weights) > 0.05).mean())
        few = ClusterSums(c.sums[:, :N_WILD_WIDTHS], c.sizes.ravel())
        ends = []
        for bound in (0.0, 1.0):
            inside, outside = few.mean.copy(), np.full(len(few.mean), bound)
            for _ in range(12):
                middle = (inside + outside) / 2
                holds = wild_pvalues(few, middle, weights) > 0.05
                inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
            ends.append(outside)
    return coverage, float(np.median(ends[1] - ends[0]))


def compare_methods(sums: np.ndarray, sizes: np.ndarray, truth: float) -> dict[str, tuple[float, float]]:
    """Coverage and median width of each method.

    Args:
        sums: ``(n_clusters, k)`` of the scores of each cluster.
        sizes: of the clusters.
        truth: the expected mean.
    """
    c, results = ClusterSums(sums, sizes), {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, method in CLOSED.items():
            low, high = method(c)
            results[name] = float(np.mean((low <= truth) & (truth <= high))), float(np.median(high - low))
    results["wild bootstrap-t"] = wild(c, truth, np.random.default_rng(9))
    low, high = betting_intervals(sums / c.sizes)
    results["betting"] = float(np.mean((low <= truth) & (truth <= high))), float(np.median(high - low))
    return results
