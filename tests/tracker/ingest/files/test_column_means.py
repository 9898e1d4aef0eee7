"""Columns that are means of others: the fast search beside the plain one."""

from __future__ import annotations

from math import frexp, log10

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tracker.ingest.files.tabular.column_means import (
    MIN_EVIDENCE,
    MIN_ROWS,
    ColumnMean,
    column_means,
    rounding_errors,
)


def plain_column_means(table: np.ndarray, equal: list[list[int]]) -> list[ColumnMean]:
    """Every candidate of every column, in whole arrays."""
    rounding = rounding_errors(table)
    _, exponent = frexp(float(np.nanmax(np.abs(table), initial=0.0)))
    table, rounding = np.ldexp(table, -exponent), np.ldexp(rounding, -exponent)
    means: dict[int, ColumnMean] = {}
    remaining = list(equal)
    while True:
        new = {}
        for group in remaining:
            rest = [copied for copied in remaining if copied is not group]
            places = sorted(place for copied in rest for place in copied)
            mean = plain_mean(table, rounding, group[0], places, [copied[0] for copied in rest])
            if mean is not None:
                new[group[0]] = mean
        if not new:
            return [means[place] for place in sorted(means)]
        means |= new
        remaining = [group for group in remaining if group[0] not in new]


def plain_mean(
    table: np.ndarray, rounding: np.ndarray, column: int, candidates: list[int], distinct: list[int]
) -> ColumnMean | None:
    if len(distinct) < 2:
        return None
    before = [place for place in candidates if place < column][::-1]
    after = [place for place in candidates if place > column]
    for places, only_whole in ((candidates, True), (distinct, True), (before, False), (after, False)):
        for n in range(len(places), (len(places) if only_whole else 2) - 1, -1):
            off = np.abs(table[:, places[:n]].sum(axis=1) / n - table[:, column])
            allowed = rounding[column] + rounding[places[:n]].max(initial=0.0)
            n_rows = int(np.count_nonzero(~np.isnan(off)))
            if n_rows < MIN_ROWS or (off > allowed).any():
                continue
            evidence = n_rows * log10(max(np.nanstd(table[:, column]) / allowed, 1.0))
            if evidence >= MIN_EVIDENCE + 2 * log10(2 * len(candidates)):
                return ColumnMean(column=column, of=tuple(places[:n]), is_of_all=only_whole, n_rows=n_rows)
    return None


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Scores with two decimals, in which some columns are rounded means of adjacent ones or copies."""
    n_rows, n_columns = draw(st.integers(3, 9)), draw(st.integers(2, 9))
    cells = st.integers(0, 10_000).map(lambda value: value / 100)
    table = draw(arrays(np.float64, (n_rows, n_columns), elements=cells))
    for _ in range(draw(st.integers(0, 3))):
        first, last = sorted(draw(st.tuples(st.integers(0, n_columns), st.integers(0, n_columns))))
        target = draw(st.integers(0, n_columns - 1))
        if last > first:
            table[:, target] = np.round(table[:, first:last].mean(axis=1), draw(st.integers(1, 4)))
    table[draw(arrays(np.bool_, table.shape, elements=st.sampled_from([False] * 15 + [True])))] = np.nan
    return table


@given(table=tables())
def test_equal_to_the_plain_search(table: np.ndarray) -> None:
    groups: dict[bytes, list[int]] = {}
    for column, values in enumerate(table.T):
        groups.setdefault(values.tobytes(), []).append(column)
    equal = list(groups.values())
    assert column_means(table, equal) == plain_column_means(table, equal)
