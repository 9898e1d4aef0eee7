from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import binary_tables_with_gaps, continuous_tables_with_gaps

from analyses.numerics.similarity.score_table import ScoreTable, unpack_bits

GAP = np.nan
Q = np.array([[1, 0, 1], [1, GAP, 1], [0, 0, 1], [1, 0, 1]])


class TestLaws:
    @given(binary_tables_with_gaps())
    def test_packed_rows_are_the_rows_in_their_order(self, scores):
        table = ScoreTable(scores)
        bits, measured = (unpack_bits(words, table.n_columns) for words in (table.packed.bits, table.packed.masks))
        assert np.array_equal(np.where(measured, bits, np.nan), scores[table.packed.order], equal_nan=True)
        assert (table.packed_scores == bits).all()

    @given(st.one_of(binary_tables_with_gaps(), continuous_tables_with_gaps()))
    def test_sorted_columns_are_the_measured_scores_of_each_column(self, scores):
        columns = [np.sort(column[~np.isnan(column)]) for column in scores.T]
        assert ScoreTable(scores).sort_columns().tolist() == np.concatenate(columns).tolist()

    def test_equal_weights_count_as_none_and_others_have_mean_one(self):
        assert ScoreTable.create(Q).weights is None
        assert ScoreTable.create(Q, np.full(4, 3.0)).weights is None
        assert ScoreTable.create(Q, np.array([1.0, 2, 3, 2])).weights == pytest.approx([0.5, 1, 1.5, 1])

    def test_rows_and_columns_without_variety_are_counted(self):
        table = ScoreTable(Q)
        assert table.is_binary
        assert table.constant_columns.tolist() == [False, True, True]
        assert (table.count_constant_rows(1), table.count_constant_rows(0)) == (1, 0)
        assert table.count_distinct_rows() == 3

    def test_shuffling_reorders_complete_tables_in_which_one_column_varies(self):
        assert not ScoreTable(Q).only_reorders
        assert ScoreTable(np.nan_to_num(Q)).only_reorders
        assert not ScoreTable(1 - np.eye(3)).only_reorders
