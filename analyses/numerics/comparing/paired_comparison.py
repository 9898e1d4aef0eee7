"""Paired comparison of two models on the same prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.comparing.bootstrap import bca_interval, jackknife_means, resampled_means
from analyses.numerics.comparing.sign_flips import SignFlips, sign_flip_test
from tracker.statistics.grouping import Grouping
from tracker.statistics.mcnemar import mcnemar_pvalues
from tracker.statistics.paired_differences import (
    MeanDifference,
    estimate_clustered_mean,
    estimate_mean,
    unpaired_stderr,
)
from tracker.statistics.planning.power import detectable_difference
from tracker.statistics.ranking import TIE_TOLERANCE


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedComparison:
    """The first model less the second, turned so that positive means the first is better.

    Attributes:
        advantage: ``(n,)`` difference on each prompt.
        mean_a, mean_b: means of the scores as they are.
        correlation: of the two models' scores; NaN where one of them is constant.
        naive: as if prompts were independent.
        clustered: by CR1; None where errors are not clustered.
        uneven: by CR2, for clusters of unequal sizes; None where errors are not clustered.
        is_even: whether CR1 will do.
        stratified: of prompts within strata; None without strata, or where errors are clustered.
        mcnemar: p-value; NaN where scores are not all 0 and 1.
        flips: signs of prompts flipped.
        flips_clustered: signs of whole clusters flipped; None where errors are not clustered.
        bca: interval by resampled prompts; NaN where it does not exist.
        bca_clustered: by resampled clusters; NaN where it does not exist.
        detectable: smallest difference found with 80 % power at alpha 0.05; NaN where there is no error.
        unpaired_stderr: error of the difference if the two had different prompts.
        level: of the intervals.
    """

    advantage: NDArray[np.float64]
    mean_a: float
    mean_b: float
    correlation: float
    naive: MeanDifference
    clustered: MeanDifference | None
    uneven: MeanDifference | None
    is_even: bool
    stratified: MeanDifference | None
    mcnemar: float
    flips: SignFlips
    flips_clustered: SignFlips | None
    bca: tuple[float, float]
    bca_clustered: tuple[float, float]
    detectable: float
    unpaired_stderr: float
    level: float

    @property
    def n(self) -> int:
        """Prompts compared."""
        return len(self.advantage)

    @property
    def best(self) -> MeanDifference:
        """The estimate: CR1, or CR2 where clusters are very unequal; without clusters stratified, else naive."""
        return (self.clustered if self.is_even else self.uneven) or self.stratified or self.naive

    @property
    def pairing_gain(self) -> float:
        """How many times as many prompts as shared ones each model would need for the same error; NaN without one."""
        return (self.unpaired_stderr / self.naive.stderr) ** 2 if self.naive.stderr > 0 else np.nan

    @property
    def pvalue(self) -> float:
        """The test of the difference: clustered t, else exact McNemar, else flipped signs."""
        if self.clustered is not None:
            return self.best.pvalue
        return self.flips.pvalue if np.isnan(self.mcnemar) else self.mcnemar

    def scaled(self, exponent: int) -> PairedComparison:
        """Return the numbers in the unit of scores times 2**exponent; infinite beyond float64."""
        if not exponent:
            return self

        def scale(value: float) -> float:
            return float(np.ldexp(value, exponent))

        with np.errstate(over="ignore"):
            return replace(
                self,
                advantage=np.ldexp(self.advantage, exponent),
                mean_a=scale(self.mean_a),
                mean_b=scale(self.mean_b),
                naive=self.naive.scaled(exponent),
                clustered=self.clustered and self.clustered.scaled(exponent),
                uneven=self.uneven and self.uneven.scaled(exponent),
                stratified=self.stratified and self.stratified.scaled(exponent),
                bca=(scale(self.bca[0]), scale(self.bca[1])),
                bca_clustered=(scale(self.bca_clustered[0]), scale(self.bca_clustered[1])),
                detectable=scale(self.detectable),
                unpaired_stderr=scale(self.unpaired_stderr),
            )


def compare_models(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    groups: Grouping,
    *,
    higher_is_better: bool = True,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
    with_bootstrap: bool = True,
    largest: float = np.inf,
) -> PairedComparison:
    """Compare two models.

    Args:
        a, b: ``(n,)`` finite scores on the same prompts, at least one.
        groups: clusters and strata of the prompts; without strata, where there are not two clusters, or none has a
            name, prompts count as independent.
        higher_is_better: whether large scores are good.
        level: of the intervals.
        n_resamples: of the bootstrap, and of signs where they are not all counted; at least 1.
        seed: the same seed gives the same bytes, whatever the number of workers.
        with_bootstrap: whether to draw the bootstrap intervals; NaN if not.
        largest: possible difference, where intervals of Student's t end; infinite if scores have no bounds.
    """
    scale, d = max(float(np.abs(a).max()), float(np.abs(b).max())), a - b if higher_is_better else b - a
    d = np.where(np.abs(d) <= TIE_TOLERANCE * scale, 0.0, d)
    options: Mapping[str, Any] = {"scale": scale, "level": level, "largest": largest}
    naive = estimate_mean(d, **options)
    clustered, uneven, stratified, flips_clustered, bca_clustered = None, None, None, None, (np.nan, np.nan)
    if groups.n_strata > 1 and groups.n_groups == len(d):
        stratified = estimate_clustered_mean(d, groups, **options)
    elif not groups.problem:
        clustered = estimate_clustered_mean(d, groups, **options)
        uneven = estimate_clustered_mean(d, groups, **options, correction="CR2")
        sums, sizes = np.bincount(groups.codes, weights=d).astype(np.float64), groups.sizes.astype(np.float64)
        flips_clustered = sign_flip_test(sums, n_draws=n_resamples, seed=seed)
        if with_bootstrap:
            bca_clustered = _bca(sums, sizes, level, n_resamples, seed)
    is_binary = bool((((a == 0) | (a == 1)) & ((b == 0) | (b == 1))).all())
    best = (clustered if groups.is_even else uneven) or stratified or naive
    return PairedComparison(
        advantage=d,
        mean_a=float(a.mean()),
        mean_b=float(b.mean()),
        correlation=_correlation(a, b, scale),
        naive=naive,
        clustered=clustered,
        uneven=uneven,
        is_even=groups.is_even,
        stratified=stratified,
        mcnemar=float(mcnemar_pvalues((d > 0).sum(), (d < 0).sum())) if is_binary else np.nan,
        flips=sign_flip_test(d, n_draws=n_resamples, seed=seed),
        flips_clustered=flips_clustered,
        bca=_bca(d, np.ones(len(d)), level, n_resamples, seed) if with_bootstrap else (np.nan, np.nan),
        bca_clustered=bca_clustered,
        detectable=detectable_difference(best.stderr, best.degrees),
        unpaired_stderr=unpaired_stderr(a, b),
        level=level,
    )


def _bca(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], level: float, n_resamples: int, seed: int
) -> tuple[float, float]:
    drawn = resampled_means(sums, sizes, n_resamples=n_resamples, seed=seed)
    return bca_interval(drawn, float(sums.sum() / sizes.sum()), jackknife_means(sums, sizes), level)


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64], scale: float) -> float:
    x, y = a - a.mean(), b - b.mean()
    lengths = np.sqrt((x**2).sum()), np.sqrt((y**2).sum())
    if min(lengths) <= TIE_TOLERANCE * scale * np.sqrt(len(a)):
        return np.nan
    return float(((x / lengths[0]) * (y / lengths[1])).sum())
