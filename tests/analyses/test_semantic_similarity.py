from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from performance_matrices import matrix
from strategies import binary_tables, continuous_tables

from analyses.semantic_similarity import analyze
from analyses.semantic_similarity.summary import summarize
from tracker.errors import SelectionError
from tracker.queries.embeddings import Embeddings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Undefined

RNG = np.random.default_rng(12)
N_TOPICS, N, K = 6, 90, 9
TOPIC = RNG.integers(0, N_TOPICS, N)
"""Models are good at some topics, and vectors say which topic a prompt is about."""
ODDS = RNG.normal(0, 2.0, (N_TOPICS, K))[TOPIC] + 0.3
TABLE = (RNG.random((N, K)) < 1 / (1 + np.exp(-ODDS))).astype(float)
TABLE[~TABLE.any(axis=1), 0] = 1
TABLE[7] = 0
VECTORS = np.eye(N_TOPICS, 16)[TOPIC] + RNG.normal(0, 0.2, (N, 16))
UNRELATED = RNG.normal(0, 1, (N, 16))


def embeddings(vectors: np.ndarray, without: int = 0) -> Embeddings:
    """Vectors of the first prompts of a matrix."""
    n = len(vectors) - without
    return Embeddings(
        E=vectors[:n].astype(np.float32),
        prompt_ids=np.arange(100, 100 + n),
        encoder_id=1,
        encoder="planted@1:question",
        benchmark="b",
    )


def prompts(n: int) -> PromptTexts:
    """What the prompts say; the second one's text is not known."""
    return PromptTexts(
        prompt_ids=np.arange(100, 100 + n),
        tasks=("t",) * n,
        names=tuple(f"p{i}" for i in range(n)),
        texts=tuple(None if i == 1 else f"text {i}" for i in range(n)),
        choices=(None,) * n,
        answers=(None,) * n,
        details=({},) * n,
    )


def weights(values: np.ndarray, made_by: str) -> PromptWeights:
    """Stored weights."""
    ids = np.arange(100, 100 + len(values))
    return PromptWeights(name="3:any", finding_id=3, prompt_ids=ids, values=values, made_by=made_by)


def run_analysis(
    table: np.ndarray, vectors: np.ndarray, chosen: np.ndarray | None = None, made_by: str = "custom-weights", **options
):
    """The report on a table."""
    weighing = None if chosen is None else weights(chosen, made_by)
    return analyze(
        matrix(table), embeddings(vectors), prompts(len(table)), weighing, **{"n_permutations": 99} | options
    )


@pytest.fixture(scope="module")
def related():
    return run_analysis(TABLE, VECTORS)


class TestPlantedTruth:
    @pytest.mark.parametrize(
        "options", [{"null": "rows"}, {"similarity": "hamming", "null": "rows"}, {"null": "columns"}]
    )
    def test_models_that_fail_by_topic_are_found_out(self, options):
        result = run_analysis(TABLE, VECTORS, **options).finding
        for name in ("slope.mean", "n_discoveries", "ks_slope", "max_t"):
            assert result.metrics[f"{name}.pvalue"] == pytest.approx(0.01), name
        assert result.metrics["n_discoveries"] > 30
        assert result.metrics["n_familywise"] > 10
        assert "Models perform more similarly on prompts closer in meaning" in summarize(result).headline

    @pytest.mark.parametrize("similarity", ["cosine", "hamming"])
    def test_they_are_found_beyond_difficulty_and_length(self, similarity):
        report = run_analysis(TABLE, VECTORS, similarity=similarity)
        assert report.finding.null == "strata"
        assert report.finding.metrics["slope.mean.pvalue_two_sided"] == pytest.approx(0.02)
        assert "does not keep" not in str(report.summary)
        assert "does not keep the difficulty" in str(run_analysis(TABLE, VECTORS, null="rows").summary)

    def test_a_significant_relation_without_size_is_announced_as_small(self):
        finding = replace(run_analysis(TABLE, VECTORS).finding, r_squared=0.003)
        assert summarize(finding).headline.startswith("Meaning hardly matters: it explains 0.3% of performance")

    def test_unrelated_vectors_are_left_in_peace(self):
        result = run_analysis(TABLE, UNRELATED).finding
        assert "Chance can explain how performance is related to meaning" in summarize(result).headline
        assert result.metrics["n_discoveries"] == 0
        assert result.metrics["n_familywise"] == 0

    def test_vectors_of_the_opposite_are_reported(self):
        """Six models, each good at one topic; neighbours in meaning are of different topics."""
        topics = np.tile(np.arange(6), 10)
        table = np.eye(6)[topics]
        separate = np.eye(10)[np.arange(60) // 6] + RNG.normal(0, 0.01, (60, 10))
        result = run_analysis(table, separate, similarity="hamming").finding
        assert "Models perform less similarly on prompts closer in meaning" in summarize(result).headline
        assert result.metrics["slope.mean"] < 0
        assert result.metrics["slope.mean.pvalue_two_sided"] <= 0.05 < result.metrics["slope.mean.pvalue"]

    def test_lines_through_the_origin_call_nearly_everything_significant(self):
        report = run_analysis(TABLE, np.abs(UNRELATED), intercept=False)
        metrics = report.finding.metrics
        assert metrics["n_significant"] >= 87
        assert metrics["n_discoveries"] >= 87
        assert metrics["n_discoveries.null_mean"] > 87
        assert metrics["n_discoveries.pvalue"] > 0.2
        assert isinstance(metrics["r_squared.mean"], Undefined)
        assert "Without an intercept" in " ".join(report.warnings)

    def test_the_strongest_relations_come_with_texts_and_nearest_partners(self, related):
        rows = related.tables["strongest"].to_pylist()
        assert len(rows) == 100
        assert [row["place"] for row in rows] == np.repeat(np.arange(1, 21), 5).tolist()
        assert [row["nearest"] for row in rows] == list(range(1, 6)) * 20
        order = [(row["familywise"], -row["t"]) for row in rows]
        assert order == sorted(order)
        for row in rows:
            i, j = int(row["prompt"][1:]), int(row["partner"][1:])
            a, b = (VECTORS[x] / np.linalg.norm(VECTORS[x]) for x in (i, j))
            assert row["semantic_similarity"] == pytest.approx(a @ b, abs=1e-6)
            assert row["performance_similarity"] == pytest.approx(
                TABLE[i] @ TABLE[j] / np.sqrt(TABLE[i].sum() * TABLE[j].sum())
            )
            assert row["text"] == (None if i == 1 else f"text {i}")
            assert TOPIC[i] == TOPIC[j]
            assert i != j


class TestReport:
    def test_prompts_that_no_model_got_right_have_no_line(self, related):
        assert related.finding.metrics["n_prompts"] == N
        assert related.finding.metrics["n_zero"] == 1
        for name in ("slope", "slope_pvalue", "slope_fdr", "slope_familywise"):
            values = related.prompt_values[name]
            assert 107 not in values.prompt_ids
            assert len(values.values) == len(values.prompt_ids) == N - 1
        assert "1 prompts that no model got right have no cosine and are left out." in related.warnings
        assert "--similarity hamming" in " ".join(related.warnings)
        hamming = run_analysis(TABLE, VECTORS, similarity="hamming")
        assert hamming.finding.metrics["n_zero"] == 0
        assert 107 in hamming.prompt_values["slope"].prompt_ids
        assert hamming.warnings == []

    def test_numbers_are_finite_or_have_a_reason(self, related):
        result = related.finding
        assert set(result.main_metrics) <= set(result.metrics)
        assert len(result.main_metrics) <= 50
        for name, value in result.metrics.items():
            assert value.reason if isinstance(value, Undefined) else np.isfinite(value), name
        assert result.arrays["ks_slope.null"].shape == (99,)
        rows = related.tables["statistics"].to_pylist()
        assert [row["statistic"] for row in rows] == ["slope.mean", "n_discoveries", "ks_slope", "ks_fdr", "max_t"]
        assert rows[0]["pvalue_two_sided"] == result.metrics["slope.mean.pvalue_two_sided"]
        assert rows[1]["pvalue_two_sided"] is None

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("options", [{}, {"similarity": "hamming", "null": "columns"}, {"intercept": False}])
    def test_pictures_are_drawn_with_labelled_axes(self, options):
        for figure in (draw() for draw in run_analysis(TABLE, VECTORS, **options).figures.values()):
            written = io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[-1].get_xlabel()
            assert figure.axes[0].get_ylabel()

    def test_titles_of_null_distributions_do_not_overlap(self, related):
        figure = related.figures["null_distributions"]()
        figure.draw_without_rendering()
        boxes = [axes.title.get_window_extent() for axes in figure.axes]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))

    def test_a_small_slope_is_not_written_as_zero(self, related):
        finding = related.finding
        mean = replace(finding.test.comparisons["slope.mean"], observed=7.2e-5)
        test = replace(finding.test, comparisons={**finding.test.comparisons, "slope.mean": mean})
        assert "7.2e-05, against" in str(summarize(replace(finding, test=test)))

    @pytest.mark.usefixtures("full_figures")
    def test_pictures_of_four_prompts_are_drawn(self):
        few = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]])
        report = run_analysis(few, UNRELATED[:4], n_permutations=5)
        for draw in report.figures.values():
            draw().savefig(io.BytesIO(), format="png", dpi=40)
        assert "Use at least 39" in " ".join(report.warnings)
        assert "5 permutations are too few to test" in report.summary.headline

    def test_equal_weights_are_no_weights(self, related):
        equal = run_analysis(TABLE, VECTORS, np.full(N, 0.25))
        assert equal.finding.metrics == related.finding.metrics
        for name, values in related.prompt_values.items():
            assert equal.prompt_values[name].values.tobytes() == values.values.tobytes()
        for name, values in related.finding.arrays.items():
            assert equal.finding.arrays[name].tobytes() == values.tobytes()

    def test_weights_are_those_of_the_partners(self):
        chosen = RNG.uniform(0.2, 2, N)
        chosen[11] = 0
        report = run_analysis(TABLE, VECTORS, chosen, null="rows")
        assert "weight 0 and are left out" in " ".join(report.warnings)
        present = np.array([i for i in range(N) if i not in (7, 11)])
        u = TABLE[present] / np.sqrt(TABLE[present].sum(axis=1, keepdims=True))
        e = VECTORS[present].astype(np.float32).astype(float)
        e /= np.linalg.norm(e, axis=1, keepdims=True)
        for i in (0, 40):
            rest = np.arange(len(present)) != i
            fit = np.polyfit(e[rest] @ e[i], u[rest] @ u[i], 1, w=np.sqrt(chosen[present][rest]))
            assert report.prompt_values["slope"].values[i] == pytest.approx(fit[0], rel=1e-9)

    def test_weights_made_of_scores_go_with_them_under_rows(self):
        chosen = RNG.uniform(0.2, 2, N)
        brought, derived = (run_analysis(TABLE, VECTORS, chosen, by) for by in ("custom-weights", "prompt-weighting"))
        assert derived.finding.metrics["slope.mean"] == brought.finding.metrics["slope.mean"]
        assert derived.finding.metrics["slope.mean.null_mean"] != brought.finding.metrics["slope.mean.null_mean"]
        assert derived.finding.metrics["slope.mean.pvalue"] <= 0.05
        assert any(warning.startswith("The weights 3:any are computed from scores") for warning in derived.warnings)
        assert any("do not depend on these scores" in warning for warning in brought.warnings)

    def test_under_columns_weights_made_of_scores_have_no_pvalues(self):
        chosen = RNG.uniform(0.2, 2, N)
        derived = run_analysis(TABLE, VECTORS, chosen, "prompt-weighting", null="columns")
        metrics = derived.finding.metrics
        assert all(isinstance(value, Undefined) for name, value in metrics.items() if ".pvalue" in name)
        assert isinstance(metrics["n_familywise"], Undefined)
        assert np.isnan(derived.prompt_values["slope_familywise"].values).all()
        assert set(derived.tables["strongest"].column("familywise").to_pylist()) == {None}
        assert "there is nothing to test (the weights are computed from scores" in summarize(derived.finding).headline
        assert any(
            warning.startswith("There is no p-value: the weights 3:any are computed from scores")
            for warning in derived.warnings
        )

    def test_the_same_seed_gives_the_same_numbers(self, related):
        assert run_analysis(TABLE, VECTORS).finding.metrics == related.finding.metrics
        assert run_analysis(TABLE, VECTORS, seed=1).finding.metrics != related.finding.metrics


class TestDegenerateInput:
    @settings(max_examples=60, deadline=None)
    @given(
        table=st.one_of(binary_tables(), continuous_tables()),
        seed=st.integers(0, 99),
        null=st.sampled_from(["strata", "rows", "columns"]),
        intercept=st.booleans(),
    )
    def test_every_table_is_analyzed_or_rejected(self, table, seed, null, intercept):
        rng = np.random.default_rng(seed)
        vectors = rng.integers(-1, 2, (len(table), 3)) + 0.5
        words = ""
        try:
            report = run_analysis(table, vectors, null=null, intercept=intercept, n_permutations=9)
        except SelectionError as error:
            words = str(error)
        if words:
            assert "here: " in words or "Every prompt is equally similar" in words
            return
        assert str(report.summary)
        for name, value in report.finding.metrics.items():
            assert value.reason if isinstance(value, Undefined) else np.isfinite(value), name
        pvalues = [v for name, v in report.finding.metrics.items() if ".pvalue" in name]
        assert all(isinstance(p, Undefined) or 0 < p <= 1 for p in pvalues)

    def test_repeated_prompts_are_partners_like_others(self):
        twice = run_analysis(np.tile(TABLE, (2, 1)), np.tile(VECTORS, (2, 1)))
        nearest = [row for row in twice.tables["strongest"].to_pylist() if row["nearest"] == 1]
        assert all(abs(int(row["prompt"][1:]) - int(row["partner"][1:])) == N for row in nearest)
        assert all(row["semantic_similarity"] == pytest.approx(1) for row in nearest)

    def test_prompts_equally_close_to_all_others_have_no_line(self):
        """The last prompt's vector is orthogonal to all others."""
        vectors = np.zeros((N, 17))
        vectors[: N - 1, :16] = VECTORS[: N - 1]
        vectors[N - 1, 16] = 1
        report = run_analysis(TABLE, vectors, null="rows")
        assert report.finding.metrics["n_without_line"] == 1
        assert np.isnan(report.prompt_values["slope"].values[-1])
        assert np.isnan(report.prompt_values["slope_familywise"].values[-1])
        assert "equally similar to all others" in " ".join(report.warnings)


class TestErrors:
    @pytest.mark.parametrize(
        ("table", "vectors", "words"),
        [
            (TABLE[:3], VECTORS[:3], "at least 4 prompts that some model got right; here: 3"),
            (np.vstack([TABLE[:3], np.zeros((5, K))]), VECTORS[:8], "here: 3"),
            (np.zeros((9, 4)), VECTORS[:9], "here: 0"),
            (np.ones((9, 4)), VECTORS[:9], "Every prompt is equally similar"),
            (TABLE[:, :1], VECTORS, "Every prompt is equally similar"),
            (TABLE, np.tile(VECTORS[:1], (N, 1)), "Every prompt is equally similar"),
            (TABLE, np.vstack([VECTORS[:-2], np.zeros((2, 16))]), "2 prompts have a vector of zeros"),
            (TABLE, np.where(VECTORS[4, 4] == VECTORS, np.nan, VECTORS), "1 prompts have a vector that is not finite"),
            (np.where(TABLE > 0, np.inf, 0.5), VECTORS, "scores are infinite"),
        ],
    )
    def test_tables_without_information_are_rejected(self, table, vectors, words):
        with pytest.raises(SelectionError, match=words):
            run_analysis(table, vectors)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"n_permutations": 0}, "at least 1"),
            ({"seed": -1}, "at least 0"),
            ({"null": "margins"}, "Known: strata, rows, columns"),
            ({"similarity": "jaccard"}, "Known: cosine, hamming"),
        ],
    )
    def test_options_that_mean_nothing_are_refused(self, options, words):
        with pytest.raises(SelectionError, match=words):
            run_analysis(TABLE, VECTORS, **options)

    def test_hamming_is_for_scores_of_right_and_wrong(self):
        with pytest.raises(SelectionError, match="Use `cosine`"):
            run_analysis(TABLE / 2, VECTORS, similarity="hamming")

    def test_prompts_without_a_vector_are_named_with_the_command_that_makes_one(self):
        with pytest.raises(
            SelectionError, match=r"2 of 90 prompts have no vector by planted@1:question.*suffrage embed b"
        ):
            analyze(matrix(TABLE), embeddings(VECTORS, without=2), prompts(N), None)


def test_scores_that_are_better_when_lower_have_the_same_lines(related):
    """Nothing is ranked, except the models that stand for their families."""
    lower: PerformanceMatrix = replace(matrix(TABLE), higher_is_better=False)
    result = analyze(lower, embeddings(VECTORS), prompts(N), None, n_permutations=99).finding
    for metrics in (full := dict(result.metrics), expected := dict(related.finding.metrics)):
        for name in [name for name in metrics if name.startswith("one_per_family.")]:
            del metrics[name]
    assert full == expected
