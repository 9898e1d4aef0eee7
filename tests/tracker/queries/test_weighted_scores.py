"""Who votes, and how much each vote counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.weights import PromptWeights
from tracker.statistics.standard_errors import effective_sample_size, scale_to_mean_one

NAN = float("nan")


def matrix(Q: NDArray[np.float64], tasks: list[str] | None = None) -> PerformanceMatrix:
    return PerformanceMatrix(
        Q=Q,
        prompt_ids=np.arange(10, 10 + len(Q)),
        tasks=np.array(tasks or [""] * len(Q), dtype=np.str_),
        models=tuple(f"m{j}" for j in range(Q.shape[1])),
        run_ids=np.arange(Q.shape[1]),
    )


def weights(*values: float) -> PromptWeights:
    """Weights of the first prompts of `matrix`; NaN = none."""
    passed = np.array(values)
    has = ~np.isnan(passed)
    return PromptWeights(name="1:w", finding_id=1, prompt_ids=10 + np.flatnonzero(has), values=passed[has])


class TestWeightedScores:
    def test_without_weights_every_prompt_counts_exactly_one(self) -> None:
        Q = np.array([[0.0, NAN], [1.0, 1.0]])
        result = select_weighted(matrix(Q))
        assert result.scores.Q is Q
        assert result.weights.tolist() == [1.0, 1.0]
        assert (result.is_weighted, result.n_effective, result.warnings, result.weights_name) == (False, 2, (), "")

    def test_who_has_no_weight_or_none_above_zero_is_left_out_and_reported(self) -> None:
        Q = np.array([[0.0], [1.0], [2.0], [NAN]])
        result = select_weighted(matrix(Q), weights(3.0, 0.0, NAN, 1.0))
        assert result.scores.prompt_ids.tolist() == [10, 13]
        assert result.weights.tolist() == [1.5, 0.5]
        assert result.n_effective == pytest.approx(1.6)
        assert result.warnings == (
            "Prompts are weighted by 1:w.",
            "1 of 4 prompts have no weight in 1:w and are left out.",
            "1 of 4 prompts have weight 0 and are left out.",
        )

    def test_who_weighs_next_to_nothing_beside_the_largest_is_left_out_and_reported(self) -> None:
        result = select_weighted(matrix(np.ones((4, 1))), weights(1e308, 1e-320, 1e307, NAN))
        assert result.scores.prompt_ids.tolist() == [10, 12]
        assert (result.weights > 0).all()
        assert result.warnings[-1] == "1 of 4 prompts have weight 0, or near 0 beside the largest, and are left out."
        kept = select_weighted(matrix(np.ones((2, 1))), weights(1.0, 1e-99))
        assert kept.scores.n_prompts == 2

    @pytest.mark.parametrize("values", [(0.0, 0.0), (NAN, NAN, NAN, 4.0), (0.0, NAN)])
    def test_weights_of_nobody_here_are_refused(self, values: tuple[float, ...]) -> None:
        with pytest.raises(SelectionError) as caught:
            select_weighted(matrix(np.ones((2, 1))), weights(*values))
        assert str(caught.value) == (
            "The weights 1:w give no weight to any selected prompt. Select the tasks for which they were computed."
        )

    def test_weights_that_are_all_equal_are_no_weights(self) -> None:
        result = select_weighted(matrix(np.ones((3, 1))), weights(0.1, 0.1, 0.1))
        assert result.weights.tolist() == [1.0, 1.0, 1.0]
        assert not result.is_weighted

    def test_task_equal_counts_the_tasks_among_the_prompts_chosen(self) -> None:
        result = select_weighted(matrix(np.ones((4, 1)), ["a", "a", "a", "b"]), PromptWeights.task_equal())
        assert result.weights.tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])
        assert result.n_effective == pytest.approx(3)


POSITIVE = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(1e-3, 1e3))


class TestLaws:
    @given(POSITIVE, st.integers(-1000, 1000))
    def test_a_unit_that_is_a_power_of_two_changes_no_byte(self, w: NDArray[np.float64], power: int) -> None:
        assert scale_to_mean_one(np.ldexp(w, power)).tobytes() == scale_to_mean_one(w).tobytes()

    @given(POSITIVE)
    def test_the_mean_is_one_and_proportions_stay(self, w: NDArray[np.float64]) -> None:
        result = scale_to_mean_one(w)
        assert result.mean() == pytest.approx(1, rel=1e-12)
        assert result * w[0] == pytest.approx(w * result[0], rel=1e-12)

    @given(POSITIVE)
    def test_the_effective_number_lies_between_one_and_how_many_there_are(self, w: NDArray[np.float64]) -> None:
        assert 1 - 1e-12 <= effective_sample_size(w) <= len(w) * (1 + 1e-12)

    def test_the_largest_numbers_do_not_overflow(self) -> None:
        assert scale_to_mean_one(np.array([1.7e308, 1.7e308, 0.0])).tolist() == [1.5, 1.5, 0.0]
        assert effective_sample_size(np.array([1.7e308, 1.7e308, 0.0])) == 2
