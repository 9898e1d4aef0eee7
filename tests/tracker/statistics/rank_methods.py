"""Other ways to decide which models are better than which, for the width of rank intervals beside Holm's.

Source: Shaffer 1986, "Modified sequentially rejective multiple test procedures" (S1); Tukey 1953 (studentized range);
Mogstad, Romano, Shaikh and Wilhelm 2024 (resampled maximum of t).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr, stdtr
from scipy.stats import studentized_range

from tracker.statistics.grouping import Grouping

ALPHA, N_DRAWS = 0.05, 400


@dataclass(frozen=True)
class Differences:
    """P-values of all pairs, means of the models, and the degrees of freedom of the errors."""

    pvalues: np.ndarray
    mean: np.ndarray
    degrees: float

    @property
    def known(self) -> np.ndarray:
        return np.nan_to_num(self.pvalues, nan=1.0)

    @property
    def ahead(self) -> np.ndarray:
        return np.asarray(self.mean[:, None] > self.mean)


@cache
def shaffer_counts(k: int) -> np.ndarray:
    """How many of the hypotheses that k means are equal in pairs can be true once r of them are false, for each r."""
    possible = [{0}, {0}]
    for n in range(2, k + 1):
        possible.append({j * (j - 1) // 2 + rest for j in range(1, n + 1) for rest in possible[n - j]})
    m = k * (k - 1) // 2
    return np.array([max(1, *(number for number in possible[k] if number <= m - r)) for r in range(m)])


@cache
def tukey_pvalue(k: int, degrees: float) -> float:
    """The p-value of a single pair below which the studentized range is significant."""
    return float(2 * stdtr(degrees, -studentized_range.ppf(1 - ALPHA, k, degrees) / np.sqrt(2)))


def pairs_by_method(differences: Differences) -> dict[str, np.ndarray]:
    """Whether the row is better than the column, by Bonferroni, Shaffer's S1 and Tukey."""
    k, known = len(differences.mean), differences.known
    i, j = np.triu_indices(k, 1)
    order = np.argsort(known[i, j], kind="stable")
    stepped = np.empty(len(order))
    stepped[order] = np.maximum.accumulate(known[i, j][order] * shaffer_counts(k))
    shaffer = np.ones((k, k))
    shaffer[i, j] = shaffer[j, i] = stepped
    limits = {"Bonferroni": known * len(i) <= ALPHA, "Shaffer": shaffer <= ALPHA}
    limits["Tukey"] = known <= tukey_pvalue(k, float(differences.degrees))
    return {name: significant & differences.ahead for name, significant in limits.items()}


def max_t(Q: np.ndarray, groups: Grouping, differences: Differences, rng: np.random.Generator) -> np.ndarray:
    """The same by the largest t of all pairs when deviations of clusters have random normal weights."""
    strata = groups.strata
    means = np.stack([Q[strata == stratum].mean(axis=0) for stratum in range(groups.n_strata)])
    sums = np.zeros((groups.n_groups, Q.shape[1]))
    np.add.at(sums, groups.codes, Q - means[strata])
    i, j = np.triu_indices(Q.shape[1], 1)
    parts = sums[:, i] - sums[:, j]
    errors = np.sqrt((parts**2).sum(axis=0))
    drawn = np.abs(rng.standard_normal((N_DRAWS, len(parts))) @ parts) / np.where(errors > 0, errors, 1)
    limit = np.quantile(drawn.max(axis=1), 1 - ALPHA)
    return np.asarray((differences.known <= 2 * ndtr(-limit)) & differences.ahead)
