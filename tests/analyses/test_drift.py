"""Whether scores drifted from run to run: what is found, said, listed and drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from analyses.drift import analyze
from analyses.drift.summary import find_changed_settings
from analyses.numerics.comparing.run_steps import compare_runs
from tracker.errors import SelectionError
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.ranking.history import HistoryRun, RunHistory
from tracker.recording.artifacts import render_figure
from tracker.recording.finding import Report
from tracker.statistics.grouping import group_rows

N = 200
TASKS = np.array([f"t{i % 20}" for i in range(N)])
LEVEL = (np.arange(N) % 10 < 6).astype(float)


def run(key: int, model: str = "org/a", *, day: int | None = None, **settings: object) -> HistoryRun:
    when = datetime(2026, 1, day or key, tzinfo=UTC)
    return HistoryRun(id=key, model=model, label="", when=when, is_dated=day is not None, settings=settings)


def requested(Q: NDArray[np.float64], runs: list[HistoryRun], field: str = "task", **options: object) -> Report:
    ids = np.arange(1, len(Q) + 1)
    scores = PerformanceMatrix(
        Q=Q,
        prompt_ids=ids,
        tasks=TASKS[: len(Q)],
        models=tuple(f"{run.model} (run {run.id})" for run in runs),
        run_ids=np.array([run.id for run in runs]),
        benchmark="b",
        metric="accuracy",
    )
    prompts = PromptTexts(
        prompt_ids=ids,
        tasks=tuple(scores.tasks.tolist()),
        names=tuple(f"q{key}" for key in ids),
        texts=tuple(f"Question {key}?" for key in ids),
        choices=(None,) * len(ids),
        answers=(None,) * len(ids),
        details=({},) * len(ids),
    )
    names = scores.tasks if field == "task" else np.full(len(ids), "")
    clusters = Clusters(field=field, prompt_ids=ids, names=names)
    return analyze(RunHistory(scores=scores, runs=tuple(runs)), prompts, clusters, **options)


def three_runs() -> NDArray[np.float64]:
    """The second run as the first with a few flips either way, the third clearly better."""
    second = LEVEL.copy()
    second[[0, 50]], second[[9, 59]] = 0.0, 1.0
    third = second.copy()
    third[np.flatnonzero(third == 0)[:40]] = 1.0
    return np.column_stack([LEVEL, second, third])


class TestFinding:
    def test_noise_is_reported_from_a_leap(self) -> None:
        report = requested(three_runs(), [run(1), run(4), run(9)])
        numbers = report.finding.metrics
        assert (numbers["n_steps"], numbers["n_drifted"], numbers["n_rose"], numbers["n_fell"]) == (2, 1, 1, 0)
        assert numbers["largest"] == pytest.approx(0.2)
        assert numbers["changed.mean"] == pytest.approx((4 + 40) / 2 / N)
        assert (
            report.summary.headline
            == "org/a rose by 0.2000 from run 4 to 9; 1 of 2 changes is significant at 0.05 (Holm)."
        )
        assert "org/a, run 4 to 9: +0.2000 on 200 shared prompts" in str(report.summary)
        assert "40 better, 0 worse" in str(report.summary)

    def test_every_run_has_a_row_and_every_changed_prompt_another(self) -> None:
        report = requested(three_runs(), [run(1), run(4), run(9)])
        rows = report.tables["runs"].to_pylist()
        assert [(row["run"], row["since"]) for row in rows] == [(1, None), (4, 1), (9, 4)]
        assert rows[0]["change"] is None
        assert rows[2]["n_better"] == 40
        changed = report.tables["changed"].to_pylist()
        assert len(changed) == 44
        first = [row for row in changed if row["run"] == 4]
        assert {row["prompt"]: (row["before"], row["after"]) for row in first} == {
            "q1": (1.0, 0.0),
            "q51": (1.0, 0.0),
            "q10": (0.0, 1.0),
            "q60": (0.0, 1.0),
        }
        assert first[0]["text"] == f"Question {first[0]['prompt'][1:]}?"

    def test_models_with_one_run_are_listed_and_not_compared(self) -> None:
        report = requested(three_runs(), [run(1), run(4), run(5, "org/b")])
        assert [row["model"] for row in report.tables["runs"].to_pylist()] == ["org/a", "org/a", "org/b"]
        assert report.finding.metrics["n_steps"] == 1
        assert "between its two runs, not significantly (p = " in report.summary.headline

    def test_without_two_runs_of_any_model_the_question_is_refused(self) -> None:
        with pytest.raises(SelectionError, match="No model has two runs on b"):
            requested(three_runs()[:, :2], [run(1), run(2, "org/b")])

    def test_a_level_that_is_none_is_refused(self) -> None:
        with pytest.raises(SelectionError, match="level is 95"):
            requested(three_runs()[:, :2], [run(1), run(2)], level=95.0)


class TestExtremeScores:
    @pytest.mark.parametrize("size", [1e300, 1e-290])
    def test_scores_of_any_size_have_the_same_tests(self, size: float) -> None:
        Q = three_runs() + np.linspace(0, 1, 3 * N).reshape(N, 3)
        runs = [run(1), run(4), run(9)]
        plain, scaled = requested(Q, runs), requested(size * Q, runs)
        for step, same in zip(plain.tables["runs"].to_pylist()[1:], scaled.tables["runs"].to_pylist()[1:], strict=True):
            assert same["pvalue"] == pytest.approx(step["pvalue"], rel=1e-6)
            assert [same[name] for name in ("change", "stderr", "low", "high", "mean")] == pytest.approx(
                [size * step[name] for name in ("change", "stderr", "low", "high", "mean")], rel=1e-6
            )
        assert render_figure(scaled.figures["history"])


class TestMissingScores:
    @pytest.mark.parametrize("higher_is_better", [True, False])
    def test_a_significant_change_holds_in_every_completion(self, higher_is_better: bool) -> None:
        rng = np.random.default_rng(8)
        bounds = (0.0, 1.0) if higher_is_better else (1.0, 0.0)
        groups = group_rows(np.full(40, ""))
        n_significant = 0
        for gain in (0.1, 0.4, 0.55, 0.7):
            Q = np.column_stack([rng.random(40) < 0.3, rng.random(40) < 0.3 + gain]).astype(float)
            Q[:2, 0], Q[38:, 1] = np.nan, np.nan
            options = {"higher_is_better": higher_is_better}
            [step] = compare_runs(Q, [[0, 1]], groups, bounds=bounds, **options)
            [shared] = compare_runs(Q, [[0, 1]], groups, **options)
            assert (step.change, step.n) == (shared.change, shared.n)
            assert (shared.least, shared.most) == (shared.change, shared.change)
            missing, changes = np.isnan(Q), []
            for values in product((0.0, 1.0), repeat=4):
                whole = Q.copy()
                whole[missing] = values
                [completed] = compare_runs(whole, [[0, 1]], groups, **options)
                changes.append(completed.change)
                assert step.low <= completed.low + 1e-12
                assert step.high >= completed.high - 1e-12
                assert step.pvalue > 0.05 or completed.pvalue <= step.pvalue + 1e-12
            assert (step.least, step.most) == pytest.approx((min(changes), max(changes)))
            n_significant += step.pvalue <= 0.05
        assert 0 < n_significant < 4

    def test_runs_with_few_of_their_models_prompts_are_left_out_or_refused(self) -> None:
        Q = three_runs()
        Q[:20, 1], Q[100:, 2] = np.nan, np.nan
        scores = PerformanceMatrix(
            Q=Q,
            prompt_ids=np.arange(N),
            tasks=TASKS,
            models=("a 1", "a 2", "a 3"),
            run_ids=np.array([1, 2, 3]),
            missing="bounds",
        )
        history = RunHistory(scores=scores, runs=(run(1), run(2), run(3)))
        assert history.with_coverage(0.0) is history
        kept = history.with_coverage(0.8)
        assert [kept_run.id for kept_run in kept.runs] == [1, 2]
        assert kept.missing_warnings == (
            "run 3 of org/a is left out: 100 of 200 prompts are missing (--min-coverage).",
        )
        with pytest.raises(SelectionError, match="run 2 of org/a has 180 of the 200 prompts"):
            replace(history, scores=replace(scores, missing="fail")).with_coverage(0.0)

    def test_a_replacement_stands_for_what_one_of_two_runs_lacks(self) -> None:
        Q = np.array([[1.0, np.nan, np.nan], [1.0, 1.0, np.nan], [np.nan, 1.0, np.nan], [np.nan, np.nan, 1.0]])
        [step] = compare_runs(Q, [[0, 1]], group_rows(np.full(4, "")), replacement=0.0)
        assert (step.n, step.change, step.n_better, step.n_worse) == (3, 0.0, 1, 1)


class TestWords:
    def test_settings_that_changed_are_named(self) -> None:
        before = run(1, temperature=0.0, gen={"top_p": 1, "stop": "x"}, only_here=1)
        after = run(2, temperature=0.7, gen={"top_p": 2, "stop": "x"}, seed=4)
        assert find_changed_settings(before.settings, after.settings) == ["gen.top_p", "temperature"]
        warnings = " ".join(requested(three_runs()[:, :2], [before, after]).warnings)
        assert "of org/a: gen.top_p, temperature." in warnings

    def test_what_an_evaluation_keeps_account_of_is_no_setting(self) -> None:
        before = run(
            1, identity="a" * 64, usage={"tokens_read": 1}, command="x", left_out={"long": 1}, deep={"usage": 1}
        )
        after = run(
            2, identity="b" * 64, usage={"tokens_read": 2}, command="y", left_out={"long": 2}, deep={"usage": 2}
        )
        assert find_changed_settings(before.settings, after.settings) == ["deep.usage"]

    def test_other_prompts_in_the_two_runs_are_reported(self) -> None:
        Q = three_runs()[:, :2]
        Q[:7, 1] = np.nan
        warnings = " ".join(requested(Q, [run(1), run(2)]).warnings)
        assert "7 are only in run 1, 0 only in run 2" in warnings

    def test_runs_of_unknown_date_are_reported_to_be_in_the_order_of_the_store(self) -> None:
        output = "in the order of import"
        assert output in " ".join(requested(three_runs()[:, :2], [run(1), run(2)]).warnings)
        assert output not in " ".join(requested(three_runs()[:, :2], [run(1, day=3), run(2, day=9)]).warnings)

    def test_equal_runs_are_reported_to_be_equal(self) -> None:
        Q = np.column_stack([LEVEL, LEVEL])
        assert "the same score on every shared prompt in both runs" in str(requested(Q, [run(1), run(2)]).summary)

    def test_means_of_runs_that_were_requested_different_prompts_are_drawn_as_such(self) -> None:
        Q = three_runs()
        runs = [run(1), run(4), run(9)]
        assert requested(Q, runs).figures["history"]().axes[0].get_ylabel() == "mean accuracy"
        Q[:7, 1] = np.nan
        assert (
            requested(Q, runs).figures["history"]().axes[0].get_ylabel() == "mean accuracy over the run's own prompts"
        )

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("day", [None, 3])
    def test_the_picture_is_drawn_over_time_and_over_order(self, day: int | None) -> None:
        runs = [run(1, day=day and 1), run(4, day=day), run(9, day=day and 20)]
        picture = render_figure(requested(three_runs(), runs).figures["history"], "png")
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 5000


def test_steps_without_a_test_are_not_counted_as_tested() -> None:
    Q = np.full((30, 3), np.nan)
    for number in range(3):
        Q[10 * number : 10 * number + 10, number] = number % 2
    runs = [run(key) for key in (1, 2, 3)]
    headline = requested(Q, runs).summary.headline
    assert "None of the 2 changes" in headline
    assert "can be tested" in headline
