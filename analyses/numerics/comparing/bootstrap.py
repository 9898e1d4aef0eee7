"""The paired bootstrap: prompts, or whole clusters of them, are drawn anew, and the mean difference with them.

Source: Efron 1987, "Better bootstrap confidence intervals" (BCa); Efron and Tibshirani 1993, sections 14.3 and 15.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.ranking import TIE_TOLERANCE
from tracker.statistics.rng_streams import RESAMPLED_UNITS, generator

BLOCK = 64
"""Resamples drawn from one stream."""
FEW_VALUES = 32
"""Up to so many different prompts or clusters, how often each is drawn is drawn at once."""


def resampled_means(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], *, n_resamples: int, seed: int
) -> NDArray[np.float64]:
    """The mean over as many units, drawn with replacement, each with all its prompts.

    Args:
        sums: ``(m,)`` sum of the differences in each unit.
        sizes: ``(m,)`` prompts in each unit, positive.
        n_resamples: how many.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Returns:
        ``(n_resamples,)``.
    """
    m, blocks = len(sums), split_blocks(n_resamples, BLOCK)
    kinds, counts = np.unique(np.stack([sums, sizes]), axis=1, return_counts=True)
    is_equal_sized = bool((sizes == sizes[0]).all())

    def drawn(block: int) -> NDArray[np.float64]:
        rows, draw = len(blocks[block]), generator(seed, RESAMPLED_UNITS, block)
        if len(counts) <= FEW_VALUES:
            often = draw.multinomial(m, counts / m, rows).astype(np.float64)
            return np.asarray((often * kinds[0]).sum(axis=1) / (often * kinds[1]).sum(axis=1))
        units = draw.integers(0, m, (rows, m), dtype=np.int32)
        total = sums[units].sum(axis=1)
        return np.asarray(total / (m * sizes[0] if is_equal_sized else sizes[units].sum(axis=1)))

    return np.concatenate(map_blocks(drawn, len(blocks)))


def jackknife_means(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean without each unit in turn; NaN where there is only one.

    Args:
        sums, sizes: as of `resampled_means`.
    """
    if len(sums) < 2:
        return np.full(len(sums), np.nan)
    return np.asarray((sums.sum() - sums) / (sizes.sum() - sizes))


def bca_interval(
    distribution: NDArray[np.float64], observed: float, jackknife: NDArray[np.float64], level: float = 0.95
) -> tuple[float, float]:
    """The bias-corrected and accelerated percentile interval.

    NaN where it does not exist: fewer than two units, units that all say the same, or all resamples on one side of
    what was observed.

    Args:
        distribution: ``(n_resamples,)`` the statistic in each resample.
        observed: the statistic.
        jackknife: ``(m,)`` the statistic without each unit.
        level: in (0, 1).
    """
    from scipy.special import ndtr, ndtri

    scale = max(abs(observed), float(np.abs(distribution).max(initial=0.0)))
    deviations = jackknife.mean() - jackknife
    spread = float((deviations**2).sum())
    if (
        len(jackknife) < 2
        or not np.isfinite(spread)
        or np.sqrt(spread / len(deviations)) * len(deviations) <= TIE_TOLERANCE * scale
    ):
        return np.nan, np.nan
    below, above = distribution < observed - TIE_TOLERANCE * scale, distribution > observed + TIE_TOLERANCE * scale
    bias = ndtri((1 + (below.mean() - above.mean())) / 2)
    if not np.isfinite(bias):
        return np.nan, np.nan
    sizes = deviations / np.sqrt(spread)  # so that no cube leaves what a number can hold
    acceleration = float((sizes**3).sum()) / 6
    ends = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    shares = ndtr(bias + ends / (1 - acceleration * ends))
    low, high = np.quantile(distribution, shares).tolist()
    return low, high
