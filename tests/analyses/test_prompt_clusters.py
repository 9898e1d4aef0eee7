from __future__ import annotations

import io
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from performance_matrices import matrix
from strategies import binary_tables, continuous_tables

from analyses.prompt_clusters import analyze
from analyses.prompt_clusters.summary import summarize
from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Report, Undefined

RNG = np.random.default_rng(8)
GROUP = np.repeat(np.arange(3), 30)
SOLVED_BY = np.repeat(np.eye(3), 4, axis=1)
GROUPED = (RNG.random((90, 12)) < 0.05 + 0.9 * SOLVED_BY[GROUP]).astype(float)
"""Three groups of prompts, each solved by four models of its own."""
EASINESS = RNG.normal(0, 1.5, (100, 1)) + RNG.normal(0, 1, (1, 8))
ONE_SCALE = (RNG.random((100, 8)) < 1 / (1 + np.exp(-EASINESS))).astype(float)
"""Nothing but easy and hard prompts, able and weak models."""
METHODS = st.sampled_from(["kmeans", "agglomerative", "hdbscan"])


def prompts_of(scores: PerformanceMatrix) -> PromptTexts:
    n = scores.n_prompts
    return PromptTexts(
        prompt_ids=scores.prompt_ids,
        tasks=tuple(scores.tasks.tolist()),
        names=tuple(f"item {i}" for i in range(n)),
        texts=tuple(None if i % 7 == 0 else f"What is {i}? " + "x" * 400 for i in range(n)),
        choices=(None,) * n,
        answers=(None,) * n,
        details=({},) * n,
    )


def run_analysis(
    scores: PerformanceMatrix | np.ndarray,
    weights: np.ndarray | None = None,
    made_by: str = "custom-weights",
    **options,
) -> Report:
    scores = matrix(scores) if isinstance(scores, np.ndarray) else scores
    chosen = None
    if weights is not None:
        chosen = PromptWeights(
            name="3:some", finding_id=3, prompt_ids=scores.prompt_ids, values=weights, made_by=made_by
        )
    options = {"n_permutations": 39, "max_clusters": 12} | options
    return analyze(scores, prompts_of(scores), chosen, **options)


def answer(table: np.ndarray, **options) -> Report | str:
    """The report, or why there is none."""
    try:
        return run_analysis(table, **options)
    except SelectionError as error:
        return str(error)


class TestFindings:
    def test_planted_groups_are_found(self):
        report = run_analysis(GROUPED)
        metrics = report.finding.metrics
        assert metrics["n_clusters"] == 3
        assert metrics["silhouette"] > metrics["silhouette.permuted_mean"] + 0.2
        assert metrics["silhouette.pvalue"] == 1 / 40
        labels = report.prompt_values["cluster"].values
        present = ~np.isnan(labels)
        pairs = set(zip(labels[present].tolist(), GROUP[present].tolist(), strict=True))
        assert len(pairs) <= 3 + 0.05 * len(GROUP)
        assert "clearer clusters than chance allows" in str(report.summary)

    def test_they_are_found_beyond_difficulty(self):
        assert run_analysis(GROUPED, null="margins").finding.metrics["silhouette.pvalue"] == 1 / 40

    def test_difficulty_alone_makes_clusters_of_shuffled_columns_only(self):
        by_columns, by_margins = (run_analysis(ONE_SCALE, null=null).finding for null in ("columns", "margins"))
        assert by_columns.metrics["silhouette.pvalue"] == 1 / 40
        assert "difficulty alone can form clusters" in str(summarize(by_columns))
        assert by_margins.metrics["silhouette.pvalue"] > 0.05
        assert "Abilities of models and difficulties of prompts alone" in str(summarize(by_margins))

    def test_the_real_table(self, mmlu_pro):
        result = run_analysis(mmlu_pro, max_clusters=50, n_permutations=19).finding
        metrics = result.metrics
        assert metrics["n_zero"] == 98
        assert metrics["n_distinct"] == 518
        assert metrics["silhouette"] == pytest.approx(0.30, abs=0.03)
        assert metrics["silhouette.permuted_mean"] == pytest.approx(0.18, abs=0.02)
        assert metrics["silhouette.pvalue"] == 1 / 20
        assert metrics["cap_10.silhouette"] < metrics["cap_50.silhouette"]

    def test_continuous_scores_of_the_real_table(self, alpaca_eval):
        result = run_analysis(alpaca_eval, n_permutations=19).finding
        assert result.metrics["n_clusters"] == 3
        assert result.metrics["silhouette.pvalue"] == 1 / 20
        assert "The best number is the same for maxima of" in str(summarize(result))

    def test_every_cap_equals_a_run_with_it(self):
        whole = run_analysis(ONE_SCALE, max_clusters=25)
        row = whole.tables["by_cap"].to_pylist()[0]
        small = run_analysis(ONE_SCALE, max_clusters=10).finding.metrics
        assert row["max_clusters"] == 10
        assert row["n_clusters"] == small["n_clusters"]
        assert row["silhouette"] == small["silhouette"]
        assert row["permuted_mean"] == small["silhouette.permuted_mean"]
        assert row["pvalue"] == small["silhouette.pvalue"] == whole.finding.metrics["cap_10.silhouette.pvalue"]

    def test_one_number_for_every_cap_is_in_the_summary(self):
        result = run_analysis(GROUPED, max_clusters=20).finding
        assert "The best number is the same for maxima of 10 and 20 clusters." in str(summarize(result))
        assert "best number" not in str(summarize(run_analysis(GROUPED, max_clusters=9).finding))

    def test_a_best_number_at_the_cap_is_in_the_summary(self):
        result = run_analysis(GROUPED, max_clusters=2).finding
        assert result.metrics["at_cap"] == 1
        assert "a larger one may be better" in str(summarize(result))
        assert run_analysis(GROUPED).finding.metrics["at_cap"] == 0

    def test_identical_rows_are_counted(self):
        table = np.repeat(np.eye(4), [5, 3, 1, 1], axis=0)
        result = run_analysis(np.concatenate([table, np.zeros((2, 4))]), max_clusters=4).finding
        metrics = result.metrics
        assert metrics["n_distinct"] == 4
        assert metrics["n_zero"] == 2
        assert metrics["n_clusters"] == 4
        assert metrics["n_identical_clusters"] == 2
        assert metrics["n_singletons"] == 2
        assert metrics["n_at_medoid"] == 10
        assert metrics["mean_cosine"] == 1
        assert metrics["silhouette"] == pytest.approx(0.8)
        assert "2 clusters have one direction only" in str(summarize(result))
        assert "2 prompts with score 0 from every model form a separate group" in str(summarize(result))


class TestMethods:
    @pytest.mark.parametrize("null", ["columns", "margins"])
    @pytest.mark.parametrize("method", ["agglomerative", "hdbscan"])
    def test_planted_groups_are_found(self, method, null):
        report = run_analysis(GROUPED, method=method, null=null)
        metrics = report.finding.metrics
        assert metrics["n_clusters"] == 3
        assert metrics["silhouette.pvalue"] == 1 / 40
        labels = report.prompt_values["cluster"].values
        n_together = np.array(
            [np.bincount(labels[(g == GROUP) & ~np.isnan(labels)].astype(int)).max() for g in range(3)]
        )
        assert n_together.sum() >= 0.9 * (~np.isnan(labels)).sum()
        assert "rompts form clearer clusters than chance allows" in report.summary.headline

    def test_noise_is_shown_as_such(self):
        lonely = (RNG.random((30, 12)) < 0.5).astype(float)
        table = np.concatenate([GROUPED, lonely, np.zeros((2, 12))])
        report = run_analysis(table, method="hdbscan", min_cluster_size=12)
        metrics, noise = report.finding.metrics, report.prompt_values["noise"].values
        assert metrics["n_noise"] == np.nansum(noise) > 0
        assert metrics["noise_share"] == metrics["n_noise"] / 120
        assert metrics["n_zero"] == np.isnan(noise).sum() == 2
        assert np.isnan(report.prompt_values["cluster"].values[noise == 1]).all()
        assert (report.prompt_values["silhouette"].values[noise == 1] == 0).all()
        rows = {row["group"]: row for row in report.tables["clusters"].to_pylist()}
        assert set(rows) == {"cluster", "noise", "score 0 from every model"}
        assert rows["noise"]["n_prompts"] == metrics["n_noise"]
        assert rows["noise"]["mean_score"] == pytest.approx(table[noise == 1].mean())
        assert set(report.tables) == {"clusters", "models_by_cluster"}
        assert "clusters of at least 12 prompts;" in str(report.summary)
        assert f"{int(metrics['n_noise'])} prompts ({metrics['noise_share']:.1%}) are noise" in str(report.summary)
        assert "any cluster" in str(report.summary) or "No permuted table has a cluster" in str(report.summary)
        assert not any(name.startswith(("cap_", "at_cap")) for name in metrics)

    def test_no_dense_group_is_the_verdict(self):
        report = run_analysis(ONE_SCALE, method="hdbscan", min_cluster_size=40)
        assert report.summary.headline == "HDBSCAN finds no cluster of at least 40 prompts."
        assert "All of the" in str(report.summary)
        assert report.finding.metrics["largest_cluster"] == 0
        assert set(report.figures) == {"clusters_and_noise", "null_distribution"}

    @pytest.mark.usefixtures("full_figures")
    def test_clusters_and_noise_of_draws_are_drawn_beside_the_observed(self):
        report = run_analysis(GROUPED, method="hdbscan")
        axes = report.figures["clusters_and_noise"]().axes[0]
        drawn, observed = (points.get_offsets() for points in axes.collections)
        assert len(drawn) == 39
        metrics = report.finding.metrics
        assert observed.tolist() == [[metrics["n_clusters"], metrics["noise_share"]]]


class TestTables:
    def test_clusters_add_up_to_the_table(self):
        scores = replace(matrix(ONE_SCALE), tasks=np.array(["even", "odd"] * 50))
        report = run_analysis(scores)
        rows = report.tables["clusters"].to_pylist()
        labels = report.prompt_values["cluster"].values
        assert sum(row["n_prompts"] for row in rows) == 100
        assert sum(row["weight_share"] for row in rows) == pytest.approx(1)
        for row in rows:
            members = np.isnan(labels) if row["cluster"] is None else labels == row["cluster"]
            assert row["n_prompts"] == members.sum()
            assert row["mean_score"] == pytest.approx(ONE_SCALE[members].mean())
            of_task = (scores.tasks[members] == row["most_frequent_task"]).mean()
            assert row["share_of_that_task"] == pytest.approx(of_task)
            assert of_task >= 0.5
            if row["cluster"] is not None:
                medoid = row["medoid_id"] - 100
                assert members[medoid]
                assert row["medoid"] == f"item {medoid}"
                assert row["medoid_text"] is None or len(row["medoid_text"]) == 300
                assert row["n_directions"] == np.unique(ONE_SCALE[members], axis=0).shape[0]

    def test_models_by_cluster_holds_the_mean_of_every_model(self):
        report = run_analysis(GROUPED)
        labels = report.prompt_values["cluster"].values
        for row in report.tables["models_by_cluster"].to_pylist():
            column = int(row["model"].split()[1])
            assert row["mean_score"] == pytest.approx(GROUPED[labels == row["cluster"], column].mean())

    def test_by_number_has_the_curve(self):
        report = run_analysis(GROUPED)
        rows = report.tables["by_number"].to_pylist()
        arrays = report.finding.arrays
        assert [row["n_clusters"] for row in rows] == list(range(2, 13))
        assert [row["silhouette"] for row in rows] == arrays["silhouette.by_number"].tolist()
        assert [row["difference"] for row in rows] == pytest.approx(
            arrays["silhouette.by_number"] - arrays["silhouette.permuted_by_number"].mean(axis=0)
        )


class TestDraws:
    def test_draws_of_one_direction_only_have_no_clusters(self):
        """Shuffled, three prompts of two models have one direction with a chance of one in three."""
        table = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        reports = [run_analysis(table, n_permutations=1, max_clusters=3, seed=seed) for seed in range(12)]
        without = [
            report for report in reports if isinstance(report.finding.metrics["silhouette.permuted_mean"], Undefined)
        ]
        assert 0 < len(without) < 12
        for report in without:
            assert "No cluster was found in" in str(report.summary)
            assert "nan" not in str(report.summary)


class TestWeights:
    def test_equal_weights_change_no_byte(self):
        first, second = run_analysis(ONE_SCALE), run_analysis(ONE_SCALE, np.full(100, 2.5))
        assert first.finding.metrics == second.finding.metrics
        assert first.prompt_values["silhouette"].values.tobytes() == second.prompt_values["silhouette"].values.tobytes()

    def test_weights_count_in_every_mean(self):
        weights = np.where(GROUP == 2, 5.0, 1.0)
        report = run_analysis(GROUPED, weights)
        metrics = report.finding.metrics
        samples = report.prompt_values["silhouette"].values
        present = ~np.isnan(samples)
        assert metrics["silhouette"] == pytest.approx(np.average(samples[present], weights=weights[present]))
        assert metrics["n_effective"] < 90
        for row in report.tables["clusters"].to_pylist():
            labels = report.prompt_values["cluster"].values
            members = np.isnan(labels) if row["cluster"] is None else labels == row["cluster"]
            assert row["weight_share"] == pytest.approx(weights[members].sum() / weights.sum())
            means = np.average(GROUPED[members].mean(axis=1), weights=weights[members])
            assert row["mean_score"] == pytest.approx(means)
        assert any("weighted by 3:some" in warning for warning in report.warnings)
        assert any("do not depend on these scores" in warning for warning in report.warnings)

    def test_weights_made_of_scores_have_no_pvalues_and_the_same_silhouettes(self):
        weights = np.where(GROUP == 2, 5.0, 1.0)
        tested, derived = (run_analysis(GROUPED, weights, by) for by in ("custom-weights", "prompt-weighting"))
        for name, value in tested.finding.metrics.items():
            if "pvalue" in name:
                assert derived.finding.metrics[name].reason.startswith("the weights are computed from scores"), name
            else:
                assert derived.finding.metrics[name] == value, name
        assert set(derived.tables["by_number"].column("pvalue").to_pylist()) == {None}
        assert "there is nothing to test (the weights are" in str(summarize(derived.finding))
        assert "p = " not in str(summarize(derived.finding))
        assert any(
            warning.startswith("There is no p-value: the weights 3:some are computed from scores")
            for warning in derived.warnings
        )


class TestLaws:
    @settings(max_examples=30)
    @given(st.one_of(binary_tables(), continuous_tables()), st.sampled_from(["columns", "margins"]), METHODS)
    def test_every_table_is_answered_or_refused_in_a_sentence(self, table, null, method):
        report = answer(table, n_permutations=3, max_clusters=4, min_cluster_size=3, null=null, method=method)
        if isinstance(report, str):
            assert report.endswith(".")
            return
        for name, value in report.finding.metrics.items():
            assert isinstance(value, Undefined) or np.isfinite(value), name
        assert str(report.summary).endswith(".")

    def test_the_seed_decides_everything(self):
        first, same, second = (run_analysis(ONE_SCALE, seed=seed).finding for seed in (1, 1, 2))
        assert first.arrays["silhouette.null"].tobytes() == same.arrays["silhouette.null"].tobytes()
        assert first.arrays["silhouette.null"].tobytes() != second.arrays["silhouette.null"].tobytes()

    def test_the_headline_is_short(self):
        assert len(run_analysis(ONE_SCALE, max_clusters=50).finding.main_metrics) <= 50

    def test_a_null_that_changes_nothing_gives_no_pvalue(self):
        nested = np.tri(6)[:, :5]
        result = run_analysis(nested, null="margins", max_clusters=4).finding
        assert isinstance(result.metrics["silhouette.pvalue"], Undefined)
        assert "nothing to test (no draw changed it)" in str(summarize(result))


class TestWarnings:
    def test_signs_constant_models_and_few_draws_are_mentioned(self):
        table = RNG.normal(size=(30, 4))
        table[:, 2] = 0.5
        warnings = " ".join(run_analysis(table, n_permutations=9).warnings)
        assert "Some scores are negative" in warnings
        assert "The same score on every prompt: model 2." in warnings
        assert "9 permutations cannot give" in warnings


class TestFigures:
    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize(
        ("table", "cap"), [(GROUPED, 12), (ONE_SCALE[:, :3], 2), (np.abs(RNG.normal(size=(40, 60))), 30)]
    )
    def test_pictures_are_drawn_with_labelled_axes(self, table, cap):
        names = tuple(f"organization/a-model-with-a-very-long-name-{j}" for j in range(table.shape[1]))
        report = run_analysis(matrix(table, names), max_clusters=cap, n_permutations=5)
        assert set(report.figures) == {"silhouette_by_number", "null_distribution", "models_by_cluster"}
        for draw in report.figures.values():
            figure = draw()
            written = io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert any(axes.get_xlabel() for axes in figure.axes)
            assert all(axes.get_ylabel() for axes in figure.axes)

    def test_the_curve_shows_the_chosen_number_and_its_two_sided_p(self):
        drawn = run_analysis(GROUPED).figures["silhouette_by_number"]()
        assert drawn.axes[0].texts[0].get_text().startswith("3 clusters, 0.")
        assert drawn.axes[0].texts[0].get_text().endswith("p = 0.05")

    def test_the_best_model_is_on_the_left_where_small_scores_are_better_too(self):
        scores = replace(matrix(np.abs(RNG.normal(size=(40, 5))) + np.arange(5)), higher_is_better=False)
        drawn = run_analysis(scores, n_permutations=2).figures["models_by_cluster"]()
        assert [label.get_text() for label in drawn.axes[0].get_xticklabels()] == [f"model {j}" for j in range(5)]


class TestErrors:
    @pytest.mark.parametrize(
        ("table", "options", "words"),
        [
            (GROUPED, {"null": "rows"}, "No null 'rows'"),
            (GROUPED, {"max_clusters": 1}, "at least 2"),
            (GROUPED, {"method": "spectral"}, "Known: kmeans, agglomerative, hdbscan"),
            (GROUPED, {"n_restarts": 0}, "at least 1"),
            (GROUPED, {"min_cluster_size": 1}, "at least 2"),
            (GROUPED, {"method": "hdbscan", "min_cluster_size": 91}, "90 prompts have .* a cluster of 91"),
            (GROUPED, {"method": "agglomerative", "weights": 1.0 + GROUP}, "Use `--method kmeans`"),
            (np.zeros((20_001, 2)), {"method": "agglomerative"}, "20,001 prompts are too many"),
            (GROUPED, {"n_permutations": 0}, "at least 1"),
            (GROUPED, {"seed": -1}, "at least 0"),
            (GROUPED[:, :1], {}, "Choose at least 2"),
            (GROUPED[:2], {}, "Choose more tasks"),
            (np.where(GROUPED == 1, np.inf, 0), {}, "scores are infinite"),
            (GROUPED * 0.5, {"null": "margins"}, "Use `columns`"),
            (np.zeros((5, 3)), {}, "Every score is 0"),
            (np.ones((5, 3)), {}, "nothing to cluster"),
        ],
    )
    def test_invalid_input_is_rejected_with_a_fix(self, table, options, words):
        with pytest.raises(SelectionError, match=words):
            run_analysis(table, **options)
