from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from analyses.numerics.elections.exact_sqrt import ExactSqrtSum
from analyses.numerics.growth.farthest_first import order_farthest_first
from analyses.numerics.growth.groups import group_rows
from tracker.statistics.ranking import TIE_TOLERANCE

CRITERIA = ("mean", "min")


def order_of(table: np.ndarray, start: int, criterion: str = "mean") -> list[int]:
    return order_farthest_first(group_rows(table), start, criterion).rows.tolist()


def exact_order(table: np.ndarray, start: int, criterion: str) -> list[int]:
    """Each remaining row with each selected one, at every step; 0/1 rows, square roots compared exactly."""
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in table]

    @cache
    def cosine(a: frozenset[int], b: frozenset[int]) -> ExactSqrtSum:
        return ExactSqrtSum.cosine(len(a & b), len(a), len(b)) if a and b else ExactSqrtSum.from_number(0)

    def similarity(row: int) -> ExactSqrtSum:
        result = [cosine(sets[row], sets[second]) for second in order]
        if criterion == "mean":
            return sum(result, ExactSqrtSum.from_number(0)) * Fraction(1, len(result))
        most = result[0]
        for first in result[1:]:
            most = first if (first - most).sign() > 0 else most
        return most

    order = [start]
    while len(order) < len(table):
        best = None
        for row in range(len(table)):
            if row in order:
                continue
            observed = similarity(row)
            if best is None or (observed - best[1]).sign() < 0:
                best = row, observed
        order.append(best[0])
    return order


def high_precision_order(table: np.ndarray, start: int, criterion: str) -> tuple[list[int], list[float]]:
    """The same for any numbers, with 40 digits, and distances that differ by at most `TIE_TOLERANCE` taken as equal."""
    with mp.workdps(40):
        rows = [[mpf(float(x)) for x in row] for row in table]
        lengths = [mp.sqrt(mp.fdot(row, row)) for row in rows]
        n = len(rows)
        far = [
            [
                1 - mp.fdot(rows[i], rows[j]) / (lengths[i] * lengths[j]) if lengths[i] and lengths[j] else mpf(1)
                for j in range(n)
            ]
            for i in range(n)
        ]
        order, distances = [start], []
        while len(order) < n:
            remaining = {
                i: (
                    sum(far[i][j] for j in order) / len(order) if criterion == "mean" else min(far[i][j] for j in order)
                )
                for i in range(n)
                if i not in order
            }
            most = max(remaining.values())
            chosen = min(i for i, distance in remaining.items() if distance >= most - TIE_TOLERANCE)
            distances.append(float(remaining[chosen]))
            order.append(chosen)
        return order, distances


def order_by_integers(table: np.ndarray, start: int) -> list[int]:
    """Mean distance on 0/1 rows with 1 / sqrt(s) to 40 digits as integers; sums less than 10**-30 apart are equal."""
    digits = 10**40
    sizes = table.sum(axis=1).astype(int)
    inverse = np.array([isqrt(digits**2 // int(s)) if s else 0 for s in sizes], dtype=object)
    ones = table.astype(int).astype(object)
    running = np.zeros(table.shape[1], dtype=object)
    patterns, pattern = np.unique(table, axis=0, return_inverse=True)
    first = [int(np.flatnonzero(pattern == g)[0]) for g in range(len(patterns))]
    left = [np.flatnonzero((pattern == g) & (np.arange(len(table)) != start)).tolist() for g in range(len(patterns))]
    order = [start]
    while len(order) < len(table):
        running = running + ones[order[-1]] * inverse[order[-1]]
        close = {g: int(ones[first[g]] @ running) * inverse[first[g]] for g in range(len(patterns)) if left[g]}
        least = min(close.values())
        tied = [g for g, value in close.items() if value - least < digits**2 // 10**30]
        order.append(left[min(tied, key=lambda g: left[g][0])].pop(0))
    return order


def binary(seed: int, n: int, k: int, share: float = 0.5) -> np.ndarray:
    return (np.random.default_rng(seed).random((n, k)) < share).astype(float)


class TestAgainstReference:
    @pytest.mark.parametrize("criterion", CRITERIA)
    @pytest.mark.parametrize(
        "table",
        [
            binary(0, 30, 3),
            binary(1, 28, 5),
            binary(2, 26, 8, 0.3),
            binary(3, 24, 12, 0.7),
            np.zeros((5, 3)),
            np.ones((6, 2)),
            np.repeat(np.eye(4), 3, axis=0),
            np.vstack([np.zeros((4, 6)), np.tril(np.ones((6, 6))), np.triu(np.ones((6, 6)))]),
        ],
    )
    def test_the_order_is_that_of_exact_arithmetic_on_all_pairs(self, table, criterion):
        for start in (0, len(table) // 2, len(table) - 1):
            assert order_of(table, start, criterion) == exact_order(table, start, criterion)

    @pytest.mark.parametrize("criterion", CRITERIA)
    @pytest.mark.parametrize(
        "table",
        [
            np.random.default_rng(0).random((24, 4)),
            np.random.default_rng(1).normal(size=(24, 5)),
            np.random.default_rng(2).integers(-1, 2, (26, 3)).astype(float),
            np.random.default_rng(3).integers(0, 4, (26, 3)) / 3,
            -binary(4, 20, 4),
            np.random.default_rng(5).normal(size=(20, 1)),
        ],
    )
    def test_any_numbers_come_in_the_order_of_forty_digits(self, table, criterion):
        result = order_farthest_first(group_rows(table), 7, criterion)
        order, distances = high_precision_order(table, 7, criterion)
        assert result.rows.tolist() == order
        assert np.isnan(result.distances[0])
        assert result.distances[1:] == pytest.approx(np.maximum(distances, 0), abs=1e-12)

    @pytest.mark.parametrize("criterion", CRITERIA)
    def test_larger_tables_come_in_the_order_of_the_matrix_of_all_distances(self, criterion):
        for table in (np.random.default_rng(0).random((400, 30)), np.random.default_rng(1).normal(size=(400, 70))):
            unit = table / np.linalg.norm(table, axis=1, keepdims=True)
            close = unit @ unit.T
            order = [9]
            left = np.ones(len(table), dtype=bool)
            left[9] = False
            while left.any():
                seen = close[:, order]
                similarity = seen.mean(axis=1) if criterion == "mean" else seen.max(axis=1)
                order.append(int(np.where(left, similarity, np.inf).argmin()))
                left[order[-1]] = False
            assert order_of(table, 9, criterion) == order

    def test_real_scores_with_many_equal_rows_come_in_the_order_of_integers(self, mmlu_pro):
        assert order_of(mmlu_pro.Q, 600) == order_by_integers(mmlu_pro.Q, 600)


class TestLaws:
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_lengths_copies_and_empty_columns_do_not_matter(self, data):
        n, k = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 6))
        table = np.array(
            data.draw(st.lists(st.lists(st.integers(-1, 1), min_size=k, max_size=k), min_size=n, max_size=n))
        )
        table = table.astype(float)
        start = data.draw(st.integers(0, n - 1))
        criterion = data.draw(st.sampled_from(CRITERIA))
        order = order_of(table, start, criterion)
        assert order[0] == start
        assert sorted(order) == list(range(n))
        lengths = np.array(data.draw(st.lists(st.sampled_from([1e-200, 0.1, 3.0, 1e200]), min_size=n, max_size=n)))
        assert order_of(table * lengths[:, None], start, criterion) == order
        assert order_of(table[:, data.draw(st.permutations(range(k)))], start, criterion) == order
        assert order_of(np.hstack([table, np.zeros((n, 3))]), start, criterion) == order
        assert order_of(np.hstack([table, table]), start, criterion) == order

    @pytest.mark.parametrize("criterion", CRITERIA)
    def test_rows_of_zeros_come_before_any_that_resembles_what_is_there(self, criterion):
        table = np.vstack([np.ones((3, 4)), np.zeros((3, 4)), np.eye(4), np.zeros((2, 4))])
        assert group_rows(table).n_zero == 5
        result = order_farthest_first(group_rows(table), 1, criterion)
        assert result.rows[:6].tolist() == [1, 3, 4, 5, 10, 11]
        assert result.distances[1:6].tolist() == [1.0] * 5

    def test_the_nearest_distance_never_grows(self):
        for table in (binary(0, 200, 9), np.random.default_rng(0).normal(size=(150, 6))):
            distances = order_farthest_first(group_rows(table), 0, "min").distances[1:]
            assert (np.diff(distances) <= 1e-12).all()

    def test_minus_zero_is_zero(self):
        table = np.array([[1.0, 0.0], [-1.0, -0.0], [0.0, -0.0], [1.0, -0.0]])
        result = group_rows(table)
        assert (len(result.units), result.n_zero) == (3, 1)
        assert result.group[0] == result.group[3]
