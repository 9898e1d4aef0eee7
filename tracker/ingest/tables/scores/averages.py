"""Columns of a leaderboard that are means or weighted means of others in every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, log10

import numpy as np
from numpy.typing import NDArray

from tracker.ingest.files.tabular.column_means import rounding_errors

MIN_ROWS = 3
MAX_COLUMNS = 120
"""Beyond this number, weighted means are not searched for."""
MAX_PAIRS = 2_000_000
"""Pairs of a column and adjacent columns that may be its mean."""
CERTAIN, UNCLEAR = 6.0, 3.0
"""Negative decimal logarithms of the chance that a task equals a mean in every row: from the first on, the column is an
average; from the second on, it may be."""
MIN_WEIGHT, SUM_ERROR = 0.01, 0.01
FITTED = 1.5
"""Rounding error that a fitted mean may have, in units of that of a mean with known weights."""


@dataclass(frozen=True, kw_only=True)
class Average:
    """A column that is a mean of others within rounding.

    Attributes:
        column: its index.
        of: indices of the averaged columns.
        is_certain: whether chance is excluded.
    """

    column: int
    of: Sequence[int]
    is_certain: bool


def find_averages(Q: NDArray[np.float64]) -> list[Average]:
    """Return the columns that are means of adjacent columns, or weighted means of any.

    A task is never a mean of averages that include it, since means lie between the columns that they average.

    Args:
        Q: ``(n_rows, n_columns)`` scores; NaN for missing ones.
    """
    n_rows, n_columns = Q.shape
    if n_rows < MIN_ROWS or n_columns < 3:
        return []
    # Scale the values so that no sum or square overflows.
    _, exponent = frexp(float(np.nanmax(np.abs(Q), initial=0.0)))
    rounding = np.ldexp(rounding_errors(Q), -exponent)
    Q = np.ldexp(Q, -exponent)
    distinct = np.sort(np.unique(Q, axis=1, return_index=True)[1])
    averages = {average.column: average for average in _means_of_adjacent(Q, rounding)}
    rest = [column for column in distinct.tolist() if column not in averages]
    averages |= {average.column: average for average in _weighted_means(Q, rounding, rest)}
    return [averages[column] for column in sorted(averages)]


def _means_of_adjacent(Q: NDArray[np.float64], rounding: NDArray[np.float64]) -> list[Average]:
    """Return the columns that are the mean of two or more adjacent others."""
    n_columns = Q.shape[1]
    longest = min(n_columns - 1, MAX_PAIRS // n_columns**2)
    ranges = [(start, start + n) for n in range(2, longest + 1) for start in range(n_columns - n + 1)]
    if not ranges:
        return []
    first, last = np.array(ranges).T
    counts = last - first
    missing = np.pad(np.cumsum(np.isnan(Q), axis=1), ((0, 0), (1, 0)))
    sums = np.pad(np.cumsum(np.nan_to_num(Q), axis=1), ((0, 0), (1, 0)))
    errors = np.pad(np.cumsum(rounding), (1, 0))
    allowed = (errors[last] - errors[first]) / counts
    columns = np.arange(n_columns)
    mean, column = np.nonzero((columns < first[:, None]) | (columns >= last[:, None]))
    n_measured = np.zeros(len(mean), np.int64)
    for row in np.argsort(missing[:, -1], kind="stable").tolist():
        start, stop = first[mean], last[mean]
        is_measured = (missing[row, stop] == missing[row, start]) & ~np.isnan(Q[row, column])
        off = np.abs((sums[row, stop] - sums[row, start]) / counts[mean] - Q[row, column])
        fits = ~(is_measured & (off > allowed[mean] + rounding[column]))
        mean, column, n_measured = mean[fits], column[fits], (n_measured + is_measured)[fits]
    best: dict[int, tuple[float, Average]] = {}
    for chosen, place, n_rows in zip(mean.tolist(), column.tolist(), n_measured.tolist(), strict=True):
        of = list(range(*ranges[chosen]))
        error = float(allowed[chosen] + rounding[place])
        evidence = _evidence(Q, place, of, n_rows, error) - log10(len(ranges)) if n_rows >= MIN_ROWS else 0.0
        if evidence >= UNCLEAR and (place not in best or evidence > best[place][0]):
            best[place] = evidence, Average(column=place, of=of, is_certain=evidence >= CERTAIN)
    return [average for _, average in best.values()]


def _weighted_means(Q: NDArray[np.float64], rounding: NDArray[np.float64], columns: Sequence[int]) -> list[Average]:
    """Return the columns among some that are a weighted mean of the others."""
    A = Q[:, list(columns)]
    A = A[~np.isnan(A).any(axis=1)]
    n_rows, n_columns = A.shape
    if not 3 <= n_columns <= MAX_COLUMNS or n_rows < n_columns + MIN_ROWS:
        return []
    errors = rounding[list(columns)]
    smallest = np.linalg.svd(A, compute_uv=False)[-1]
    if smallest > 2 * np.sqrt(n_rows) * errors.max():
        return []  # no column depends on the others
    from scipy.optimize import nnls

    averages = []
    for place, column in enumerate(columns):
        rest = [peer for peer in range(n_columns) if peer != place]
        weights, _ = nnls(A[:, rest], A[:, place])
        used = [peer for peer, weight in zip(rest, weights, strict=True) if weight > MIN_WEIGHT]
        if len(used) < 2 or abs(weights.sum() - 1) > SUM_ERROR:
            continue
        allowed = FITTED * (errors[place] + float(weights @ errors[rest]))
        if (np.abs(A[:, rest] @ weights - A[:, place]) > allowed).any():
            continue
        evidence = _evidence(A, place, used, n_rows - len(used), float(allowed)) - len(used) * log10(n_columns)
        if evidence >= CERTAIN:
            averages.append(Average(column=column, of=[columns[peer] for peer in used], is_certain=True))
    return averages


def _evidence(Q: NDArray[np.float64], column: int, of: Sequence[int], n_rows: int, allowed: float) -> float:
    """Return the negative decimal logarithm of the chance that a column is within rounding of a mean in some rows.

    The column is compared with the nearest averaged one, since columns of scores are correlated.
    """
    with np.errstate(invalid="ignore"):
        distances = [float(np.sqrt(np.nanmean((Q[:, column] - Q[:, peer]) ** 2))) for peer in of]
    return n_rows * log10(max(min(distances) / allowed, 1.0))
