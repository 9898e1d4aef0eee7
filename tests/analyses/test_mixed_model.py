from __future__ import annotations

import io
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from performance_matrices import matrix
from threadpoolctl import threadpool_info, threadpool_limits

from analyses.mixed_model import analyze, method
from analyses.mixed_model.summary import list_warnings, summarize
from analyses.numerics.mixed.gaussian import fit_gaussian
from tracker.errors import SelectionError
from tracker.queries.catalogue.covariates import Covariates
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Report, Undefined
from tracker.statistics.grouping import group_rows
from tracker.statistics.rank_intervals import rank_spans

N, K = 60, 6
ABILITY = np.array([1.6, 1.3, 0.2, 0.0, -0.9, -1.2])
RNG = np.random.default_rng(5)
REAL = ABILITY + RNG.normal(0, 1, (N, 1)) + RNG.normal(0, 1, (N, K))
BINARY = (REAL > 0).astype(float)
TASKS = np.array(list("abcde") * (N // 5))


def requested(Q: np.ndarray = REAL, tasks: np.ndarray = TASKS, stored: dict | None = None, **options) -> Report:
    """The report on a table; rows are sorted by task as the store returns them."""
    scores = replace(matrix(Q), tasks=tasks[: len(Q)])
    return analyze(scores, covariates_of(scores, **(stored or {})), **options)


def covariates_of(scores: PerformanceMatrix, few_shot=None, families=None, lengths=None) -> Covariates:
    n, k = scores.Q.shape
    return Covariates(
        run_ids=scores.run_ids,
        few_shot=np.full(k, np.nan) if few_shot is None else np.array(few_shot, dtype=float),
        families=np.array(families or [""] * k),
        prompt_ids=scores.prompt_ids,
        lengths=np.full(n, np.nan) if lengths is None else np.array(lengths, dtype=float),
    )


class TestRanks:
    @pytest.mark.parametrize("table", [REAL, BINARY])
    def test_planted_models_are_ranked_and_close_ones_are_not_distinguished(self, table):
        report = requested(table)
        ranking = report.rankings["mixed-model"]
        assert sorted(ranking.rank[:2]) == [1, 2]
        assert ranking.rank_high[:2].max() <= 3
        assert ranking.rank_low[4:].min() >= 4
        assert ((ranking.low < ranking.score) & (ranking.score < ranking.high)).all()
        assert report.summary.headline.startswith("model ")
        assert "on other tasks like these" in report.summary.headline

    def test_other_ranks_on_the_leaderboard_are_in_the_headline(self):
        report = requested(BINARY)
        low, high = rank_spans(BINARY, group_rows(TASKS), bounds=(0.0, 1.0))
        metrics = report.finding.metrics
        ends = metrics["other_tasks.clustered.rank_low"], metrics["other_tasks.clustered.rank_high"]
        assert ends == (low[0], high[0]) == (1, 3)
        assert report.summary.headline.endswith("on other tasks like these (ranks 1–3 on the leaderboard).")
        assert any("counts prompts equally" in caveat for caveat in report.summary.caveats)
        same = requested(np.column_stack([REAL[:, 0] + 50, REAL[:, 2]]))
        assert same.summary.headline.endswith("rank 1 on other tasks like these.")

    def test_a_model_that_the_leaderboard_does_not_rank_has_no_ranks_there(self):
        Q = BINARY.copy()
        Q[:20, 0] = np.nan
        assert isinstance(requested(Q).finding.metrics["other_tasks.clustered.rank_low"], Undefined)
        assert isinstance(requested(tasks=np.full(N, "a")).finding.metrics["other_tasks.clustered.rank_low"], Undefined)

    @pytest.mark.parametrize("size", [1e200, 1e-200])
    def test_scores_of_any_size_have_the_same_ranks_and_shares(self, size):
        plain, scaled = requested(), requested(size * REAL)
        for name in ("rank", "rank_low", "rank_high"):
            np.testing.assert_array_equal(
                getattr(scaled.rankings["mixed-model"], name), getattr(plain.rankings["mixed-model"], name)
            )
        for name, value in plain.finding.metrics.items():
            if name.startswith("share.") and not isinstance(value, Undefined):
                assert scaled.finding.metrics[name] == pytest.approx(value, rel=1e-3)
        expected = [size * row["stderr"] for row in plain.tables["models"].to_pylist()]
        assert [row["stderr"] for row in scaled.tables["models"].to_pylist()] == pytest.approx(expected, rel=1e-3)

    def test_an_incomplete_model_is_ranked_by_what_its_prompts_are_worth(self):
        hard_first = np.argsort(REAL.mean(axis=1))
        gaps = REAL.copy()
        gaps[hard_first[N // 2 :], 0] = np.nan  # the best model, scored on hard prompts alone
        report = requested(gaps)
        means = np.nanmean(gaps, axis=0)
        assert means[0] < means[1]
        assert report.rankings["mixed-model"].rank[0] <= 2
        table = report.tables["models"].to_pandas().set_index("model")
        assert table.loc["model 0", "completed_mean"] > table.loc["model 0", "mean"] + 0.3
        assert report.finding.metrics["n_missing"] == N // 2
        assert any("missing at random" in text for text in report.summary.evidence)

    def test_where_lower_is_better_the_ranks_are_turned_round(self):
        scores = replace(matrix(REAL), tasks=TASKS)
        first = analyze(scores, covariates_of(scores)).rankings["mixed-model"]
        turned = replace(scores, Q=-REAL, higher_is_better=False)
        second = analyze(turned, covariates_of(turned)).rankings["mixed-model"]
        assert second.rank.tolist() == first.rank.tolist()
        assert second.rank_low.tolist() == first.rank_low.tolist()
        assert second.score == pytest.approx(-first.score, abs=1e-6)

    def test_mmlu_pro_ranks_the_incomplete_models_and_keeps_its_leader(self, mmlu_pro_full):
        parts = np.array([f"part {i % 14}" for i in range(mmlu_pro_full.n_prompts)])
        scores = replace(mmlu_pro_full, tasks=parts)
        report = analyze(scores, covariates_of(scores), response="gaussian")
        assert report.finding.metrics["n_models"] == 29
        assert report.summary.headline.startswith("gemini-1.5-pro-002 is first by the mixed model: rank 1 on these")


STORED = {"few_shot": [5, 5, 0, 5, 0, 0], "families": list("xxyyzz"), "lengths": np.arange(N) + 20.0}


class TestCovariates:
    def test_those_that_are_stored_are_tested_with_holm(self):
        report = requested(REAL - 0.8 * np.log2(STORED["lengths"])[:, None], stored=STORED)
        rows = {row["covariate"]: row for row in report.tables["covariates"].to_pylist()}
        assert rows.keys() == {"few_shot", "prompt_length", "family"}
        assert all(row["holm"] >= row["pvalue"] for row in rows.values())
        length = rows["prompt_length"]
        assert length["estimate"] == pytest.approx(-0.8, abs=3 * length["stderr"])
        assert length["degrees"] > 10
        assert 0 < rows["few_shot"]["degrees"] < 10
        assert report.finding.metrics["share.family"] >= 0

    def test_what_is_unknown_for_some_is_excluded_with_the_reason(self):
        report = requested(stored={"few_shot": [5] * K, "lengths": [np.nan, *range(1, N)], "families": ["x"] * K})
        assert report.finding.tests == ()
        assert report.finding.coded.excluded == {
            "few_shot": "it is equal for all models",
            "prompt_length": "it is unknown for 1 of 60 prompts",
            "family": "all models are of one family",
        }
        assert report.finding.metrics["variance.family"] == Undefined("all models are of one family")

    def test_none_leaves_them_out(self):
        assert requested(stored=STORED, covariates="none").finding.tests == ()

    def test_one_that_separates_the_scores_is_excluded(self):
        Q = np.repeat([[1.0, 1, 1, 0, 0, 0]], 20, axis=0)
        report = requested(Q, stored={"few_shot": [5, 5, 5, 0, 0, 0]})
        assert "it separates the scores" in report.finding.coded.excluded["few_shot"]

    def test_families_have_a_variance_where_their_models_are_similar(self):
        shift = np.array([2.0, 2.1, -2.0, -2.2, 0.1, 0.0])
        report = requested(RNG.normal(0, 1, (N, K)) + shift, stored={"families": list("xxyyzz")})
        metrics = report.finding.metrics
        assert metrics["variance.family"] > metrics["variance.model"]
        assert metrics["family.pvalue"] < 0.05


class TestStatsmodels:
    @pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
    def test_a_small_table_has_the_likelihood_of_statsmodels(self, size):
        report = requested(REAL[:40] * size, TASKS[:40], response="gaussian")
        metrics = report.finding.metrics
        assert metrics["statsmodels.log_likelihood"] == pytest.approx(metrics["log_likelihood"], rel=1e-8)
        assert report.summary.evidence[-1].endswith("statsmodels fits the same likelihood.")

    def test_a_better_fit_is_a_warning(self):
        report = requested(REAL[:40], TASKS[:40], response="gaussian")
        better = replace(report.finding, by_statsmodels=report.finding.fit.log_likelihood + 1.0)
        assert any("statsmodels reaches the log-likelihood" in text for text in list_warnings(better, ()))
        assert not any("statsmodels" in text for text in summarize(better).evidence)

    def test_a_likelihood_that_statsmodels_does_not_reach_confirms_nothing(self):
        report = requested(REAL[:40], TASKS[:40], response="gaussian")
        worse = replace(report.finding, by_statsmodels=report.finding.fit.log_likelihood - 1.0)
        assert not any("statsmodels" in text for text in (*summarize(worse).evidence, *list_warnings(worse, ())))

    def test_logistic_models_have_none(self):
        scores = (np.random.default_rng(0).random((30, 6)) < 0.5).astype(float)
        logistic = requested(scores, TASKS[:30])
        assert "scores of 0 and 1" in logistic.finding.metrics["statsmodels.log_likelihood"].reason


class TestDegenerate:
    def test_one_task_has_no_variance_of_tasks(self):
        report = requested(tasks=np.full(N, ""))
        assert report.finding.metrics["variance.task"] == Undefined("there is only one task")
        assert report.finding.metrics["other_tasks.n_may_lead"] == Undefined("there is only one task")
        assert "other tasks" not in report.summary.headline

    def test_tasks_of_one_prompt_have_no_variance_of_prompts(self):
        report = requested(tasks=np.array([f"{i:02}" for i in range(N)]))
        assert report.finding.metrics["variance.prompt"] == Undefined("no task has two prompts")
        assert report.finding.metrics["variance.model_task"] == Undefined("no task has two prompts")

    def test_a_model_without_scores_is_excluded(self):
        report = requested(np.column_stack([REAL, np.full(N, np.nan)]))
        assert report.finding.metrics["n_models"] == K
        assert report.warnings[0] == "Models without a score are left out: model 6."

    def test_perfect_separation_gives_finite_effects_and_a_warning(self):
        report = requested(np.repeat([[1.0, 0, 1, 0, 0, 1]], 20, axis=0))
        assert np.isfinite(report.rankings["mixed-model"].score).all()
        assert any("grows without bound" in warning for warning in report.warnings)

    def test_two_models_on_two_prompts_are_not_distinguished(self):
        report = requested(np.array([[1.0, 0.3], [0.2, 0.1]]))
        assert report.rankings["mixed-model"].rank_high.tolist() == [2, 2]

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("table", [REAL, BINARY[:, :2]])
    def test_pictures_are_drawn_with_labelled_axes(self, table):
        for draw in requested(table).figures.values():
            figure, written = draw(), io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[0].get_xlabel()
            assert figure.axes[0].get_ylabel()


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"Q": REAL[:, :1]}, "needs 2 models"),
            ({"Q": REAL[:1]}, "needs 2 prompts"),
            ({"Q": np.full((4, 3), 0.5)}, "Every score is the same"),
            ({"Q": np.full((4, 3), np.inf)}, "infinite"),
            ({"Q": np.add.outer(np.arange(9.0), np.arange(4.0))}, "explain every score"),
            ({"response": "logistic"}, "scores of 0 and 1"),
            ({"Q": BINARY, "likelihood": "full"}, "available for the linear model"),
            ({"level": 1.0}, "between 0 and 1"),
        ],
    )
    def test_what_has_no_mixed_model_is_rejected(self, options, words):
        with pytest.raises(SelectionError, match=words):
            requested(**options)


def test_blas_has_one_thread_while_the_model_is_fitted(monkeypatch):
    seen = []

    def fit(*arguments, **options):
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return fit_gaussian(*arguments, **options)

    monkeypatch.setattr(method, "fit_gaussian", fit)
    with threadpool_limits(2, user_api="blas"):
        requested()
    assert set(seen) == {1}
