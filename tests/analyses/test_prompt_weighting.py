"""Does the ranking change when prompts do not all count the same: what is reported, of what, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import joblib
import numpy as np
import pytest
from performance_matrices import matrix

from analyses import prompt_weighting
from analyses.prompt_weighting import analyze
from analyses.prompt_weighting.summary import summarize
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.weights import PromptWeights
from tracker.recording.artifacts import build_artifacts, render_figure
from tracker.recording.finding import Report, Undefined

SCHEMES = ("medoids", "distance", "inverse-distance")


def simulated(n_prompts: int = 150, n_models: int = 7) -> PerformanceMatrix:
    """SIMULATED scores of 0 and 1 with some all-wrong prompts, in three tasks of different size."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1.5, (n_prompts, 1)) + np.linspace(-1, 1, n_models)
    Q = (rng.random((n_prompts, n_models)) < 1 / (1 + np.exp(-odds))).astype(np.float64)
    Q[:6] = 0
    tasks = np.repeat(["a", "b", "c"], [n_prompts // 2, n_prompts // 3, n_prompts - n_prompts // 2 - n_prompts // 3])
    return replace(matrix(Q), tasks=tasks)


def run_analysis(scores: PerformanceMatrix, weights: PromptWeights | None = None, **options: object) -> Report:
    return analyze(scores, weights, **{"max_clusters": 8, "n_restarts": 2, "n_seeds": 2} | options)


def stored(scores: PerformanceMatrix, values: list[float] | np.ndarray) -> PromptWeights:
    return PromptWeights(
        name="5:mine", finding_id=5, prompt_ids=scores.prompt_ids[: len(values)], values=np.array(values, dtype=float)
    )


@pytest.fixture(scope="module")
def report() -> Report:
    """On simulated scores."""
    return run_analysis(simulated())


class TestReport:
    def test_every_scheme_has_its_numbers_weights_ranking_and_rows(self, report: Report) -> None:
        every = (*SCHEMES, "task-equal")
        metrics = report.finding.metrics
        for name in every:
            for number in ("n_effective", "kendall_tau", "kendall_distance", "largest_rank_change", "largest_shift"):
                assert f"{name}.{number}" in report.finding.main_metrics
            weights = report.prompt_values[f"weight.{name}"].values
            assert weights.sum() == pytest.approx(150)
            assert metrics[f"{name}.n_effective"] == pytest.approx(150**2 / (weights**2).sum())
        assert len(report.finding.main_metrics) <= 50
        assert set(report.rankings) == {"equal", *every}
        schemes = report.tables["schemes"].to_pydict()
        assert len(schemes["scheme"]) == 5 * 7
        gained = np.array(schemes["equal_rank"]) - np.array(schemes["rank"])
        assert gained.tolist() == schemes["places_gained"]
        for name in every:
            observed = gained[[scheme == name for scheme in schemes["scheme"]]]
            assert metrics[f"{name}.largest_rank_change"] == np.abs(observed).max()

    def test_stored_weights_give_the_stored_ranking_again(self, report: Report) -> None:
        scores = simulated()
        for name in (*SCHEMES, "task-equal"):
            w = report.prompt_values[f"weight.{name}"]
            assert w.prompt_ids.tolist() == scores.prompt_ids.tolist()
            means = np.average(scores.Q, axis=0, weights=w.values)
            assert report.rankings[name].score == pytest.approx(means, abs=1e-12)
            assert (
                np.argsort(-means, kind="stable").tolist()
                == np.argsort(report.rankings[name].rank, kind="stable").tolist()
            )

    def test_all_wrong_prompts_are_a_stratum_with_one_representative(self, report: Report) -> None:
        metrics = report.finding.metrics
        labels = report.prompt_values["cluster"].values
        n_wrong = int((simulated().Q == 0).all(axis=1).sum())
        assert metrics["n_zero"] == n_wrong == (labels == -1).sum()
        for name in ("distance", "inverse-distance"):
            assert (report.prompt_values[f"weight.{name}"].values[labels == -1] == 1).all()
        assert (report.prompt_values["weight.medoids"].values[labels == -1] > 0).sum() == 1
        assert metrics["medoids.n_weighted"] == metrics["n_clusters"] + 1
        table = report.tables["representatives"].to_pydict()
        assert table["cluster"] == [*range(int(metrics["n_clusters"])), -1]
        assert sum(table["n_prompts"]) == 150
        assert (table["mean_distance"][-1], table["mean_score"][-1]) == (None, 0)

    def test_what_the_seed_does_is_shown(self) -> None:
        result = run_analysis(simulated(), n_seeds=3, seed=4)
        seeds = result.tables["seeds"].to_pydict()
        assert seeds["seed"] == [4, 4, 4, 5, 5, 5, 6, 6, 6]
        for name in SCHEMES:
            changes = [
                c for c, scheme in zip(seeds["largest_rank_change"], seeds["scheme"], strict=True) if scheme == name
            ]
            assert result.finding.metrics[f"seeds.{name}.rank_change_least"] == min(changes)
            assert result.finding.metrics[f"seeds.{name}.rank_change_most"] == max(changes)
        alone = run_analysis(simulated(), n_seeds=1, seed=5).tables["seeds"].to_pylist()
        assert alone == result.tables["seeds"].to_pylist()[3:6]
        models = result.rankings["equal"].models
        assert summarize(result.finding, models).evidence[-2].startswith("Over 3 seeds: ")

    def test_the_summary_states_the_largest_changes_and_that_few_representatives_support_no_ranking(
        self, report: Report
    ) -> None:
        summary, metrics = report.summary, report.finding.metrics
        schemes = ("distance", "inverse-distance", "task-equal")
        largest = max(metrics[f"{name}.largest_rank_change"] for name in schemes)
        assert f"change by up to {largest:g} place" in summary.headline
        assert report.rankings["equal"].models[int(np.argmin(report.rankings["equal"].rank))] in summary.headline
        assert summary.evidence[-1].startswith("Data: 150 prompts and 7 models.")
        assert any("so few prompts cannot support a ranking" in item for item in summary.evidence)
        assert summary.caveats[0].startswith("Descriptive: ")

    def test_the_headline_states_whether_the_leader_changes(self) -> None:
        Q = np.array([[1.0, 0.0, 0.0]] * 5 + [[0.0, 1.0, 0.0]] * 3 + [[0.0, 1.0, 1.0]])
        scores = replace(matrix(Q), tasks=np.repeat(["a", "b"], [8, 1]))
        headline = run_analysis(scores).summary.headline
        assert headline.startswith(f"{scores.models[0]} loses first place with other weights (")
        assert "task-equal" in headline
        same = replace(matrix(np.tile([[1.0, 0.0]], (6, 1))), tasks=np.repeat(["a", "b"], [4, 2]))
        assert "no scheme changes a rank" in run_analysis(same).summary.headline

    def test_any_number_of_workers_gives_the_same_bytes(self, report: Report) -> None:
        with joblib.parallel_config(n_jobs=2, backend="threading"):
            again = run_analysis(simulated())
        assert [a.content for a in build_artifacts(again)] == [a.content for a in build_artifacts(report)]
        for name, values in report.prompt_values.items():
            assert values.values.tobytes() == again.prompt_values[name].values.tobytes()

    def test_lower_scores_can_be_better(self, report: Report) -> None:
        turned = run_analysis(replace(simulated(), higher_is_better=False))
        assert turned.rankings["equal"].rank.tolist() == (8 - report.rankings["equal"].rank).tolist()
        assert (
            turned.finding.metrics["distance.largest_rank_change"]
            == report.finding.metrics["distance.largest_rank_change"]
        )

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("name", ["rank_changes", "shifts"])
    def test_pictures_are_drawn_for_two_models_and_for_sixty(self, name: str) -> None:
        rng = np.random.default_rng(1)
        for k in (2, 60):
            models = tuple(f"some-organization/some-model-{j}-with-a-long-name-instruct" for j in range(k))
            result = run_analysis(matrix(rng.random((40, k)), models), n_seeds=1)
            assert len(render_figure(result.figures[name])) > 5_000


class TestChosenWeights:
    def test_they_are_one_more_scheme_and_change_no_other(self, report: Report) -> None:
        scores = simulated()
        values = np.linspace(0, 3, 150)
        result = run_analysis(scores, stored(scores, values))
        assert result.rankings["given"].score == pytest.approx(np.average(scores.Q, axis=0, weights=values))
        assert "The scheme `given` uses the weights 5:mine." in result.warnings
        for name, number in report.finding.metrics.items():
            assert result.finding.metrics[name] == number
        assert {name for name in result.finding.metrics if name not in report.finding.metrics} == {
            name for name in result.finding.metrics if name.startswith("given.")
        }
        assert len(result.finding.main_metrics) <= 50

    def test_prompts_without_a_weight_count_nothing_in_that_scheme_and_are_warned_of(self) -> None:
        scores = simulated()
        result = run_analysis(scores, stored(scores, np.ones(100)))
        assert result.rankings["given"].score == pytest.approx(scores.Q[:100].mean(axis=0))
        assert result.finding.metrics["given.n_effective"] == 100
        assert "50 of 150 prompts have no weight in 5:mine. They get weight 0." in result.warnings

    def test_equal_ones_change_nothing(self) -> None:
        scores = simulated()
        result = run_analysis(scores, stored(scores, np.full(150, 0.1)))
        metrics = result.finding.metrics
        assert (metrics["given.largest_rank_change"], metrics["given.largest_shift"]) == (0, 0)
        assert result.rankings["given"].score.tobytes() == result.rankings["equal"].score.tobytes()

    def test_task_equal_is_not_a_scheme_twice(self, report: Report) -> None:
        result = run_analysis(simulated(), PromptWeights.task_equal())
        assert set(result.rankings) == set(report.rankings)
        assert "The weights task-equal add no scheme: they are always included." in result.warnings

    def test_weights_of_other_prompts_are_refused(self) -> None:
        scores = simulated()
        second = replace(stored(scores, [1.0, 2.0]), prompt_ids=np.array([1, 2]))
        with pytest.raises(SelectionError, match="5:mine give no weight to any selected prompt"):
            run_analysis(scores, second)


class TestDegenerate:
    def test_prompts_of_one_direction_are_one_cluster_in_which_all_weigh_the_same(self) -> None:
        result = run_analysis(matrix(np.array([[1.0, 0.0, 1.0]] * 5)))
        metrics = result.finding.metrics
        assert (metrics["n_clusters"], metrics["n_zero_distance"]) == (1, 5)
        assert metrics["silhouette"] == Undefined("fewer than two prompts differ in direction")
        for name in ("distance", "inverse-distance"):
            assert (result.prompt_values[f"weight.{name}"].values == 1).all()
            assert metrics[f"{name}.largest_rank_change"] == 0
        assert metrics["medoids.n_effective"] == 1

    def test_a_single_prompt_is_its_own_representative(self) -> None:
        metrics = run_analysis(matrix(np.array([[1.0, 0.0]]))).finding.metrics
        assert all(metrics[f"{name}.n_effective"] == 1 for name in SCHEMES)

    def test_models_that_are_all_equal_have_no_tau(self) -> None:
        result = run_analysis(matrix(np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])))
        assert result.finding.metrics["distance.kendall_tau"] == Undefined("a ranking ties all models")
        assert result.finding.metrics["distance.largest_rank_change"] == 0

    def test_equal_tasks_leave_task_equal_out(self) -> None:
        result = run_analysis(matrix(np.random.default_rng(0).random((20, 3))))
        assert "task-equal" not in result.rankings
        assert "The scheme `task-equal` is left out: tasks have equal sizes, or there is only one." in result.warnings

    def test_scores_of_both_signs_and_constant_models_are_valid(self) -> None:
        Q = np.random.default_rng(0).normal(size=(30, 4))
        Q[:, 2] = -1.0
        metrics = run_analysis(matrix(Q)).finding.metrics
        assert all(isinstance(number, float) and np.isfinite(number) for number in metrics.values())

    def test_reaching_the_largest_number_of_clusters_is_warned_of(self) -> None:
        result = run_analysis(matrix(np.repeat(np.eye(6), 4, axis=0)), max_clusters=5)
        assert any(warning.startswith("The number of clusters reaches max_clusters (5)") for warning in result.warnings)


class TestErrors:
    @pytest.mark.parametrize(
        ("Q", "options", "text"),
        [
            ([[1.0], [0.0]], {}, "A ranking needs at least 2 models, here: 1. Select more models."),
            ([[0.0, 0.0]], {}, "Every score is 0, so prompts cannot be clustered by direction."),
            ([[1.0, np.inf], [0.0, 1.0]], {}, "1 scores are infinite. Leave out their runs, or choose another metric."),
            ([[1.0, 0.0]], {"max_clusters": 1}, "max_clusters is 1; it must be at least 2."),
            ([[1.0, 0.0]], {"n_restarts": 0}, "n_restarts is 0; it must be at least 1."),
            ([[1.0, 0.0]], {"n_seeds": 0}, "n_seeds is 0; it must be at least 1."),
            ([[1.0, 0.0]], {"seed": -1}, "seed is -1; it must be at least 0."),
        ],
    )
    def test_what_cannot_be_answered_is_refused_with_what_to_do(
        self, Q: list[list[float]], options: dict[str, int], text: str
    ) -> None:
        with pytest.raises(SelectionError) as caught:
            run_analysis(matrix(np.array(Q)), **options)
        assert text in str(caught.value)


class TestRealData:
    def test_published_scores_keep_their_leader_under_weights_of_all_prompts(self, mmlu_pro: PerformanceMatrix) -> None:
        result = analyze(mmlu_pro, None, max_clusters=10, n_restarts=2, n_seeds=1)
        metrics = result.finding.metrics
        assert (metrics["n_prompts"], metrics["n_models"], metrics["n_zero"]) == (1200, 12, 98)
        assert metrics["distance.leader_changes"] == metrics["inverse-distance.leader_changes"] == 0
        assert metrics["distance.kendall_tau"] > 0.85
        assert 300 < metrics["distance.n_effective"] < 1200

    def test_the_rule_for_distance_zero_decides_inverse_distance_weights(self, mmlu_pro: PerformanceMatrix) -> None:
        sizes = {
            rule: analyze(mmlu_pro, None, max_clusters=10, n_restarts=1, n_seeds=1, zero_distance=rule).finding.metrics[
                "inverse-distance.n_effective"
            ]
            for rule in ("floor", "limit", "drop")
        }
        assert sizes["limit"] < sizes["drop"] < sizes["floor"]


def test_the_first_line_of_the_module_is_its_question() -> None:
    assert prompt_weighting.__doc__.startswith("Rank models under several weightings of the prompts.\n")
