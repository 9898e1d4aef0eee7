from __future__ import annotations

import io
from dataclasses import replace

import joblib
import matplotlib.image
import numpy as np
import pytest
from performance_matrices import matrix

from analyses.benchmark_growth import analyze as analyze_growth
from analyses.benchmark_growth.method import measure_growth
from analyses.benchmark_growth.summary import summarize
from analyses.benchmark_growth.validation import ItemResponse
from analyses.numerics.growth.farthest_first import order_farthest_first
from analyses.numerics.growth.groups import group_rows
from analyses.numerics.null_tables import shuffle_table
from tracker.errors import SelectionError
from tracker.queries.embeddings import Embeddings
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Report, Undefined
from tracker.statistics.rng_streams import stream_key

RNG = np.random.default_rng(7)
BINARY = (RNG.random((120, 8)) < RNG.random((120, 1)) * np.linspace(0.4, 1, 8)).astype(float)
CONTINUOUS = RNG.random((90, 5))
FEW = {"n_orders": 12, "n_permutations": 4}


def weights_of(values: np.ndarray) -> PromptWeights:
    ids = np.arange(100, 100 + len(values), dtype=np.int64)
    return PromptWeights(name="3:some", finding_id=3, prompt_ids=ids, values=values)


def vectors_of(E: np.ndarray) -> Embeddings:
    ids = np.arange(100, 100 + len(E), dtype=np.int64)
    return Embeddings(E=E.astype(np.float32), prompt_ids=ids, encoder_id=2, encoder="some:text", benchmark="b")


def analyze(
    scores: PerformanceMatrix, weights: PromptWeights | None, vectors: Embeddings | None, n_options=4, **options
) -> Report:
    """With prompts that all have so many options."""
    n = scores.n_prompts
    prompts = PromptTexts(
        prompt_ids=np.sort(scores.prompt_ids),
        tasks=("task",) * n,
        names=("prompt",) * n,
        texts=("text",) * n,
        choices=(("option",) * n_options or None,) * n,
        answers=(None,) * n,
        details=({},) * n,
    )
    return analyze_growth(scores, weights, vectors, prompts, **options)


def same(left, right) -> bool:
    arrays = [(result.arrays, result.metrics) for result in (left.finding, right.finding)]
    (a, first), (b, second) = arrays
    return all(a[name].tobytes() == b[name].tobytes() for name in a) and first == second and a.keys() == b.keys()


class TestAgainstReference:
    def test_curves_and_sizes_are_those_of_the_orders(self):
        result = measure_growth(BINARY, start=17, within=0.1, seed=4, **FEW)
        order = order_farthest_first(group_rows(BINARY), 17).rows
        assert result.order.rows.tolist() == order.tolist()
        running = np.cumsum(BINARY[order], axis=0) / np.arange(1, 121)[:, None]
        assert result.informative.means == pytest.approx(running[result.sizes - 1])
        at = result.sizes.tolist().index(50)
        shuffled = [shuffle_table(BINARY, stream_key(4), p) for p in range(4)]
        means = [table[order_farthest_first(group_rows(table), 17).rows[:50]].mean() for table in shuffled]
        assert result.permuted.means[:, at].mean(axis=1) == pytest.approx(means)
        metrics = result.metrics
        assert metrics["mean_at_50"] == pytest.approx(running[49].mean())
        assert metrics["mean_at_50.permuted_mean"] == pytest.approx(np.mean(means))
        assert metrics["mean_final"] == pytest.approx(BINARY.mean())
        assert metrics["n_zero"] == (~BINARY.any(axis=1)).sum()
        assert metrics["n_distinct"] == len(np.unique(BINARY[BINARY.any(axis=1)], axis=0))
        beyond = np.flatnonzero(result.informative.distances > 0.1 + 1e-9)
        assert metrics["size_within"] == beyond[-1] + 2
        for name, stable in (("random", result.random.stable_sizes), ("permuted", result.permuted.stable_sizes)):
            assert metrics[f"size_within.{name}_median"] == np.sort(stable)[len(stable) // 2 - 1]
            assert metrics[f"size_within.{name}_p97_5"] == stable.max()

    def test_weights_weigh_the_means_and_leave_the_order(self):
        w = RNG.random(120) + 0.2
        plain, weighted = (analyze(matrix(BINARY), left, None, **FEW) for left in (None, weights_of(w)))
        order = weighted.finding.order.rows
        assert order.tolist() == plain.finding.order.rows.tolist()
        assert weighted.finding.final == pytest.approx(np.average(BINARY, axis=0, weights=w))
        at = weighted.finding.sizes.tolist().index(50)
        first = order[:50]
        assert weighted.finding.informative.means[at] == pytest.approx(
            np.average(BINARY[first], axis=0, weights=w[first])
        )
        assert weighted.finding.metrics["n_effective"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
        assert any("weighted by 3:some" in warning for warning in weighted.warnings)

    def test_vectors_decide_on_the_order_and_random_orders_are_the_control(self):
        E = RNG.normal(size=(120, 6))
        report = analyze(matrix(BINARY), None, vectors_of(E), start=105, criterion="min", **FEW)
        order = order_farthest_first(group_rows(E.astype(np.float32).astype(float)), 5, "min").rows
        assert report.finding.order.rows.tolist() == order.tolist()
        assert isinstance(report.finding.metrics["size_within.permuted_median"], Undefined)
        assert any("random orders are the control" in caveat for caveat in report.summary.caveats)
        assert "permuted_median" not in report.tables["distance"].column_names

    def test_the_first_prompts_of_a_real_table_depend_on_the_method(self, mmlu_pro):
        metrics = analyze(mmlu_pro, None, None, n_orders=40, n_permutations=10).finding.metrics
        assert metrics["n_zero"] == 98
        assert metrics["mean_at_50"] < metrics["mean_at_50.permuted_mean"] < metrics["mean_at_50.random_mean"] - 0.1
        assert metrics["size_within.random_p97_5"] < metrics["size_within"]


class TestLaws:
    @pytest.mark.parametrize("table", [BINARY, CONTINUOUS])
    def test_equal_weights_are_no_weights_and_workers_change_nothing(self, table):
        alone = analyze(matrix(table), None, None, **FEW)
        assert same(alone, analyze(matrix(table), weights_of(np.full(len(table), 0.3)), None, **FEW))
        with joblib.parallel_config(n_jobs=3, backend="threading"):
            assert same(alone, analyze(matrix(table), None, None, **FEW))
        assert not same(alone, analyze(matrix(table), None, None, seed=1, **FEW))

    def test_prompts_in_another_order_are_the_same_prompts(self):
        scores = matrix(BINARY)
        mixed = RNG.permutation(120)
        second = replace(scores, Q=BINARY[mixed], prompt_ids=scores.prompt_ids[mixed])
        first, two = (analyze(s, None, None, start=130, **FEW) for s in (scores, second))
        assert same(first, two)
        position = first.prompt_values["position"]
        assert sorted(position.values.tolist()) == list(range(1, 121))
        assert position.values[position.prompt_ids == 130] == 1
        assert (
            first.prompt_values["distance_when_added"].values[30]
            != first.prompt_values["distance_when_added"].values[30]
        )

    def test_the_direction_of_the_scores_turns_the_ranking_and_no_distance(self):
        up = analyze(matrix(BINARY), None, None, **FEW)
        down = analyze(replace(matrix(BINARY), higher_is_better=False), None, None, **FEW)
        assert same(up, down)
        assert (up.rankings["final"].rank + down.rankings["final"].rank == 9).all()

    def test_random_orders_within_the_distance_are_counted_at_each_size(self):
        report = analyze(matrix(BINARY), None, None, within=0.1, **FEW)
        table = report.tables["distance"].to_pydict()
        shares = (report.finding.random.distances <= 0.1 + 1e-9).mean(axis=0)
        assert table["random_share_within"] == pytest.approx(shares)
        assert table["random_share_within"][-1] == 1
        assert report.tables["growth"].num_rows == 8 * len(table["size"])

    @pytest.mark.parametrize(
        "table",
        [np.zeros((6, 3)), np.ones((6, 3)), BINARY[:, :1], -CONTINUOUS, BINARY[:2], np.full((60, 4), 0.5)],
    )
    def test_degenerate_tables_are_defined(self, table):
        report = analyze(matrix(table), None, None, **FEW)
        result = report.finding
        assert "Descriptive: no number here is a significance test." in summarize(result).caveats
        assert all(isinstance(v, Undefined) or np.isfinite(v) for v in result.metrics.values())
        if table.shape[1] == 1:
            assert isinstance(result.metrics["size_within"], Undefined)
        elif (table == table[0, 0]).all():
            assert result.metrics["size_within"] == 1
            assert result.order.rows.tolist()[1:] == [i for i in range(len(table)) if i != result.order.rows[0]]
            assert any("same direction" in warning for warning in report.warnings)
        for draw in report.figures.values():
            draw().savefig(io.BytesIO(), format="png", dpi=40)

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("n_models", [3, 60])
    def test_pictures_have_labelled_axes_and_name_models(self, n_models):
        table = (RNG.random((150, n_models)) < 0.5).astype(float)
        names = tuple(f"organisation/a-model-with-a-rather-long-name-{j}" for j in range(n_models))
        report = analyze(matrix(table, names), None, None, **FEW)
        assert list(report.figures) == ["informative", "random", "distance"]
        for name, draw in report.figures.items():
            figure = draw()
            written = io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert all(axes.get_xlabel() for axes in figure.axes)
            assert figure.axes[0].get_ylabel()
            if name != "distance":
                labels = [text for text in figure.axes[-1].texts if "…" in text.get_text()]
                assert len(labels) == (3 if n_models == 3 else 12)
                heights = sorted(text.get_position()[1] for text in labels)
                low, high = figure.axes[-1].get_ylim()
                assert np.diff(heights).min() > (high - low) / 25
                assert low < heights[0] < heights[-1] < high


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"start": 99}, "Prompt 99 is not among the 120 selected prompts"),
            ({"start": 5000}, "such as `--start 100`, or leave out --start"),
            ({"n_orders": 0}, "n_orders is 0; it must be at least 1"),
            ({"n_permutations": 0}, "n_permutations is 0; it must be at least 1"),
            ({"within": 1.0}, "within is 1.0; it must be at least 0 and less than 1"),
            ({"within": float("nan")}, "within is nan; it must be at least 0"),
            ({"seed": -1}, "seed is -1; it must be at least 0"),
        ],
    )
    def test_options_that_make_no_sense_are_refused(self, options, words):
        with pytest.raises(SelectionError, match=words):
            analyze(matrix(BINARY), None, None, **options)

    def test_tables_that_cannot_grow_are_refused(self):
        for table, words in (
            (BINARY[:1], "Benchmark growth needs at least 2 prompts, here: 1"),
            (np.where(BINARY == 1, np.inf, 0), "scores are infinite. Leave out their runs"),
        ):
            with pytest.raises(SelectionError, match=words):
                analyze(matrix(table), None, None)

    def test_vectors_that_are_damaged_or_missing_are_refused(self):
        E = RNG.normal(size=(120, 3))
        E[4] = np.nan
        with pytest.raises(SelectionError, match="1 vectors have values that are not finite"):
            analyze(matrix(BINARY), None, vectors_of(E))
        with pytest.raises(SelectionError, match="20 of 120 prompts have no vector"):
            analyze(matrix(BINARY), None, vectors_of(E[:100]))


ABILITY, DIFFICULTY = RNG.normal(size=10), RNG.normal(size=60)
KNOWS = 1 / (1 + np.exp(-2 * (ABILITY - DIFFICULTY[:, None])))
GUESSED = (RNG.random((60, 10)) < 0.25 + 0.75 * KNOWS).astype(float)
"""Ten models that guess one of four options where they do not know the answer."""


BY_INFORMATION = {"criterion": "information", "n_orders": 6, "n_permutations": 1}


@pytest.fixture(scope="module")
def report() -> Report:
    return analyze(matrix(GUESSED), None, None, **BY_INFORMATION)


class TestInformation:
    def test_the_most_informative_prompts_come_first_and_the_floors_count(self, report):
        rows = report.finding.order.rows
        assert sorted(rows) == list(range(60))
        assert (np.diff(report.prompt_values["variance_reduction_when_added"].values[rows]) <= 1e-12).all()
        open_ended = measure_growth(GUESSED, item_response=ItemResponse(floors=np.zeros(60)), **BY_INFORMATION)
        assert open_ended.order.rows.tolist() != rows.tolist()
        assert open_ended.metrics["item_response.n_open"] == 60
        assert "60 prompts have no stored options" in str(summarize(open_ended))

    def test_predictions_are_reported_beside_plain_means(self, report):
        metrics = report.finding.metrics
        row = next(row for row in report.tables["prediction"].to_pylist() if row["n_prompts"] == 50)
        assert row["random"] == metrics["prediction_error_at_50.random"] < 0.1
        assert row["informative_plain"] > row["informative"] == metrics["prediction_error_at_50.informative"]
        assert "Predicted by item response without this model" in str(report.summary)
        assert set(report.prompt_values) == {"position", "variance_reduction_when_added"}

    def test_scores_of_which_0_is_right_give_the_same(self, report):
        reversed_scores = replace(matrix(1 - GUESSED), higher_is_better=False)
        result = analyze(reversed_scores, None, None, **BY_INFORMATION).finding
        assert result.order.rows.tolist() == report.finding.order.rows.tolist()
        errors = "prediction_error_at_50.random"
        assert result.metrics[errors] == pytest.approx(report.finding.metrics[errors])

    def test_few_models_have_an_order_and_no_predictions(self):
        report = analyze(matrix(GUESSED[:, :9]), None, None, start=130, **BY_INFORMATION)
        assert report.finding.order.rows[0] == 30
        assert isinstance(report.finding.metrics["prediction_error_at_50.random"], Undefined)
        assert set(report.tables) == {"growth", "distance"}

    @pytest.mark.parametrize(
        ("table", "vectors", "words"),
        [(CONTINUOUS, None, "needs scores of 0 and 1"), (BINARY, np.eye(120), "Leave out the encoder")],
    )
    def test_what_item_response_cannot_use_is_rejected(self, table, vectors, words):
        with pytest.raises(SelectionError, match=words):
            analyze(matrix(table), None, None if vectors is None else vectors_of(vectors), criterion="information")
