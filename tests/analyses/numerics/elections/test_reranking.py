"""Models before a change of the benchmark and after it."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.numerics.elections.reranking import preserved_shares

NAN = float("nan")


def test_what_is_preserved_is_the_weight_in_units_of_the_raw_score_at_most_all() -> None:
    result = preserved_shares(np.array([1.0, 0.5, NAN, 0.01]), np.array([2.0, 0.25, 1.0, 4.0]))
    assert result[[0, 1, 3]] == pytest.approx([0.25, 1.0, 0.00125])
    assert np.isnan(result[2])


def test_where_no_task_has_a_weight_nothing_is_preserved_of_any() -> None:
    assert np.isnan(preserved_shares(np.array([NAN, NAN]), np.ones(2))).all()
