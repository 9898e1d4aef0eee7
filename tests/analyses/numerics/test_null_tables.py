from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from null_draws import draw_tables
from scipy import stats
from strategies import binary_tables_with_gaps, continuous_tables

from analyses.numerics.null_tables import (
    shuffle_scores,
    shuffle_table,
)
from analyses.numerics.similarity.score_table import PackedScores, pack_bits, unpack_bits
from tracker.statistics.rng_streams import stream_key


class TestAgainstReference:
    def test_shuffled_columns_visit_every_arrangement_equally_often(self):
        table = np.array([[1, 1], [1, 0], [0, 0], [0, 0.0]])
        arrangements = {
            tuple(sorted((*((i, 0) for i in first), *((i, 1) for i in second))))
            for first in combinations(range(4), 2)
            for second in combinations(range(4), 1)
        }
        seen = Counter(
            tuple(map(tuple, np.argwhere(drawn == 1).tolist())) for drawn in draw_tables(table, "columns", 4800)
        )
        assert set(seen) == arrangements
        assert stats.chisquare(list(seen.values())).pvalue > 0.001

    @pytest.mark.parametrize("missing", [(), ((0, 0), (2, 3))])
    def test_fixed_margins_visit_every_table_equally_often(self, missing):
        table = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0.0]])
        for cell in missing:
            table[cell] = np.nan
        rows, columns = np.nansum(table, axis=1), np.nansum(table, axis=0)
        choices = [
            [row for row in product([0, 1], repeat=4) if sum(row) == rows[i] and not any(
                row[j] and np.isnan(table[i, j]) for j in range(4)
            )]
            for i in range(4)
        ]  # fmt: skip
        possible = {t for t in product(*choices) if (np.sum(t, axis=0) == columns).all()}
        n = 60 * len(possible)
        seen = Counter(
            tuple(map(tuple, np.nan_to_num(t).astype(int).tolist())) for t in draw_tables(table, "margins", n)
        )
        assert set(seen) == possible
        assert len(possible) > 5
        assert stats.chisquare(list(seen.values())).pvalue > 0.001


class TestLaws:
    @given(binary_tables_with_gaps(), st.integers(0, 1000))
    def test_shuffling_keeps_column_sums_and_missing_cells(self, table, seed):
        for drawn in draw_tables(table, "columns", 3, seed):
            assert (np.isnan(drawn) == np.isnan(table)).all()
            assert (np.nansum(drawn, axis=0) == np.nansum(table, axis=0)).all()

    @given(binary_tables_with_gaps(), st.integers(0, 1000))
    def test_trading_keeps_both_sums_and_missing_cells(self, table, seed):
        for drawn in draw_tables(table, "margins", 3, seed):
            assert (np.isnan(drawn) == np.isnan(table)).all()
            assert (np.nansum(drawn, axis=0) == np.nansum(table, axis=0)).all()
            assert (np.nansum(drawn, axis=1) == np.nansum(table, axis=1)).all()

    @given(continuous_tables())
    def test_shuffled_scores_are_the_same_scores(self, table):
        packed = PackedScores.from_scores(np.ones_like(table))
        scores = table.T.ravel()
        drawn = shuffle_scores(scores, packed.cells, packed.cell_starts, table.shape[0], stream_key(1), 0)
        assert (np.sort(drawn, axis=0) == np.sort(table, axis=0)).all()

    def test_shuffled_scores_take_every_place_equally_often(self):
        cells, starts = np.arange(4), np.array([0, 4])
        places = [
            int(np.argmax(shuffle_scores(np.arange(4.0), cells, starts, 4, stream_key(0), b))) for b in range(4000)
        ]
        assert stats.chisquare(np.bincount(places, minlength=4)).pvalue > 0.001

    @given(binary_tables_with_gaps(max_models=6))
    def test_packing_is_undone_by_unpacking(self, table):
        wide = np.tile(table == 1, (1, 20))
        assert (unpack_bits(pack_bits(wide), wide.shape[1]) == wide).all()


class TestShuffledTable:
    def test_a_complete_table_is_drawn_as_its_cells_are(self) -> None:
        Q = np.random.default_rng(0).normal(size=(7, 3))
        key = stream_key(3)
        drawn = shuffle_table(Q, key, 5)
        cells, starts = np.tile(np.arange(7), 3), np.arange(4) * 7
        assert np.array_equal(drawn, shuffle_scores(Q.T.ravel(), cells, starts, 7, key, 5))
        assert np.array_equal(np.sort(drawn, axis=0), np.sort(Q, axis=0))
