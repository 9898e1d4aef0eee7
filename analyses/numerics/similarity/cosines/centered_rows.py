"""Rows of a table divided by their norms, as deviations from their mean: what cosines of all pairs are computed from.

The cosine of two rows is the product of their deviations, plus a number of each row. Where rows are similar, products
are small, and so are their rounding errors. Sums over all pairs follow from sums over rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_pairs import ALMOST_ONE
from analyses.numerics.similarity.cosines.dot_products import fill_products, make_products
from analyses.numerics.similarity.cosines.scaled_rows import invert_norm
from tracker.statistics.jit import INT, jit

BLOCK_ROWS = 64
"""Rows whose products of columns are added together."""


class NormedRows(NamedTuple):
    """A complete table of scores.

    Attributes:
        scores: ``(n, k)`` float64.
        inverse_norms: ``(n,)`` float64, 0 for a row of zeros.
        mean: ``(k,)`` float64, of the rows divided by their norms, without rows of zeros.
    """

    scores: Any
    inverse_norms: Any
    mean: Any


class CenteredRows(NamedTuple):
    """Deviations of a table's rows from their mean; filled by `center_rows`.

    Attributes:
        units: ``(n, k)`` float32, the deviations times a factor.
        offsets: ``(n,)`` float64, what is added for each of two rows to the product of their deviations: their cosine.
        lengths: ``(n,)`` float64, squared lengths of the deviations.
        weighted_lengths: ``(n,)`` float64, the same with weights of the columns.
        sums: ``(2, k)`` float64, sums of the deviations, and of the same times their squared lengths.
        products: from `make_products`, sums of the products of two columns; filled for the same or a later one.
    """

    units: Any
    offsets: Any
    lengths: Any
    weighted_lengths: Any
    sums: Any
    products: Any


@jit
def _fill_mean(rows: Any) -> None:
    """Inverse norms, and the mean: where all rows are equal, exactly one of them, divided by its norm."""
    mean, reference = rows.mean, np.zeros(rows.mean.size)
    mean[:] = 0.0
    n = 0
    for i in range(rows.scores.shape[0]):
        row = rows.scores[i]
        norm = rows.inverse_norms[i] = invert_norm(row)
        if norm == 0.0:
            continue
        if n == 0:
            reference[:] = row * norm
        n += 1
        for column in range(row.size):
            mean[column] += row[column] * norm - reference[column]
    for column in range(mean.size):
        mean[column] = reference[column] + mean[column] / max(n, 1)


@jit
def _center_row(scores: Any, norm: float, mean: Any, factor: float, weights: Any, i: Any, rows: Any, row: Any) -> None:
    """Deviations of one row."""
    units, sums = rows.units[i], rows.sums
    to_mean = length = weighted_length = 0.0
    for column in range(mean.size):
        unit = scores[column] * norm
        deviation = unit - mean[column]
        square = deviation * deviation
        to_mean += unit * mean[column]
        length += square
        weighted_length += square * weights[column]
        row[column] = deviation
    for column in range(mean.size):
        units[column] = np.float32(row[column] * factor)
    rows.offsets[i], rows.lengths[i], rows.weighted_lengths[i] = to_mean, length, weighted_length
    if norm == 0.0:
        row[:] = 0.0
    for column in range(mean.size):
        sums[0, column] += row[column]
        sums[1, column] += row[column] * length


@jit
def _center(normed: Any, factor: float, weights: Any, rows: Any) -> None:
    mean, n, width = normed.mean, normed.scores.shape[0], rows.products.shape[1]
    square = 0.0
    for column in range(mean.size):
        square += mean[column] * mean[column]
    deviations, products = np.zeros((BLOCK_ROWS, width)), np.empty(rows.products.shape)
    for start in range(0, n, BLOCK_ROWS):
        for x in range(min(BLOCK_ROWS, n - start)):
            i, row = INT(start + x), deviations[x, : mean.size]
            _center_row(normed.scores[i], normed.inverse_norms[i], mean, factor, weights, i, rows, row)
            rows.offsets[i] -= square / 2
        for x in range(n - start, BLOCK_ROWS):
            deviations[x] = 0.0
        fill_products(deviations, products)
        for column in range(mean.size):
            for later in range(column, mean.size):
                rows.products[column, later] += products[column, later]


def center_rows(
    scores: NDArray[np.float64], factor: float, weights: NDArray[np.float64]
) -> tuple[NormedRows, CenteredRows]:
    """Norm the rows of a table, and center them.

    Args:
        scores: ``(n, k)`` float64, complete, with squares that are numbers.
        factor: of the deviations in single precision.
        weights: ``(k,)``, for the weighted squared lengths.
    """
    n, k = scores.shape
    normed = NormedRows(scores, np.empty(n), np.empty(k))
    _fill_mean(normed)
    rows = CenteredRows(
        units=np.empty((n, k), np.float32),
        offsets=np.empty(n),
        lengths=np.empty(n),
        weighted_lengths=np.empty(n),
        sums=np.zeros((2, k)),
        products=make_products(k),
    )
    _center(normed, factor, weights, rows)
    return normed, rows


@jit
def _fill_gaps(inverse_norms: Any, rows: Any, gaps: Any) -> None:
    n = 0
    total = squares = 0.0
    for i in range(inverse_norms.size):
        if inverse_norms[i] > 0.0:
            n += 1
            total += rows.lengths[i]
            squares += rows.lengths[i] * rows.lengths[i]
    together = weighted = of_pairs = 0.0
    for column in range(rows.products.shape[0]):
        together += rows.sums[0, column] * rows.sums[0, column]
        weighted += rows.sums[0, column] * rows.sums[1, column]
        of_column, products = 0.0, rows.products[column]
        for later in range(column + 1, rows.products.shape[0]):
            of_column += products[later] * products[later]
        of_pairs += 2 * of_column + products[column] * products[column]
    gap = (n * total - together) / 2
    if gap > (1.0 - ALMOST_ONE) * (n * (n - 1) / 2):  # otherwise every cosine is 1, but for the last digits
        gaps[0], gaps[1] = gap, ((n * squares + total * total) / 2 - 2 * weighted + of_pairs) / 2


def sum_gaps(normed: NormedRows, rows: CenteredRows) -> NDArray[np.float64]:
    """Return the sums of 1 - cosine and of its square over all pairs of rows without zeros.

    The gap of two rows of length 1 is half their squared distance: the mean of their squared deviations from any point
    minus the product of both. Its sums over all pairs follow from sums over rows, and from products of columns instead
    of rows, so that nothing is subtracted from 1 and small gaps keep their digits.
    """
    gaps = np.zeros(2)
    _fill_gaps(normed.inverse_norms, rows, gaps)
    return gaps
