from __future__ import annotations

import io
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from joblib import parallel_config
from performance_matrices import matrix
from scipy.stats import kendalltau, pearsonr, spearmanr

from analyses.filter_baselines import FilterBaselines, analyze
from analyses.numerics.filtering.effects.agreement import measure_agreement
from analyses.numerics.filtering.effects.random_comparison import (
    SelectionComparison,
    compare_with_random,
    full_statistics,
)
from analyses.numerics.filtering.effects.random_subsets import draw_random_subsets
from analyses.numerics.filtering.effects.ranking_change import compare_rankings
from analyses.numerics.filtering.item_response import fit_two_parameter, flag_easy_or_undiscriminating
from tracker.errors import SelectionError
from tracker.queries.answers import AnswerMatrix
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.recording.finding import Report, Undefined

RNG = np.random.default_rng(3)
N, K = 150, 12
ABILITY = np.linspace(-1.5, 1.5, K)
TABLE = (RNG.random((N, K)) < 1 / (1 + np.exp(RNG.normal(0, 1.2, (N, 1)) - ABILITY))).astype(float)
BEST = (K - 3, K - 2, K - 1)
EASY = TABLE[:, BEST].all(axis=1)


def chosen(kept: np.ndarray, models: tuple[int, ...] = BEST, stale: str = "") -> PromptFilter:
    """A filter of the first prompts of a matrix."""
    return PromptFilter(
        finding_id=7,
        made_by="smart-filtering",
        benchmark="b",
        prompt_ids=np.arange(100, 100 + len(kept)),
        kept=kept,
        reasons={},
        models=tuple(f"model {j}" for j in models),
        parameters={},
        selection={},
        stale=stale,
    )


def answers(scores: PerformanceMatrix, codes: np.ndarray | None = None) -> AnswerMatrix:
    """What the models answered; nothing by default."""
    codes = np.full(scores.Q.shape, -1, np.int32) if codes is None else codes
    return AnswerMatrix(
        codes=codes,
        probability=np.full(codes.shape, np.nan),
        texts=("A", "B", "C"),
        prompt_ids=scores.prompt_ids,
        models=scores.models,
        run_ids=scores.run_ids,
    )


def external_scores(values: dict[int, float], *, higher_is_better: bool = True) -> BenchmarkScores:
    return BenchmarkScores(
        benchmark="arena",
        metric="elo",
        scores={f"model {j}": value for j, value in values.items()},
        higher_is_better=higher_is_better,
        run_ids=np.arange(0),
    )


def options_of(scores: PerformanceMatrix, n_options: int = 0) -> PromptTexts:
    n = len(scores.prompt_ids)
    return PromptTexts(
        prompt_ids=scores.prompt_ids,
        tasks=("",) * n,
        names=("",) * n,
        texts=(None,) * n,
        choices=(("A",) * n_options or None,) * n,
        answers=(None,) * n,
        details=({},) * n,
    )


def run_analysis(
    table: np.ndarray = TABLE,
    kept: np.ndarray = ~EASY,
    *,
    models: tuple[int, ...] = BEST,
    codes: np.ndarray | None = None,
    against: BenchmarkScores | None = None,
    stale: str = "",
    higher_is_better: bool = True,
    n_options: int = 0,
    **options,
) -> Report:
    """The report on a table and a filter."""
    scores = replace(matrix(table), higher_is_better=higher_is_better)
    filtering = chosen(kept, models, stale)
    return analyze(
        scores, filtering, answers(scores, codes), against, options_of(scores, n_options), **{"n_subsets": 40} | options
    )


@pytest.fixture(scope="module")
def report() -> Report:
    return run_analysis(against=external_scores({j: 1000 + 40 * float(j) for j in range(2, K)}))


def finding(report: Report) -> FilterBaselines:
    assert isinstance(report.finding, FilterBaselines)
    return report.finding


def number(report: Report, name: str) -> float:
    value = report.finding.metrics[name]
    assert not isinstance(value, Undefined), value
    return value


def reason(report: Report, name: str) -> str:
    value = report.finding.metrics[name]
    assert isinstance(value, Undefined)
    return value.reason


class TestPlanted:
    def test_a_filter_made_at_random_lies_among_random_subsets(self):
        positions = [
            number(run_analysis(kept=np.random.default_rng(seed).random(N) < 0.6, n_subsets=99), "filter.tau.position")
            for seed in range(20)
        ]
        assert 0.25 < np.mean(positions) < 0.75

    def test_a_filter_against_the_better_models_lies_below_them_all(self):
        against = TABLE[:, : K // 2].mean(axis=1) - TABLE[:, K // 2 :].mean(axis=1)
        result = run_analysis(kept=against >= np.median(against))
        assert number(result, "filter.tau.position") == 0
        assert number(result, "filter.tau_without_filter_models.position") == 0

    def test_dropping_prompts_with_equal_answers_lowers_agreement_below_random(self):
        is_similar = TABLE.mean(axis=1)
        result = run_analysis(kept=np.abs(is_similar - 0.5) < 0.35)
        assert number(result, "filter.agreement.position") == 0
        assert number(result, "filter.agreement") < number(result, "full.agreement")


class TestAgainstReference:
    def test_the_filters_own_numbers_are_those_of_the_filter_question(self, report):
        change = compare_rankings(TABLE, ~EASY, np.isin(np.arange(K), BEST))
        assert number(report, "filter.tau") == change.tau
        assert number(report, "filter.tau_without_filter_models") == change.tau_without_filter_models
        assert number(report, "filter.share_removed") == pytest.approx(EASY.mean())
        assert number(report, "filter.n_removed") == EASY.sum()

    def test_correlations_are_scipys_over_the_models_in_common(self, report):
        means, second = TABLE[~EASY].mean(axis=0)[2:], np.arange(2, K)
        assert number(report, "filter.pearson") == pytest.approx(pearsonr(means, second)[0])
        assert number(report, "filter.spearman") == pytest.approx(spearmanr(means, second)[0])
        assert number(report, "full.pearson") == pytest.approx(pearsonr(TABLE.mean(axis=0)[2:], second)[0])
        assert number(report, "n_against") == K - 2

    def test_random_subsets_are_those_of_the_seed_one_after_the_other(self, report):
        full = TABLE.mean(axis=0)
        for method, kept in (("filter", ~EASY), ("item_response", finding(report).methods["item_response"].kept)):
            drawn = draw_random_subsets(N, int(kept.sum()), range(40), 0)
            means = [TABLE[rows].mean(axis=0) for rows in drawn]
            tau = [kendalltau(full, some)[0] for some in means]
            same = [measure_agreement(TABLE[rows].astype(np.int32)).mean_share for rows in drawn]
            np.testing.assert_allclose(report.finding.arrays[f"{method}.random.tau"], tau)
            np.testing.assert_allclose(report.finding.arrays[f"{method}.random.agreement"], same)
            assert number(report, f"{method}.tau.random_mean") == pytest.approx(np.mean(tau))
            assert number(report, f"{method}.tau.random_low") == pytest.approx(np.quantile(tau, 0.025))

    def test_item_response_removes_what_is_easy_or_dull(self, report):
        fit = fit_two_parameter(TABLE)
        np.testing.assert_array_equal(
            finding(report).methods["item_response"].kept, ~flag_easy_or_undiscriminating(fit)
        )
        np.testing.assert_array_equal(report.prompt_values["discrimination_stderr"].values, fit.discrimination_stderr)
        np.testing.assert_array_equal(report.rankings["ability"].score, fit.ability)
        removed = flag_easy_or_undiscriminating(fit) & EASY
        assert number(report, "n_removed_by_both") == removed.sum()

    def test_answers_are_compared_where_all_are_stored(self):
        codes = np.random.default_rng(5).integers(0, 3, TABLE.shape).astype(np.int32)
        result = run_analysis(codes=codes)
        assert number(result, "filter.agreement") == measure_agreement(codes[~EASY]).mean_share
        assert number(result, "full.agreement") == measure_agreement(codes).mean_share
        codes[:, 4] = -1
        assert (
            number(run_analysis(codes=codes), "full.agreement") == measure_agreement(TABLE.astype(np.int32)).mean_share
        )


class TestLaws:
    def test_any_number_of_workers_finds_the_same_bytes(self, report):
        with parallel_config(n_jobs=3, backend="threading"):
            again = run_analysis(against=external_scores({j: 1000 + 40 * float(j) for j in range(2, K)}))
        assert again.finding.metrics == report.finding.metrics
        for name, values in report.finding.arrays.items():
            np.testing.assert_array_equal(values, again.finding.arrays[name])

    def test_another_seed_has_other_random_subsets_and_the_same_selections(self, report):
        second = run_analysis(seed=1)
        assert number(second, "item_response.tau") == number(report, "item_response.tau")
        assert (second.finding.arrays["filter.random.tau"] != report.finding.arrays["filter.random.tau"]).any()

    def test_errors_instead_of_right_answers_give_the_same_numbers(self, report):
        turned = run_analysis(
            1 - TABLE, against=external_scores({j: 1000 + 40 * float(j) for j in range(2, K)}), higher_is_better=False
        )
        for name in ("filter.tau", "filter.pearson", "filter.agreement", "item_response.share_removed"):
            assert number(turned, name) == pytest.approx(number(report, name))
        fit = turned.prompt_values["difficulty"].values
        np.testing.assert_allclose(fit, report.prompt_values["difficulty"].values)
        table = turned.tables["models"].to_pydict()
        assert table["model"] == report.tables["models"].to_pydict()["model"]
        np.testing.assert_allclose(table["score"], 1 - np.array(report.tables["models"].to_pydict()["score"]))

    def test_models_with_gaps_take_part_in_the_fit_alone(self):
        gaps = TABLE.copy()
        gaps[:50, 1] = np.nan
        result = run_analysis(gaps)
        fit = fit_two_parameter(gaps)
        np.testing.assert_array_equal(result.prompt_values["difficulty"].values, fit.difficulty)
        assert number(result, "n_models") == K - 1
        assert number(result, "item_response.n_models") == K
        assert (
            number(result, "filter.tau")
            == compare_rankings(np.delete(TABLE, 1, axis=1), ~EASY, np.isin(np.delete(np.arange(K), 1), BEST)).tau
        )
        assert "model 1" in next(warning for warning in result.warnings if warning.startswith("Not ranked"))

    def test_prompts_without_a_decision_are_left_out(self):
        result = run_analysis(kept=~EASY[:100])
        within = run_analysis(TABLE[:100], ~EASY[:100])
        assert result.finding.metrics == within.finding.metrics
        assert any(warning.startswith("50 prompts without a decision of filter 7") for warning in result.warnings)

    def test_both_removes_no_more_than_either(self):
        either, both = run_analysis(), run_analysis(combine="both")
        kept, kept_by_both = (finding(first).methods["item_response"].kept for first in (either, both))
        assert (kept <= kept_by_both).all()
        assert kept_by_both.sum() > kept.sum()


class TestDegenerate:
    def test_stored_options_are_the_floor_of_guessing(self, report):
        result = run_analysis(n_options=4)
        fit = fit_two_parameter(TABLE, np.full(N, 0.25))
        np.testing.assert_array_equal(finding(result).response.difficulty, fit.difficulty)
        assert (number(report, "item_response.n_open"), number(result, "item_response.n_open")) == (N, 0)
        assert "no options are stored" in str(report.summary)
        assert "no options are stored" not in str(result.summary)

    def test_scores_that_are_not_right_or_wrong_have_no_item_response(self):
        result = run_analysis(TABLE * 0.5 + 0.1)
        assert "right (1) and wrong (0)" in reason(result, "item_response.tau")
        assert not result.prompt_values
        assert any("no item-response filter" in caveat for caveat in result.summary.caveats)
        assert reason(result, "full.agreement")
        assert set(result.figures) == {"random_subsets"}
        assert 0 <= number(result, "filter.tau.position") <= 1

    def test_a_filter_that_keeps_all_lies_in_the_middle_of_its_like(self):
        result = run_analysis(kept=np.ones(N, bool))
        assert number(result, "filter.tau") == 1
        assert number(result, "filter.tau.position") == 0.5

    def test_a_filter_that_keeps_nothing_has_no_numbers_but_its_share(self):
        result = run_analysis(kept=np.zeros(N, bool))
        assert number(result, "filter.share_removed") == 1
        for name in ("filter.tau", "filter.agreement", "filter.tau.position"):
            assert reason(result, name)
        assert np.isfinite(number(result, "item_response.tau"))
        result.figures["random_subsets"]()

    def test_one_model_has_no_ranking_and_no_agreement(self):
        result = run_analysis(TABLE[:, :1], models=())
        assert reason(result, "filter.tau")
        assert reason(result, "full.agreement")
        assert str(result.summary)

    def test_without_ranked_filter_models_there_is_no_number_without_them(self):
        result = run_analysis(models=(40,))
        assert "no ranked model filtered" in reason(result, "filter.tau_without_filter_models")
        assert "No filter model is ranked here." in result.warnings

    def test_without_another_benchmark_there_are_no_correlations(self):
        result = run_analysis()
        assert not any("pearson" in name or "spearman" in name for name in result.finding.metrics)
        assert "correlation" not in str(result.summary)

    def test_a_percentile_of_100_removes_everything(self):
        result = run_analysis(percentile=100)
        assert number(result, "item_response.share_removed") == 1
        assert reason(result, "item_response.tau")


class TestErrors:
    def test_a_filter_of_other_prompts_is_refused(self):
        scores = matrix(TABLE)
        second = replace(chosen(~EASY), prompt_ids=np.arange(N))
        with pytest.raises(SelectionError, match="Filter 7 has no decision on the selected prompts"):
            analyze(
                scores, replace(second, prompt_ids=np.arange(9000, 9000 + N)), answers(scores), None, options_of(scores)
            )

    def test_tables_without_a_complete_model_are_refused(self):
        table = TABLE.copy()
        table[np.arange(K), np.arange(K)] = np.nan
        with pytest.raises(SelectionError, match="No model has a score for every prompt"):
            run_analysis(table)

    def test_two_models_in_common_are_too_few(self):
        with pytest.raises(SelectionError, match="arena has scores of 2 of the 12 ranked models"):
            run_analysis(against=external_scores({0: 1.0, 1: 2.0}))

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"percentile": -1.0}, "percentile is -1"),
            ({"percentile": 101.0}, "percentile is 101"),
            ({"n_subsets": 0}, "n_subsets is 0"),
            ({"seed": -1}, "seed is -1"),
        ],
    )
    def test_options_that_mean_nothing_are_refused(self, options, text):
        with pytest.raises(SelectionError, match=text):
            run_analysis(**options)

    def test_infinite_scores_are_refused(self):
        table = TABLE.copy()
        table[0, 0] = np.inf
        with pytest.raises(SelectionError, match="1 scores are infinite"):
            run_analysis(table)


class TestWords:
    def test_fewer_than_200_models_are_warned_of_with_their_standard_errors(self, report):
        warning = next(
            warning for warning in report.warnings if warning.startswith("Item response is fitted to only 12 models")
        )
        for name in ("difficulty", "discrimination"):
            median = np.median(report.prompt_values[f"{name}_stderr"].values)
            assert f"{median:.2f} for {name}" in warning
            assert number(report, f"item_response.{name}.median_stderr") == median

    def test_200_models_are_not_warned_of(self):
        random = np.random.default_rng(0)
        table = (random.random((30, 200)) < random.random((30, 1))).astype(float)
        result = run_analysis(table, random.random(30) < 0.5, n_subsets=3)
        assert number(result, "item_response.n_models") == 200
        assert not any(warning.startswith("Item response is fitted") for warning in result.warnings)
        assert np.isfinite(number(result, "item_response.difficulty.median_stderr"))

    def test_the_summary_has_every_number_beside_random_subsets(self, report):
        text = " ".join(report.summary.evidence)
        assert f"before and after: filter {number(report, 'filter.tau'):.3f} (random " in text
        assert f"item response {number(report, 'item_response.tau'):.3f} (random " in text
        assert f"(tau-b {number(report, 'filter.tau'):.3f}, random " in report.summary.headline
        assert "40 random subsets" in text
        assert "over 10 models" in text
        assert "are both right or both wrong" in text

    def test_a_number_outside_the_middle_of_random_subsets_is_marked(self):
        against = TABLE[:, : K // 2].mean(axis=1) - TABLE[:, K // 2 :].mean(axis=1)
        summary = run_analysis(kept=against >= np.median(against)).summary
        assert "keeps the ranking worse than random subsets" in summary.headline
        (ranks,) = (item for item in summary.evidence if item.startswith("Tau-b of the rankings before and after"))
        assert ", below)" in ranks.split("item response")[0]

    def test_a_stale_filter_and_few_models_in_common_are_warned_of(self):
        result = run_analysis(stale="run 3", against=external_scores({j: float(j) for j in range(5)}))
        assert any("no longer the latest (run 3)" in warning for warning in result.warnings)
        assert "A correlation over 5 models is unreliable." in result.warnings

    def test_fewer_filter_models_than_there_were_are_warned_of(self):
        assert "Only 2 of 3 filter models are ranked here." in run_analysis(models=(0, 1, 77)).warnings


class TestTables:
    def test_methods_stand_beside_random_subsets_of_their_size(self, report):
        rows = report.tables["methods"].to_pylist()
        assert [row["method"] for row in rows] == [
            "all prompts",
            "filter",
            "random, as many as filter",
            "item_response",
            "random, as many as item_response",
        ]
        everything, row, drawn = rows[:3]
        assert everything["tau"] is None
        assert everything["pearson"] == number(report, "full.pearson")
        assert row["tau"] == number(report, "filter.tau")
        assert row["tau_position"] == number(report, "filter.tau.position")
        assert drawn["tau"] == number(report, "filter.tau.random_mean")
        assert drawn["tau_low"] == number(report, "filter.tau.random_low")
        assert row["n_prompts"] == drawn["n_prompts"] == (~EASY).sum()

    def test_models_are_listed_best_first_with_what_random_subsets_give(self, report):
        table = report.tables["models"].to_pydict()
        assert table["rank"] == sorted(table["rank"])
        place = table["model"].index(f"model {K - 1}")
        assert table["is_filter_model"][place]
        assert table["filter_score"][place] == pytest.approx(TABLE[~EASY, K - 1].mean())
        assert table["filter_random_low"][place] < table["score"][place] < table["filter_random_high"][place]


class TestFigures:
    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("against", [None, external_scores({j: float(j % 5) for j in range(K)})])
    def test_pictures_are_drawn_with_labelled_axes(self, against):
        for draw in run_analysis(against=against).figures.values():
            figure, written = draw(), io.BytesIO()
            figure.savefig(written, format="png", dpi=60)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert any(axes.get_xlabel() for axes in figure.axes)
            assert any(axes.get_ylabel() for axes in figure.axes)

    def test_every_random_subset_is_in_its_bar_and_the_selection_on_its_line(self, report):
        panels = report.figures["random_subsets"]().axes
        assert len(panels) == 10
        for axes, (method, name) in zip(
            panels, [(m, s) for m in ("filter", "item_response") for s in finding(report).statistics], strict=True
        ):
            assert sum(bar.get_height() for bar in axes.patches) == 40
            assert number(report, f"{method}.{name}") in [line.get_xdata()[0] for line in axes.lines]

    def test_every_prompt_is_shown_once(self, report):
        drawn = report.figures["prompts"]().axes[0].collections
        assert sum(len(points.get_offsets()) for points in drawn) == N


class TestNumerics:
    def test_selections_of_one_size_meet_the_same_random_ones(self):
        both = [
            compare_with_random(
                TABLE, kept, None, excluded=np.zeros(K, bool), external_scores=None, n_subsets=10, seed=2
            )
            for kept in (np.arange(N) < 60, np.arange(N) >= N - 60)
        ]
        np.testing.assert_array_equal(both[0].random_means, both[1].random_means)
        assert both[0].values["tau"] != both[1].values["tau"]

    def test_without_answers_there_is_no_agreement(self):
        nowhere = np.zeros(K, bool)
        result = compare_with_random(TABLE, ~EASY, None, excluded=nowhere, external_scores=None, n_subsets=4, seed=0)
        assert np.isnan(result.values["agreement"])
        assert np.isnan(result.random["agreement"]).all()
        assert np.isnan(result.position("agreement"))
        assert np.isnan(full_statistics(TABLE, None, external_scores=None)["agreement"])


def test_the_share_is_the_same_quotient_as_in_other_findings() -> None:
    none = np.empty(0)
    result = SelectionComparison(kept=np.arange(1200) < 921, values={}, random={}, means=none, random_means=none)
    assert result.share_removed == 279 / 1200  # 1 - 921 / 1200 is a little more, and another figure once rounded
