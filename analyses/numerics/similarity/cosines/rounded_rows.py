"""A table of scores whose cosines are computed in single precision, and by how much they may err."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.centered_rows import center_rows, sum_gaps
from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.cosines.dot_products import make_tiles
from tracker.statistics.jit import jit

TOGETHER = 32
"""Columns whose products are added up before their sum is added to the others: rounding adds up over fewer steps."""
ROUNDING = 2.0**-24
"""Largest relative error of one operation in single precision."""
SECOND_ORDER = 1.02
"""Covers products of errors, which add 1 % to the bound with 100,000 columns."""


class RoundedRows(NamedTuple):
    """A complete table of scores, and its rows in single precision.

    Attributes:
        scores: ``(n, k)`` float64.
        inverse_norms: ``(n,)`` float64, 0 for a row of zeros.
        units: ``(n, k)`` float32, deviations of the rows; their products are in bins.
        tiles: the units as `make_tiles` arranges them.
        offsets: ``(n,)`` float32, added for each of two rows: the distance of their cosine from the origin, in bins.
        origin: the number of the bin there, below all cosines and near to them: small numbers have small errors.
        errors: ``(n,)`` float32, in bins, the largest of any cosine of a row in single precision.
        lowest: lower edge of the first bin; the last ends at 1.
        gaps: the sums of 1 - cosine and of its square over all pairs of rows without zeros.
    """

    scores: Any
    inverse_norms: Any
    units: Any
    tiles: Any
    offsets: Any
    origin: Any
    errors: Any
    lowest: Any
    gaps: Any


def round_rows(scores: NDArray[np.float64], lowest: float) -> RoundedRows:
    """Return a table whose cosines can be binned in single precision.

    The errors of a cosine are 3 roundings of each product of deviations; one rounding of their sum at each step; one of
    each row's offset, one of both together, and one of the whole. By Cauchy's inequality, the sums of products, and
    those of the sums at all steps, are at most the geometric mean of those of both rows with themselves. In double
    precision, norms, offsets and cosines err by up to 6 roundings for each column and 38 more; and the error itself, in
    single precision, by two.

    Args:
        scores: ``(n, k)`` float64, complete, with squares that are numbers.
        lowest: lower edge of the first bin.
    """
    n_bins = BINS / (1.0 - lowest)
    normed, rows = center_rows(scores, np.sqrt(n_bins), _count_steps(scores.shape[1]))
    offsets, errors = np.empty((2, scores.shape[0]), np.float32)
    origin = _fill_errors(rows, lowest, offsets, errors)
    return RoundedRows(
        scores=normed.scores,
        inverse_norms=normed.inverse_norms,
        units=rows.units,
        tiles=make_tiles(rows.units),
        offsets=offsets,
        origin=origin,
        errors=errors,
        lowest=lowest,
        gaps=sum_gaps(normed, rows),
    )


@jit
def _fill_errors(rows: Any, lowest: float, offsets: Any, errors: Any) -> Any:
    """Fill in offsets and errors, and return the origin."""
    n, n_bins = rows.offsets.size, BINS / (1.0 - lowest)
    longest = most_steps = largest = 0.0
    least = rows.offsets[0]
    for i in range(n):
        least = min(least, rows.offsets[i])
        longest = max(longest, rows.lengths[i])
        most_steps = max(most_steps, rows.weighted_lengths[i])
    origin: Any = np.int32(np.floor((2 * least - longest - lowest) * n_bins)) - np.int32(1)
    shift = (lowest + origin / n_bins) / 2
    for i in range(n):
        largest = max(largest, abs(rows.offsets[i] - shift))
    for i in range(n):
        product = np.sqrt(rows.lengths[i] * longest)
        steps = np.sqrt(rows.weighted_lengths[i] * most_steps) + 4 * product + 6 * largest
        offsets[i] = np.float32((rows.offsets[i] - shift) * n_bins)
        error = n_bins * (ROUNDING * SECOND_ORDER * steps + (rows.units.shape[1] + 5) * 2.0**-50)
        errors[i] = np.float32(error + 2 * ROUNDING)
    return origin


@cache
def _count_steps(k: int) -> NDArray[np.float64]:
    """``(k,)``, the steps of a sum from the product of each column on: in its group, and between groups."""
    columns = np.arange(k)
    groups, last_group = columns // TOGETHER, (k - 1) // TOGETHER
    in_group = np.minimum((groups + 1) * TOGETHER, k) - columns
    return np.asarray(in_group + last_group - np.maximum(groups, 1) + 1, dtype=np.float64)
