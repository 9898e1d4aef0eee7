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
        places = np.sort(
            np.concatenate([np.asarray(group, dtype=np.int64) for group in remaining] or [np.empty(0, np.int64)])
        )
        firsts = np.array([group[0] for group in remaining], dtype=np.int64)
        new = {}
        for number, group in enumerate(remaining):
            candidates = np.delete(places, np.searchsorted(places, group))
            mean = _mean(table, rounding, group[0], candidates, np.delete(firsts, number))
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
    table: NDArray[np.float64],
    rounding: NDArray[np.float64],
    column: int,
    candidates: NDArray[np.int64],
    distinct: NDArray[np.int64],
) -> ColumnMean | None:
    if len(distinct) < 2:
        return None
    needed = MIN_EVIDENCE + 2 * log10(2 * len(candidates))
    split = int(np.searchsorted(candidates, column))
    for places, only_whole in (
        (candidates, True), (distinct, True), (candidates[:split][::-1], False), (candidates[split:], False),
    ):  # fmt: skip
        sizes = np.arange(len(places) if only_whole else 2, len(places) + 1)
        if len(sizes) > 1:  # one row and the largest error rule out nearly all
            most = rounding[column] + rounding[places].max()
            off = np.abs(np.cumsum(table[0, places])[1:] / sizes - table[0, column])
            sizes = sizes[~(off > most)]
        if not len(sizes):
            continue
        allowed = rounding[column] + np.maximum.accumulate(rounding[places])[sizes - 1]
        n_rows = np.zeros(len(sizes), dtype=np.int64)
        for values, value in zip(table, table[:, column], strict=True):
            sums = values[places].sum(keepdims=True) if only_whole else np.cumsum(values[places])[sizes - 1]
            off = np.abs(sums / sizes - value)
            fits = ~(off > allowed)
            sizes, allowed, n_rows = sizes[fits], allowed[fits], n_rows[fits] + ~np.isnan(off[fits])
            if not len(sizes):  # mostly after the first row
                break
        else:
            spread = np.nanstd(table[:, column])
            evidence = n_rows * np.log10(np.maximum(spread / allowed, 1.0))
            enough = np.flatnonzero((n_rows >= MIN_ROWS) & (evidence >= needed))
            if len(enough):
                n = int(sizes[enough[-1]])
                return ColumnMean(
                    column=column, of=tuple(places[:n].tolist()), is_of_all=only_whole, n_rows=int(n_rows[enough[-1]])
                )
    return None


def _decimals(values: NDArray[np.float64]) -> int:
    """Return the number of decimals with which all values can be written."""
    values = values[np.abs(values) < WHOLE]
    for digits in range(MAX_DECIMALS):
        if np.array_equal(np.round(values, digits), values):
            return digits
    return MAX_DECIMALS
