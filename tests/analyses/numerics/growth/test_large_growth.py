"""Tables with more groups than a pool or a block holds, and the groups themselves, beside slow versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.clustering.directions import find_directions, group_directions
from analyses.numerics.growth import farthest_on_average
from analyses.numerics.growth.farthest_first import order_farthest_first
from analyses.numerics.growth.groups import group_rows
from tracker.statistics.ranking import TIE_TOLERANCE

KINDS = ("binary", "few ones", "many copies", "counts", "embeddings", "centred", "opposite", "nearly one direction")


def table_of(kind: str, rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """SIMULATED rows."""
    if kind == "binary":
        return (rng.random((n, k)) < rng.random((n, 1))).astype(float)
    if kind == "few ones":
        return (rng.random((n, k)) < 2 / k).astype(float)
    if kind == "many copies":
        return (rng.random((n // 3 + 1, k)) < 0.5).astype(float)[rng.integers(n // 3 + 1, size=n)]
    if kind == "counts":
        return rng.integers(0, 3, (n, k)).astype(float)
    if kind == "embeddings":
        return rng.normal(size=(n, k)) + 0.4 * rng.normal(size=k)
    if kind == "centred":
        return rng.normal(size=(n, k))
    if kind == "opposite":
        half = rng.normal(size=(n // 2, k))
        return np.vstack([half, -half, np.zeros((n % 2, k))])
    return 1 + 1e-4 * rng.normal(size=(n, k))


def direct_order(table: np.ndarray, start: int, criterion: str) -> tuple[list[int], list[float]]:
    """The similarity of every remaining row at each step, in 64-bit precision, with ties as in the module."""
    X = table.astype(np.longdouble)
    lengths = np.sqrt((X * X).sum(axis=1, keepdims=True))
    unit = np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
    order, distances, left = [start], [], np.ones(len(X), dtype=bool)
    left[start] = False
    known = (unit * unit[start]).sum(axis=1)
    for step in range(1, len(X)):
        similarity = np.where(left, known / step if criterion == "mean" else known, np.inf)
        row = int(np.flatnonzero(similarity <= similarity.min() + TIE_TOLERANCE)[0])
        order.append(row)
        distances.append(float(1 - similarity[row]))
        left[row] = False
        more = (unit * unit[row]).sum(axis=1)
        known = known + more if criterion == "mean" else np.maximum(known, more)
    return order, distances


class TestAgainstReference:
    @settings(max_examples=40, deadline=None)
    @given(st.sampled_from(KINDS), st.sampled_from(("mean", "min")), st.integers(0, 2**32), st.data())
    def test_rows_come_in_the_order_of_all_similarities(self, kind, criterion, seed, data):
        n, k = data.draw(st.integers(2, 260)), data.draw(st.integers(1, 140))
        table = table_of(kind, np.random.default_rng(seed), n, k)
        start = data.draw(st.integers(0, n - 1))
        result = order_farthest_first(group_rows(table), start, criterion)
        order, distances = direct_order(table, start, criterion)
        assert result.rows.tolist() == order
        assert result.distances[1:] == pytest.approx(np.clip(distances, 0, 2), abs=1e-11)

    @pytest.mark.parametrize("criterion", ["mean", "min"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_several_pools_and_blocks_are_searched(self, kind, criterion):
        table = table_of(kind, np.random.default_rng(5), 700, 24)
        rows = order_farthest_first(group_rows(table), 3, criterion).rows
        assert rows.tolist() == direct_order(table, 3, criterion)[0]

    @pytest.mark.parametrize("call_size", [1, 99 * 16_800])
    def test_rows_do_not_depend_on_how_many_a_call_adds(self, call_size, monkeypatch):
        table = table_of("counts", np.random.default_rng(6), 700, 24)
        monkeypatch.setattr(farthest_on_average, "CALL_SIZE", call_size)
        result = order_farthest_first(group_rows(table), 3, "mean")
        monkeypatch.undo()
        expected = order_farthest_first(group_rows(table), 3, "mean")
        assert result.rows.tobytes() == expected.rows.tobytes()
        assert result.distances.tobytes() == expected.distances.tobytes()

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_groups_are_the_rows_with_equal_quotients(self, data):
        n, k = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 5))
        values = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1.0, 1e-300]), min_size=k, max_size=k)
        table = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))
        table *= np.array(data.draw(st.lists(st.sampled_from([1.0, 3.0, 0.1]), min_size=n, max_size=n)))[:, None]
        first, of_row = {}, []
        for i, row in enumerate(table):
            scaled = tuple(row / np.abs(row).max()) if row.any() else None
            of_row.append(-1 if scaled is None else first.setdefault(scaled, (len(first), i))[0])
        distinct = find_directions(table)
        assert distinct.of_row.tolist() == of_row
        assert distinct.first_rows.tolist() == [i for _, i in first.values()]
        assert distinct.largest.tolist() == np.abs(table).max(axis=1).tolist()
        groups = group_rows(table)
        assert groups.n_zero == of_row.count(-1)
        assert len(groups.units) == len(set(of_row))
        for g in range(len(groups.units)):
            members = groups.members[groups.starts[g] : groups.starts[g + 1]].tolist()
            assert members == np.flatnonzero(groups.group == g).tolist()
            assert len({of_row[i] for i in members}) == 1
            row = table[members[0]] / (np.abs(table[members[0]]).max() or 1)
            length = np.linalg.norm(row)
            assert groups.units[g] == pytest.approx(row / length if length else row, abs=1e-15)
        assert groups.is_nonnegative == (table >= 0).all()
        assert groups.is_binary == all(x in (0, np.abs(row).max()) for row in table for x in row)


class TestErrors:
    @pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
    def test_numbers_that_are_not_finite_are_rejected(self, bad):
        table = np.ones((4, 3))
        table[2, 1] = bad
        for group in (group_rows, group_directions):
            with pytest.raises(ValueError, match="finite"):
                group(table)
