"""Which models stand, and which tasks have a say."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.ranking.task_rankings import select_rankable
from tracker.queries.task_matrix import TaskMatrix

NAN = float("nan")


def task_matrix(T: NDArray[np.float64]) -> TaskMatrix:
    return TaskMatrix(
        T=T,
        n_prompts=np.arange(T.size).reshape(T.shape),
        stderr=T / 10,
        tasks=tuple(f"t{i}" for i in range(T.shape[0])),
        models=tuple(f"m{j}" for j in range(T.shape[1])),
        run_ids=np.arange(10, 10 + T.shape[1]),
    )


class TestRankings:
    def test_a_field_without_gaps_is_kept_as_it_is_and_nothing_is_reported(self) -> None:
        scores = task_matrix(np.arange(6.0).reshape(2, 3))
        result = select_rankable(scores)
        assert result.warnings == ()
        assert result.scores.T.tolist() == scores.T.tolist()
        assert (result.scores.models, result.scores.tasks) == (scores.models, scores.tasks)
        assert result.scores.digest == scores.digest

    def test_models_and_tasks_without_a_score_are_left_out_of_everything_and_named(self) -> None:
        T = np.array([[1.0, NAN, 2.0, NAN], [NAN, NAN, NAN, NAN], [3.0, NAN, 4.0, 5.0]])
        result = select_rankable(task_matrix(T))
        assert result.warnings == (
            "Models without a score here are left out: m1.",
            "Tasks without a score are left out: t1.",
        )
        kept = result.scores
        assert (kept.models, kept.tasks, kept.run_ids.tolist()) == (("m0", "m2", "m3"), ("t0", "t2"), [10, 12, 13])
        assert kept.T.tolist()[1] == [3.0, 4.0, 5.0]
        assert kept.n_prompts.tolist() == [[0, 2, 3], [8, 10, 11]]
        assert kept.stderr[1].tolist() == pytest.approx([0.3, 0.4, 0.5])
        assert np.isnan(kept.T[0, 2])

    def test_a_long_list_of_names_breaks_off(self) -> None:
        T = np.full((1, 12), NAN)
        T[0, :4] = 1.0
        assert select_rankable(task_matrix(T)).warnings == (
            "Models without a score here are left out: m4, m5, m6, m7, m8 ….",
        )


class TestErrors:
    def test_too_few_models_are_refused(self) -> None:
        with pytest.raises(SelectionError) as caught:
            select_rankable(task_matrix(np.ones((4, 2))))
        assert str(caught.value) == (
            "Only 2 models have a score here; at least 3 are needed. Ingest results of more models, or select more."
        )
        assert select_rankable(task_matrix(np.ones((4, 2))), min_models=2).scores.n_models == 2

    def test_too_few_models_with_a_score_are_refused(self) -> None:
        with pytest.raises(SelectionError, match="Only 2 models have a score here; at least 3 are needed"):
            select_rankable(task_matrix(np.array([[1.0, NAN, 2.0]])))

    def test_nothing_at_all_is_refused(self) -> None:
        with pytest.raises(SelectionError, match="Only 0 models have a score here;"):
            select_rankable(task_matrix(np.ones((0, 0))))

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinite_scores_are_refused(self, value: float) -> None:
        with pytest.raises(SelectionError, match=r"1 scores are infinite\. Leave out their runs"):
            select_rankable(task_matrix(np.array([[1.0, value, 2.0, NAN]])))
