"""Weights of prompts: how they are named, loaded, told apart, refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores, add_weights
from hypothesis import given
from hypothesis import strategies as st

from tracker.database import transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.weighted_scores import select_weighted
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PromptWeights

NAN = float("nan")


def load(store: sa.Engine, output: str, benchmark: str = "b") -> PromptWeights:
    with transaction(store, write=False) as session:
        return PromptWeights.load(session, Selection(benchmark=benchmark, weights=output))


def table(store: sa.Engine) -> PerformanceMatrix:
    with transaction(store, write=False) as session:
        return load_performance_matrix(session, "b")


@pytest.fixture
def scored(store: sa.Engine) -> sa.Engine:
    """Four prompts in two tasks, on each engine in turn."""
    add_scores(store, np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), tasks=["x", "y", "x", "x"])
    return store


class TestLoading:
    def test_stored_weights_come_with_their_prompts_in_ascending_order(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [0.5, NAN, 0.0, 2.0])
        result = load(scored, str(key))
        assert (result.name, result.finding_id) == (f"{key}:custom", key)
        assert result.values.tolist() == [0.5, 0.0, 2.0]
        assert (np.diff(result.prompt_ids) > 0).all()
        assert (result.prompt_ids.dtype, result.values.dtype) == (np.int64, np.float64)
        scores = table(scored)
        assert scores.tasks.tolist() == ["x", "x", "x", "y"]
        assert result.align(scores.prompt_ids, scores.tasks).tolist() == pytest.approx(
            [0.5, 0.0, 2.0, NAN], nan_ok=True
        )

    def test_of_several_schemes_the_named_one_is_loaded(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [1.0, 2.0, 3.0, 4.0], scheme="near")
        add_weights(scored, [4.0, 3.0, 2.0, 1.0], scheme="far", key=key)
        assert load(scored, f"{key}:near").values.tolist() == [1, 2, 3, 4]
        assert load(scored, f"{key}:far").values.tolist() == [4, 3, 2, 1]

    def test_task_equal_gives_every_task_the_same_total(self, scored: sa.Engine) -> None:
        result, scores = load(scored, "task-equal"), table(scored)
        assert (result.finding_id, result.prompt_ids.size) == (None, 0)
        weights = result.align(scores.prompt_ids, scores.tasks)
        assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
        assert weights.sum() == pytest.approx(1)

    @given(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=30))
    def test_task_equal_gives_the_same_total_whatever_the_tasks(self, tasks: list[str]) -> None:
        names = np.array(tasks, dtype=np.str_)
        weights = PromptWeights.task_equal().align(np.arange(len(tasks)), names)
        totals = [weights[names == name].sum() for name in set(tasks)]
        assert totals == pytest.approx([1 / len(totals)] * len(totals))

    def test_a_prompt_beyond_the_last_stored_one_has_no_weight(self) -> None:
        stored = PromptWeights(name="1:w", finding_id=1, prompt_ids=np.array([3, 7]), values=np.array([1.0, 2.0]))
        assert np.isnan(stored.align(np.array([1, 5, 9]), np.array(["", "", ""]))).all()
        assert stored.align(np.array([7, 3]), np.array(["", ""])).tolist() == [2, 1]


class TestOrigin:
    def test_an_analysis_makes_weights_of_scores_but_for_equal_tasks(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [1.0, 2.0], scheme="distance", made_by="prompt-weighting")
        add_weights(scored, [1.0, 3.0], scheme="task-equal", key=key)
        assert load(scored, f"{key}:distance").made_by == "prompt-weighting"
        assert load(scored, f"{key}:distance").are_made_of_scores
        assert not load(scored, f"{key}:task-equal").are_made_of_scores

    def test_weights_from_a_file_and_rules_are_not(self, scored: sa.Engine) -> None:
        assert not load(scored, str(add_weights(scored, [1.0, 2.0]))).are_made_of_scores
        assert not load(scored, "task-equal").are_made_of_scores


class TestStaleness:
    def test_weights_made_of_scores_that_changed_since_report_so(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [1.0, 2.0, 3.0, 4.0])
        assert load(scored, str(key)).stale == ""
        with transaction(scored) as session:
            [run, *_] = session.scalars(sa.select(tables.run.c.id)).all()
            seen = {"finding_id": key, "run_id": run, "role": "scores", "checksum": "of other scores"}
            session.execute(sa.insert(tables.finding_run).values(**seen))
        result = load(scored, str(key))
        assert result.stale == f"changed since: run {run}"
        assert any("are stale" in warning for warning in select_weighted(table(scored), result).warnings)


class TestDigest:
    def test_equal_weights_of_two_findings_have_one_digest(self, scored: sa.Engine) -> None:
        first, second = (add_weights(scored, [1.0, 2.0, NAN, 4.0]) for _ in range(2))
        assert first != second
        assert load(scored, str(first)).digest == load(scored, str(second)).digest

    def test_it_changes_with_a_weight_a_prompt_the_scheme_and_the_origin(self) -> None:
        item = PromptWeights(name="1:w", finding_id=1, prompt_ids=np.array([3, 7]), values=np.array([1.0, 2.0]))
        rest = [
            replace(item, values=np.array([1.0, 2.5])),
            replace(item, prompt_ids=np.array([3, 8])),
            replace(item, name="1:v"),
            replace(item, made_by="prompt-weighting"),
            PromptWeights.task_equal(),
        ]
        assert len({item.digest, *(second.digest for second in rest)}) == 6


class TestErrors:
    @pytest.mark.parametrize("output", ["near", "task_equal", ":near", "-1", "", "1.5", "9" * 20])
    def test_what_is_no_number_of_a_finding_is_answered_with_what_can_be_reported(
        self, scored: sa.Engine, output: str
    ) -> None:
        with pytest.raises(SelectionError) as caught:
            load(scored, output)
        assert str(caught.value) == (
            f"No weights {output!r}. Use the key of a finding with weights, such as 12 or 12:distance "
            "(list them with `suffrage findings`), or task-equal."
        )

    def test_a_number_without_a_finding_is_answered_with_those_that_weigh_prompts(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [1.0])
        with pytest.raises(NotFoundError) as caught:
            load(scored, "77")
        assert str(caught.value) == f"No finding '77' with weights. Known: {key}. List them with `suffrage findings`."

    def test_weights_of_another_benchmark_are_refused(self, scored: sa.Engine) -> None:
        add_scores(scored, np.array([[1.0]]), benchmark="other")
        key = add_weights(scored, [1.0], benchmark="other")
        with pytest.raises(SelectionError) as caught:
            load(scored, str(key))
        assert str(caught.value) == f"Finding {key} is not about b. Choose weights of this benchmark."

    def test_a_finding_that_weighs_nothing_is_refused_with_one_that_does(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [NAN])
        with pytest.raises(SelectionError) as caught:
            load(scored, str(key))
        assert str(caught.value) == (
            f"Finding {key} (custom-weights) has no weights. Compute some: suffrage analyze prompt-weighting …"
        )

    def test_an_unknown_scheme_is_answered_with_the_known_ones(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [1.0], scheme="near")
        with pytest.raises(NotFoundError) as caught:
            load(scored, f"{key}:nearer")
        assert str(caught.value) == f"No scheme 'nearer' in finding {key}. Did you mean 'near'?"

    def test_several_schemes_must_be_distinguished(self, scored: sa.Engine) -> None:
        key = add_weights(scored, [1.0], scheme="near")
        add_weights(scored, [1.0], scheme="far", key=key)
        with pytest.raises(SelectionError) as caught:
            load(scored, str(key))
        assert str(caught.value) == f"Finding {key} has several schemes. Choose one: {key}:far, {key}:near."
