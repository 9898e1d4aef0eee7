"""Simulated baselines: what they are by construction, and how trials are averaged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tracker.errors import SelectionError
from tracker.plugins.parameters import Parameter
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.artifacts import decode_table, encode_table
from tracker.recording.declaration import Declaration
from tracker.recording.finding import Finding, Report, Summary, Undefined
from tracker.recording.record import make_metric_rows
from tracker.simulation.baselines import constant, random, split
from tracker.simulation.replications import TrialFindings, analyze_trials


def matrix(n_prompts: int = 41, n_models: int = 4) -> PerformanceMatrix:
    rng = np.random.default_rng(1)
    Q = rng.integers(0, 2, (n_prompts, n_models)).astype(float)
    Q[3, 1] = np.nan
    return PerformanceMatrix(
        Q=Q,
        prompt_ids=np.arange(n_prompts),
        tasks=np.array(["t"] * n_prompts),
        models=tuple(f"m{i}" for i in range(n_models)),
        run_ids=np.arange(n_models) + 5,
        benchmark="tiny",
        metric="accuracy",
        higher_is_better=False,
    )


class TestLaws:
    def test_constant_is_one_task_over_and_over(self) -> None:
        T = constant(7, 12, seed=0, trial=0).T
        assert T.shape == (7, 12)
        assert (T[0] == T).all()
        assert len(set(T[0].tolist())) == 12

    def test_random_scores_have_no_ties_within_a_task_and_spread_evenly(self) -> None:
        T = random(50, 1000, seed=0, trial=0).T
        assert all(len(set(row)) == 1000 for row in T.tolist())
        assert T.min() >= 0
        assert T.max() < 1
        assert np.abs(np.histogram(T, bins=10, range=(0, 1))[0] - 5000).max() < 5 * np.sqrt(4500)
        assert np.abs(np.corrcoef(T)[np.triu_indices(50, 1)]).max() < 5 / np.sqrt(1000)

    @pytest.mark.parametrize("draw", [constant, random])
    def test_scores_depend_on_seed_and_trial_alone(self, draw) -> None:
        T1 = draw(3, 5, seed=1, trial=2).T
        assert (T1 == draw(3, 5, seed=1, trial=2).T).all()
        assert not (T1 == draw(3, 5, seed=1, trial=3).T).any()
        assert not (T1 == draw(3, 5, seed=2, trial=2).T).any()

    @pytest.mark.parametrize("n_tasks", [1, 6, 41])
    def test_a_split_deals_every_prompt_once_into_tasks_of_equal_size(self, n_tasks: int) -> None:
        scores = matrix()
        dealt = split(scores, n_tasks, seed=0, trial=0)
        counts = dealt.n_prompts
        assert counts.sum(axis=0).tolist() == (~np.isnan(scores.Q)).sum(axis=0).tolist()
        assert np.ptp(counts[:, 0]) <= 1
        sums = np.nansum(dealt.T * counts, axis=0)
        assert sums == pytest.approx(np.nansum(scores.Q, axis=0))
        assert (dealt.models, dealt.higher_is_better, dealt.metric) == (scores.models, False, "accuracy")

    def test_trials_of_a_split_are_dealt_anew(self) -> None:
        scores = matrix()
        assert not np.array_equal(split(scores, 5, seed=0, trial=0).T, split(scores, 5, seed=0, trial=1).T)

    def test_a_model_without_a_score_in_a_part_has_none_there(self) -> None:
        dealt = split(matrix(), 41, seed=0, trial=0)
        assert np.isnan(dealt.T).sum() == 1
        assert ((dealt.n_prompts == 0) == np.isnan(dealt.T)).all()


@dataclass(frozen=True, kw_only=True)
class Spread(Finding):
    first: float
    gaps: bool

    @property
    def metrics(self):
        value = Undefined("a gap") if self.gaps else 1.0
        return {"diversity": self.first, "cardinal.tau": 0.25, "cardinal.tau_upper": self.first, "other": value}


def first_score(scores: TaskMatrix, *, time_limit: float, seed: int) -> Report:
    first = float(scores.T[0, 0])
    return Report(Spread(first=first, gaps=first > 0.5), summary=Summary(""))


DECLARATION = Declaration(
    name="social-choice",
    function=first_score,
    inputs={"scores": TaskMatrix},
    optional=frozenset(),
    parameters=(Parameter(name="time_limit", type=float, default=30.0), Parameter(name="seed", type=int, default=0)),
    help="",
    code_version="1",
)


def run_trials(n_trials: int, firsts: list[float]) -> tuple:
    def draw(*, trial: int) -> TaskMatrix:
        table = random(2, 3, seed=0, trial=trial)
        return replace(table, T=np.where(np.arange(6).reshape(2, 3) == 0, firsts[trial], table.T))

    return analyze_trials(
        DECLARATION,
        draw,
        simulated="random",
        description="Some scores",
        n_trials=n_trials,
        options={"time_limit": 5.0, "seed": 4},
    )


class TestTrials:
    def test_numbers_are_means_over_the_trials_with_the_spread_of_the_main_ones(self) -> None:
        firsts = [0.1, 0.4, 0.3]
        question, report = run_trials(3, firsts)
        mean_metrics = report.finding.metrics
        assert mean_metrics["diversity"] == pytest.approx(np.mean(firsts), rel=1e-15)
        assert mean_metrics["diversity.sd"] == pytest.approx(np.std(firsts, ddof=1))
        assert (mean_metrics["cardinal.tau"], mean_metrics["cardinal.tau.sd"], mean_metrics["n_trials"]) == (
            0.25,
            0.0,
            3.0,
        )
        assert "other.sd" not in mean_metrics
        assert question.parameters == {"simulated": "random", "n_trials": 3, "time_limit": 5.0, "seed": 4}
        assert (question.benchmark_id, question.selection, question.runs) == (None, None, {})

    def test_what_a_trial_does_not_give_has_no_mean(self) -> None:
        _, report = run_trials(3, [0.1, 0.9, 0.3])
        assert report.finding.metrics["other"] == Undefined("undefined in 1 of 3 trials: a gap")

    def test_one_trial_has_no_spread(self) -> None:
        _, report = run_trials(1, [0.1])
        assert report.finding.metrics["diversity.sd"] == Undefined("one trial has no spread")

    def test_the_table_has_every_number_of_every_trial(self) -> None:
        _, report = run_trials(2, [0.1, 0.9])
        rows = decode_table(encode_table(report.tables["trials"])).to_pylist()
        assert len(rows) == 8
        assert {"trial": 2, "name": "other", "value": None, "reason": "a gap"} in rows

    def test_the_summary_states_that_it_is_simulated_and_holds_intervals(self) -> None:
        _, report = run_trials(2, [0.5, 0.5])
        text = str(report.summary)
        assert text.startswith("Some scores, means over 2 trials: diversity 0.5000 (sd 0.0000).")
        assert "tau between 0.2500 (sd 0.0000) and 0.5000, MRC undefined" in text
        assert "5 s for each exact search" in text
        assert "Everything here is simulated." in report.summary.caveats

    def test_headlines_are_those_of_the_question_and_fit_in_mlflow(self) -> None:
        many = TrialFindings(description="", findings=(Spread(first=0.2, gaps=False),) * 2, search="no exact search")
        headline_names = [row.name for row in make_metric_rows(many) if row.is_main]
        assert headline_names == ["n_trials", "diversity", "diversity.sd", "cardinal.tau", "cardinal.tau.sd",
                         "cardinal.tau_upper", "other"]  # fmt: skip
        assert "Search: no exact search" in str(many.summarize())


class TestErrors:
    def test_more_tasks_than_prompts_are_refused(self) -> None:
        with pytest.raises(SelectionError, match=r"tiny has 41 prompts, too few for 42 tasks\. Ask for fewer tasks"):
            split(matrix(), 42, seed=0, trial=0)
