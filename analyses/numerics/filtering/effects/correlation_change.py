"""How a filter changes the correlation of a benchmark's scores with other scores of the same models.

A rise from 0.764 to 0.776 over 29 models may be noise of which models were looked at. Models are drawn with
replacement, the same for both correlations, and the change is computed anew. What comes of it is an interval for the
change over other models like these; it is no test.

Source: Gupta et al. 2024, table 3; Efron & Tibshirani 1993, "An introduction to the bootstrap", chapter 13 (percentile
intervals).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.spread import LEVELS
from tracker.statistics.parallel.blocks import map_blocks, split_blocks
from tracker.statistics.ranking import TIE_TOLERANCE, mean_ranks
from tracker.statistics.rng_streams import RESAMPLED_MODELS, generator

Floats = NDArray[np.float64]

MIN_MODELS = 3
"""With fewer, every correlation that exists is 1 or -1."""
CELLS = 2**18
"""Drawn models that are worked on at a time, by one worker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrelationChange:
    """A correlation with other scores, before and after a filter; NaN where it is not defined.

    Attributes:
        n_models: models with all three scores.
        before, after: of all of them, in [-1, 1].
        change: ``after - before``.
        low, high: 2.5 % and 97.5 % quantiles of the change over the draws in which it is defined.
        share_not_above: share of those draws in which the change is at most 0 (up to `TIE_TOLERANCE`).
        n_draws: draws of as many models, with replacement.
        n_undefined: draws left out since some score was the same for all models drawn.
    """

    n_models: int
    before: float
    after: float
    change: float
    low: float
    high: float
    share_not_above: float
    n_draws: int
    n_undefined: int


def compare_correlations(
    before: Floats, after: Floats, external_scores: Floats, *, n_draws: int = 10_000, seed: int
) -> Mapping[str, CorrelationChange]:
    """Pearson's and Spearman's correlation with other scores, before and after.

    Ties, for ranks and for the check of constant scores, are those of `mean_ranks` among all models. Tied scores share
    the mean of their ranks, and every draw is ranked again. With fewer than `MIN_MODELS` models nothing is defined.

    Args:
        before, after, external_scores: ``(m,)`` scores of the same models, on one scale and direction each; models that
            lack one (NaN) are left out.
        n_draws: draws of the models.
        seed: the same seed gives the same draws, for any number of workers.

    Returns:
        By the names "pearson" and "spearman".
    """
    table = np.stack([before, after, external_scores]).astype(np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)]
    m = table.shape[1]
    if m < MIN_MODELS:
        observed, drawn = np.full((2, 2), np.nan), np.full((n_draws, 2, 2), np.nan)
    else:
        levels = np.stack([np.unique(mean_ranks(row, higher_is_better=False), return_inverse=True)[1] for row in table])
        observed = _correlations(table, levels, np.arange(m)[None])[0]
        blocks = split_blocks(n_draws, max(1, CELLS // m))

        def some(block: int) -> Floats:
            models = generator(seed, RESAMPLED_MODELS, block).integers(0, m, (len(blocks[block]), m))
            return _correlations(table, levels, models)

        drawn = np.concatenate([np.empty((0, 2, 2)), *map_blocks(some, len(blocks))])
    return {name: _change(m, observed[place], drawn[:, place]) for place, name in enumerate(("pearson", "spearman"))}


def _correlations(table: Floats, levels: NDArray[np.intp], models: NDArray[np.intp]) -> Floats:
    """``(n_draws, 2, 2)``: Pearson's and Spearman's, of before and of after with other.

    Args:
        table: ``(3, m)`` scores.
        levels: ``(3, m)`` place of each score among the different ones, the smallest first.
        models: ``(n_draws, m)`` models drawn.
    """
    correlations = np.empty((len(models), 2, 2))
    constant = [np.ptp(level[models], axis=1) == 0 for level in levels]
    ranked = [_mid_ranks(level[models], int(level.max()) + 1) for level in levels]
    for place, units in enumerate(([_units(row[models]) for row in table], [_units(ranks) for ranks in ranked])):
        for column in (0, 1):
            r = np.clip((units[column] * units[2]).sum(axis=1), -1.0, 1.0)
            correlations[:, place, column] = np.where(constant[column] | constant[2], np.nan, r)
    return correlations


def _units(x: Floats) -> Floats:
    """Rows less their mean, of length 1; those of length 0 stay."""
    x = x - x.mean(axis=1, keepdims=True)
    length = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(x, length, out=x, where=length > 0))


def _mid_ranks(levels: NDArray[np.intp], n_levels: int) -> Floats:
    """Ranks within each row, the smallest level first; equal ones share the mean of their ranks."""
    n = len(levels)
    cells = levels + np.arange(n)[:, None] * n_levels
    counts = np.bincount(cells.ravel(), minlength=n * n_levels).reshape(n, n_levels)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return np.take_along_axis(ranks, levels, axis=1)


def _change(n_models: int, observed: Floats, drawn: Floats) -> CorrelationChange:
    changes = drawn[:, 1] - drawn[:, 0]
    defined = changes[~np.isnan(changes)]
    nothing = not defined.size
    low, high = (float("nan"),) * 2 if nothing else map(float, np.quantile(defined, LEVELS))
    return CorrelationChange(
        n_models=n_models,
        before=float(observed[0]),
        after=float(observed[1]),
        change=float(observed[1] - observed[0]),
        low=low,
        high=high,
        share_not_above=float("nan") if nothing else float((defined <= TIE_TOLERANCE).mean()),
        n_draws=len(drawn),
        n_undefined=len(drawn) - len(defined),
    )
