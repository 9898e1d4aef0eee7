"""Rankings under weights, beside the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.stats import kendalltau, rankdata

from analyses.numerics.weighting.reweighting import compare_reweighted

TABLES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(2, 6)), elements=st.sampled_from([0.0, 0.5, 1.0])
)


class TestAgainstReference:
    @given(TABLES, st.data())
    def test_everything_is_what_scipy_and_whole_numbers_give(self, Q: NDArray[np.float64], data: st.DataObject) -> None:
        counts = data.draw(hnp.arrays(np.int64, len(Q), elements=st.integers(0, 5)).filter(lambda c: c.any()))
        result = compare_reweighted(Q, counts.astype(np.float64))
        halves = (2 * Q).astype(np.int64)  # exact sums decide ties
        before, after = rankdata(-halves.sum(axis=0)), rankdata(-(counts[:, None] * halves).sum(axis=0))
        assert result.ranks.tolist() == after.tolist()
        assert result.changes.tolist() == (before - after).tolist()
        assert result.means == pytest.approx(np.average(Q, axis=0, weights=counts), abs=1e-12)
        assert result.shifts == pytest.approx(result.means - Q.mean(axis=0), abs=1e-12)
        assert result.kendall_tau == pytest.approx(kendalltau(before, after).statistic, nan_ok=True)
        assert result.largest_rank_change == np.abs(before - after).max()
        assert result.leader_changes == (
            not set(np.flatnonzero(before == before.min())) & set(np.flatnonzero(after == after.min()))
        )
        assert result.n_effective == pytest.approx(counts.sum() ** 2 / (counts**2).sum())
        assert result.n_weighted == (counts > 0).sum()


class TestLaws:
    @given(TABLES)
    def test_equal_weights_change_nothing_exactly(self, Q: NDArray[np.float64]) -> None:
        result = compare_reweighted(Q, np.full(len(Q), 0.1))
        assert not result.changes.any()
        assert not result.shifts.any()
        assert (result.kendall_distance, result.leader_changes, result.n_effective) == (0, False, len(Q))

    @given(TABLES, st.data())
    def test_turning_the_scale_round_turns_the_ranks_round(self, Q: NDArray[np.float64], data: st.DataObject) -> None:
        w = data.draw(hnp.arrays(np.float64, len(Q), elements=st.floats(0.1, 2)))
        up, down = compare_reweighted(Q, w), compare_reweighted(Q, w, higher_is_better=False)
        assert down.ranks.tolist() == (Q.shape[1] + 1 - up.ranks).tolist()
        assert down.changes.tolist() == (-up.changes).tolist()
        assert (down.kendall_tau, down.kendall_distance) == pytest.approx(
            (up.kendall_tau, up.kendall_distance), nan_ok=True
        )

    def test_one_prompt_alone_decides(self) -> None:
        result = compare_reweighted(
            np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.0]]), np.array([5.0, 0.0, 0.0])
        )
        assert result.ranks.tolist() == [1.5, 3, 1.5]
        assert result.changes.tolist() == [1.5, -1.5, 0]
        assert (result.n_effective, result.n_leaders, result.leader_changes) == (1, 2, False)
