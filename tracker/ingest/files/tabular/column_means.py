"""Detection of columns that are the mean of others, such as an average of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, log10

import numpy as np
from numpy.typing import NDArray

MIN_ROWS = 3
MAX_DECIMALS = 12
WHOLE = 2.0**53
"""Floats from here on have no decimals."""
MIN_EVIDENCE = 6
"""Negative decimal logarithm of the accepted chance that unrelated columns look like a mean."""


@dataclass(frozen=True, kw_only=True)
class ColumnMean:
    """A column that is the mean of others within rounding.

    Attributes:
        column: its index.
        of: indices of the averaged columns.
        is_of_all: whether it averages all other columns, or one of each group of equal columns.
        n_rows: number of rows in which all of these columns have a value.
    """

    column: int
    of: tuple[int, ...]
    is_of_all: bool
    n_rows: int


def column_means(table: NDArray[np.float64], equal: Sequence[Sequence[int]]) -> list[ColumnMean]:
    """Return the columns that are the mean of all others, or of two or more adjacent ones.

    Means are excluded from further means, so that an overall average is detected beside partial ones.

    Args:
        table: ``(n_rows, n_columns)``; NaN for missing scores.
        equal: groups of indices of equal columns; each column is in one group.
    """
    rounding = rounding_errors(table)
    # Scale the values so that no sum or square overflows.
    _, exponent = frexp(float(np.nanmax(np.abs(table), initial=0.0)))
    table, rounding = np.ldexp(table, -exponent), np.ldexp(rounding, -exponent)
    means: dict[int, ColumnMean] = {}
    remaining = list(equal)
    while True:
        new = {}
        for group in remaining:
            rest = [other_group for other_group in remaining if other_group is not group]
            places = sorted(place for other_group in rest for place in other_group)
            mean = _mean(table, rounding, group[0], places, [other_group[0] for other_group in rest])
            if mean is not None:
                new[group[0]] = mean
        if not new:
            return [means[place] for place in sorted(means)]
        means |= new
        remaining = [group for group in remaining if group[0] not in new]


def rounding_errors(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rounding error of each column: half a unit of its last digit, plus that of float sums.

    Args:
        table: ``(n_rows, n_columns)``; NaN for missing scores.
    """
    decimals = [_decimals(column[~np.isnan(column)]) for column in table.T]
    largest = float(np.nanmax(np.abs(table), initial=0.0))
    return np.array([0.5 * 10.0**-digits for digits in decimals]) * (1 + 1e-9) + 1e-12 * largest


def _mean(
    table: NDArray[np.float64], rounding: NDArray[np.float64], column: int, candidates: list[int], distinct: list[int]
) -> ColumnMean | None:
    if len(distinct) < 2:
        return None
    before, after = (
        [place for place in candidates if place < column][::-1],
        [place for place in candidates if place > column],
    )
    for places, only_whole in ((candidates, True), (distinct, True), (before, False), (after, False)):
        counts = np.arange(1, len(places) + 1)
        sums = np.cumsum(table[:, places], axis=1)
        widest = np.maximum.accumulate(rounding[places])
        chosen = slice(len(places) - 1, None) if only_whole else slice(1, None)
        off = np.abs(sums[:, chosen] / counts[chosen] - table[:, [column]])
        rows = np.count_nonzero(~np.isnan(off), axis=0)
        allowed = rounding[column] + widest[chosen]
        spread = np.nanstd(table[:, column])
        evidence = rows * np.log10(np.maximum(spread / allowed, 1.0))
        fits = ~(off > allowed).any(axis=0) & (rows >= MIN_ROWS)
        fits &= evidence >= MIN_EVIDENCE + 2 * log10(2 * len(candidates))
        if fits.any():
            at = int(np.flatnonzero(fits)[-1])
            n = int(counts[chosen][at])
            return ColumnMean(column=column, of=tuple(places[:n]), is_of_all=only_whole, n_rows=int(rows[at]))
    return None


def _decimals(values: NDArray[np.float64]) -> int:
    """Return the number of decimals with which all values can be written."""
    values = values[np.abs(values) < WHOLE]
    for digits in range(MAX_DECIMALS):
        if np.array_equal(np.round(values, digits), values):
            return digits
    return MAX_DECIMALS
