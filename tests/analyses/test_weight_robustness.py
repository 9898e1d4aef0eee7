from __future__ import annotations

import dataclasses
import io

import matplotlib.image
import numpy as np
import pytest
from performance_matrices import matrix
from scipy import stats

from analyses.weight_robustness import analyze
from analyses.weight_robustness.summary import summarize
from analyses.weight_robustness.tables import list_by_pair
from tracker.errors import SelectionError
from tracker.queries.weights import PromptWeights
from tracker.recording.finding import Undefined
from tracker.statistics.ranking import mean_ranks

RNG = np.random.default_rng(6)
BINARY = (RNG.random((150, 6)) < RNG.random((150, 1)) * np.linspace(0.7, 1, 6)).astype(float)
CONTINUOUS = RNG.normal(np.linspace(0, 0.3, 5), 1, (80, 5))


def weighted(scores, values):
    return PromptWeights(name="1:x", finding_id=1, prompt_ids=scores.prompt_ids, values=np.asarray(values, float))


def robustness(table, weights=None, **options):
    scores = matrix(table)
    chosen = None if weights is None else weighted(scores, weights)
    return analyze(scores, chosen, **({"n_draws": 2000} | options)).finding


def same(first, second):
    return all(first.arrays[name].tobytes() == second.arrays[name].tobytes() for name in first.arrays)


class TestAgainstReference:
    @pytest.mark.parametrize("table", [BINARY, CONTINUOUS])
    @pytest.mark.parametrize("is_weighted", [False, True])
    def test_exact_and_sampled_agree_within_the_error_of_sampling(self, table, is_weighted):
        n_draws = 40_000
        weights = RNG.gamma(2.0, size=len(table)) if is_weighted else None
        exact, sampled = (
            robustness(table, weights, n_draws=n_draws, method=method, seed=9).under for method in ("exact", "sampling")
        )
        error = np.sqrt(exact.beats * (1 - exact.beats) / n_draws)
        assert (np.abs(sampled.beats - exact.beats) <= 4.5 * error).all()
        for name, level in (("low", 0.025), ("high", 0.975)):
            density = stats.norm.pdf(stats.norm.ppf(level)) / exact.sd
            allowed = 5 * np.sqrt(level * (1 - level) / n_draws) / density
            assert (np.abs(getattr(sampled, name) - getattr(exact, name)) <= allowed).all()
        assert sampled.sd == pytest.approx(exact.sd, rel=5 / np.sqrt(2 * n_draws) * 1.2)
        # The largest of B draws is itself random, by about a tenth of the way from the mean.
        assert sampled.range_high - sampled.mean == pytest.approx(exact.range_high - exact.mean, rel=0.3)
        assert sampled.range_low - sampled.mean == pytest.approx(exact.range_low - exact.mean, rel=0.3)
        assert (sampled.places == exact.places).all()
        area = (sampled.height * np.ptp(sampled.at, axis=1, keepdims=True) / (sampled.at.shape[1] - 1)).sum(axis=1)
        assert area == pytest.approx(1.0, abs=1e-9)

    def test_numbers_of_the_real_binary_table(self, mmlu_pro):
        u = analyze(mmlu_pro, None, n_draws=5000).finding.under
        p = np.sort(mmlu_pro.Q.mean(axis=0))[::-1]
        assert u.mean == pytest.approx(p, abs=1e-15)
        assert u.sd == pytest.approx(np.sqrt(p * (1 - p) / 1201), rel=1e-12)
        assert u.p_normal == pytest.approx(u.beats, abs=5e-4)
        beta = stats.beta(1200 * p, 1200 - 1200 * p)
        assert u.low == pytest.approx(beta.ppf(0.025), rel=1e-9)
        assert u.range_high == pytest.approx(beta.isf(1 / 5001), rel=1e-9)

    def test_numbers_of_the_real_continuous_table(self, alpaca_eval):
        u = analyze(alpaca_eval, None, n_draws=5000).finding.under
        order = np.argsort(-alpaca_eval.Q.mean(axis=0), kind="stable")
        assert u.sd == pytest.approx(alpaca_eval.Q.std(axis=0)[order] / np.sqrt(798), rel=1e-12)
        assert u.p_normal == pytest.approx(u.beats, abs=0.01)
        assert u.draws_differ_by < 5 * np.sqrt(0.25 / 5000)

    def test_places_are_those_of_a_plain_count(self):
        means = np.random.default_rng(1).dirichlet(np.ones(80), 40_000) @ CONTINUOUS
        order = np.argsort(-means, axis=1)
        result = robustness(CONTINUOUS, n_draws=40_000)
        for row, model in enumerate(result.models):
            place = np.nonzero(order == int(model.split()[1]))[1] + 1
            assert result.under.expected_rank[row] == pytest.approx(place.mean(), abs=0.03)
            shares = np.bincount(place, minlength=6)[1:] / 40_000
            assert result.under.places[row] == pytest.approx(shares, abs=0.017)
            reached = np.cumsum(result.under.places[row])
            low, high = int(result.under.rank_low[row]), int(result.under.rank_high[row])
            assert reached[low - 1] >= 0.025
            assert low == 1 or reached[low - 2] < 0.025
            assert reached[high - 1] >= 0.975 - 1e-12
            assert high == 1 or reached[high - 2] < 0.975

    def test_the_first_place_is_lost_as_often_as_the_exact_chances_allow(self):
        result = robustness(CONTINUOUS, n_draws=50_000)
        m = result.metrics
        error = 4 * m["leader_changes.stderr"]
        assert m["leader_changes.at_least"] - error <= m["leader_changes"] <= m["leader_changes.at_most"] + error
        assert m["leader_changes"] == pytest.approx(1 - result.under.places[0, 0], abs=1e-12)
        assert m["runner_up.beats_leader"] == result.under.beats[1, 0]


class TestLaws:
    def test_equal_weights_are_no_weights_to_the_byte(self):
        for table in (BINARY, CONTINUOUS):
            assert same(robustness(table), robustness(table, np.full(len(table), 0.3)))

    def test_chosen_weights_move_the_means_and_widen_by_the_effective_number(self):
        weights = RNG.gamma(1.0, size=150)
        result = robustness(BINARY, weights)
        share = weights / weights.sum()
        n_effective = 1 / (share**2).sum()
        p = share @ BINARY[:, [int(name.split()[1]) for name in result.models]]
        assert result.n_effective == pytest.approx(n_effective)
        assert result.under.mean == pytest.approx(p, rel=1e-12)
        assert result.under.sd == pytest.approx(np.sqrt(p * (1 - p) / (n_effective + 1)), rel=1e-12)

    @pytest.mark.parametrize("table", [BINARY, CONTINUOUS])
    @pytest.mark.parametrize("method", ["exact", "sampling"])
    def test_where_lower_is_better_everything_is_turned_round(self, table, method):
        scores = matrix(table)
        turned = dataclasses.replace(scores, Q=-table, higher_is_better=False)
        first, second = (analyze(s, None, n_draws=1500, method=method).finding for s in (scores, turned))
        assert second.models == first.models
        assert second.under.places.tobytes() == first.under.places.tobytes()
        assert second.under.beats == pytest.approx(first.under.beats, rel=1e-12)
        assert -second.under.high == pytest.approx(first.under.low, rel=1e-9)
        assert -second.under.range_low == pytest.approx(first.under.range_high, rel=1e-9)

    def test_chances_are_ordered_as_in_the_table_of_models(self):
        report = analyze(matrix(BINARY), None, n_draws=1000)
        models, pairs = report.tables["models"].to_pylist(), report.tables["pairs"].to_pylist()
        ranked = report.rankings["random_weights"]
        assert ranked.models == tuple(row["model"] for row in models)
        assert (ranked.rank == mean_ranks(ranked.score)).all()
        assert (ranked.low <= ranked.score).all()
        assert (ranked.score <= ranked.high).all()
        for row in pairs:
            i, j = (int(row[name].split()[1]) for name in ("model", "other"))
            assert row["n_better"] == (BINARY[:, i] > BINARY[:, j]).sum()
            assert row["p_beats"] + row["p_beaten"] == pytest.approx(1)
            assert row["mean_difference"] == pytest.approx((BINARY[:, i] - BINARY[:, j]).mean(), abs=1e-15)
            error = stats.sem(BINARY[:, i] - BINARY[:, j])
            assert row["paired_se"] == pytest.approx(error, rel=1e-10)

    def test_the_range_widens_with_the_number_of_draws_and_the_interval_does_not(self):
        few, many = robustness(BINARY, n_draws=100).under, robustness(BINARY, n_draws=10_000).under
        assert (many.range_high > few.range_high).all()
        assert (many.high == few.high).all()

    def test_the_summary_describes_the_method(self):
        result = robustness(BINARY)
        summary = summarize(result)
        n_first = result.under.n_draws - result.n_changes
        assert 0 < n_first < result.under.n_draws
        assert f"{n_first:,} of {result.under.n_draws:,} random weightings" in summary.headline
        assert ("not robustly" in summary.headline) == (result.metrics["leader_changes"] > 0.025)
        assert any("more draws widen it" in item for item in summary.evidence)
        assert "no number here is a significance test" in " ".join(summary.caveats)

    def test_metrics_have_no_nan(self):
        for table in (BINARY, CONTINUOUS, BINARY[:1], BINARY[:, :1], np.full((4, 3), 0.5)):
            for method in ("exact", "sampling"):
                result = robustness(table, method=method)
                assert all(isinstance(v, Undefined) or np.isfinite(v) for v in result.metrics.values())
                assert all(np.isfinite(a).all() for a in result.arrays.values())
                assert len(result.main_metrics) <= 50
                assert str(summarize(result))


class TestDegenerate:
    @pytest.mark.parametrize("method", ["exact", "sampling"])
    @pytest.mark.parametrize("table", [BINARY, CONTINUOUS])
    def test_weights_next_to_nothing_are_warned_to_be_beyond_the_draws(self, table, method):
        """All but one prompt weigh so little that their gamma variables are 0, though one is ahead of the other."""
        weights = np.where(np.arange(len(table)) == 0, 1.0, 1e-9)
        scores = matrix(np.vstack([np.ones(table.shape[1]), table[1:]]))
        report = analyze(scores, weighted(scores, weights), n_draws=2000, method=method)
        assert any("Some weights are too small for the draws" in warning for warning in report.warnings)
        for draw in report.figures.values():
            draw()
        plain = analyze(matrix(table), None, n_draws=2000, method=method)
        assert not any("too small for the draws" in warning for warning in plain.warnings)

    def test_the_summary_states_what_the_weights_scatter_around(self):
        weighted_result = robustness(BINARY, RNG.gamma(2.0, size=150))
        assert "random weightings of the prompts around the chosen weights" in summarize(weighted_result).headline
        assert "chosen" not in str(summarize(robustness(BINARY)))

    def test_identical_models_are_named_and_never_ahead(self):
        table = np.hstack([BINARY, BINARY[:, 5:]])
        for method in ("exact", "sampling"):
            report = analyze(matrix(table), None, n_draws=1000, method=method)
            twins = [report.finding.models.index(f"model {j}") for j in (5, 6)]
            assert report.finding.under.beats[np.ix_(twins, twins)].tolist() == [[0.5, 0.5], [0.5, 0.5]]
            assert (report.finding.under.places[twins[0]] == report.finding.under.places[twins[1]]).all()
            assert report.finding.under.places.sum(axis=0) == pytest.approx(1)
            (row,) = (r for r in report.tables["pairs"].to_pylist() if r["relation"] == "identical")
            assert {row["model"], row["other"]} == {"model 5", "model 6"}
            assert any("model 5 = model 6" in warning for warning in report.warnings)
        assert any("identical" in warning.lower() for warning in report.warnings)

    def test_models_that_share_the_first_place_by_the_mean_keep_it_together(self):
        table = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
        result = robustness(table)
        assert result.metrics["leader_changes"] < 0.5
        assert isinstance(result.metrics["leader_changes.at_least"], Undefined)
        assert result.metrics["runner_up.beats_leader"] == 0.5
        headline = summarize(result).headline
        assert headline.startswith("model 0, model 1 share first place, but not robustly: one of them leads in only")

    def test_a_model_that_is_never_worse_always_wins(self):
        table = np.array([[1.0, 0], [1, 1], [1, 0]])
        result = robustness(table)
        assert result.under.beats.tolist() == [[0.5, 1.0], [0.0, 0.5]]
        assert result.metrics["leader_changes"] == 0
        assert (
            f"robustly first: it leads in all {result.under.n_draws:,} random weightings" in summarize(result).headline
        )
        assert list_by_pair(result.models, result.under).to_pylist()[0]["relation"] == "never worse"

    def test_equal_models_are_reported(self):
        result = robustness(np.full((4, 3), 0.5))
        assert "no weights can change their order" in summarize(result).headline
        assert result.metrics["n_constant_models"] == 3
        assert isinstance(result.metrics["reversed.mean"], Undefined)

    def test_one_model_has_an_interval_and_no_rival(self):
        report = analyze(matrix(BINARY[:, :1]), None, n_draws=1000)
        assert isinstance(report.finding.metrics["leader_changes"], Undefined)
        assert report.tables["pairs"].num_rows == 0
        assert set(report.figures) == {"weighted_performance"}


class TestErrors:
    @pytest.mark.parametrize(
        ("table", "options", "words"),
        [
            (BINARY, {"n_draws": 0}, "at least 1"),
            (BINARY, {"seed": -1}, "at least 0"),
            (BINARY, {"method": "guessing"}, "exact, sampling"),
            (BINARY, {"method": "sampling", "n_draws": 10**9}, "Use fewer draws"),
            (np.array([[0.0, np.inf], [1, 1]]), {}, "infinite"),
        ],
    )
    def test_what_cannot_be_weighed_is_refused_with_words_that_help(self, table, options, words):
        with pytest.raises(SelectionError, match=words):
            analyze(matrix(table), None, **options)


class TestFigures:
    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("table", [BINARY, CONTINUOUS, BINARY[:, :2], BINARY[:1], RNG.random((30, 40))])
    def test_pictures_are_drawn_with_labelled_axes(self, table):
        for draw in analyze(matrix(table), None, n_draws=500).figures.values():
            written = io.BytesIO()
            figure = draw()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[0].get_xlabel()
            names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
            assert len(names) == table.shape[1]

    def test_a_chance_is_written_as_sure_only_where_it_is(self):
        table = np.zeros((400, 3))
        table[:, 0] = 1
        table[:390, 1] = 1
        table[390:, 2] = 1
        report = analyze(matrix(table), None, n_draws=500)
        written = {text.get_position(): text.get_text() for text in report.figures["beats"]().axes[0].texts}
        assert report.finding.models == ("model 0", "model 1", "model 2")
        assert (written[1, 0], written[0, 1]) == ("100%", "0%")
        assert (written[2, 1], written[1, 2]) == (">99%", "<1%")
