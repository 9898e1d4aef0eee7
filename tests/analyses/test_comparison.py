from __future__ import annotations

import dataclasses
import io

import matplotlib.image
import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from analyses.comparison import analyze
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.recording.finding import Undefined

RNG = np.random.default_rng(12)
N = 240
TASKS = np.array(["art", "history", "law", "logic", "math", "physics"] * (N // 6))
BINARY = (RNG.random((N, 3)) < RNG.beta(2, 2, (N, 1)) * [0.95, 0.75, 0.5] + [0.1, 0.1, 0.0]).astype(float)
CONTINUOUS = BINARY * 0.5 + RNG.random((N, 3))
FEW = {"n_resamples": 299}


def inputs(Q: np.ndarray, tasks: np.ndarray = TASKS, field: str = "task", **rest):
    n, k = Q.shape
    ids = np.arange(100, 100 + n, dtype=np.int64)
    scores = PerformanceMatrix(
        Q=Q,
        prompt_ids=ids,
        tasks=tasks[:n],
        models=tuple("ABCDE"[:k]),
        run_ids=np.arange(k),
        benchmark="b",
        metric="accuracy",
        **rest,
    )
    prompts = PromptTexts(
        prompt_ids=ids,
        tasks=tuple(tasks[:n].tolist()),
        names=tuple(f"p{i}" for i in range(n)),
        texts=tuple(None if i % 7 == 0 else f"What is\n{i} \x1b[31mplus {i}?" for i in range(n)),
        choices=(None,) * n,
        answers=(None,) * n,
        details=({},) * n,
    )
    names = {"task": tasks[:n], "none": np.full(n, ""), "passage": np.array([f"text {i // 3}" for i in range(n)])}
    return scores, prompts, Clusters(field=field, prompt_ids=ids, names=names[field])


def requested(Q: np.ndarray = BINARY, field: str = "task", tasks: np.ndarray = TASKS, **options):
    rest = {"higher_is_better": options.pop("higher_is_better", True)}
    return analyze(*inputs(Q, tasks, field, **rest), **{"model_a": "A", "model_b": "B"} | FEW | options)


class TestAgainstReference:
    def test_numbers_are_those_of_scipy_and_statsmodels(self):
        metrics = requested().finding.metrics
        a, b = BINARY[:, 0], BINARY[:, 1]
        d = a - b
        plain = sm.OLS(d, np.ones(N)).fit()
        clustered = plain.get_robustcov_results("cluster", groups=np.unique(TASKS, return_inverse=True)[1], use_t=True)
        for kind, expected in (("naive", plain), ("clustered", clustered)):
            low, high = expected.conf_int()[0]
            result = [metrics[f"{kind}.{name}"] for name in ("stderr", "low", "high", "pvalue")]
            assert result == pytest.approx([expected.bse[0], low, high, expected.pvalues[0]], abs=1e-10)
        n_a, n_b = int((d > 0).sum()), int((d < 0).sum())
        assert (metrics["n_a_better"], metrics["n_b_better"], metrics["n_equal"]) == (n_a, n_b, N - n_a - n_b)
        assert metrics["mcnemar.pvalue"] == pytest.approx(mcnemar([[0, n_a], [n_b, 0]], exact=True).pvalue, abs=1e-10)
        assert metrics["flips.pvalue"] == pytest.approx(metrics["mcnemar.pvalue"], rel=1e-10)
        error = np.hypot(scipy.stats.sem(a), scipy.stats.sem(b))
        assert metrics["unpaired.stderr"] == pytest.approx(error, rel=1e-12)
        assert metrics["pairing_gain"] == pytest.approx((error / plain.bse[0]) ** 2)
        assert metrics["correlation"] == pytest.approx(np.corrcoef(a, b)[0, 1], rel=1e-10)

    def test_clusters_of_equal_size_have_the_same_error_by_both_corrections(self):
        metrics = requested().finding.metrics
        for name in ("stderr", "low", "high", "pvalue"):
            assert metrics[f"cr2.{name}"] == pytest.approx(metrics[f"clustered.{name}"], rel=1e-10)
        assert metrics["cr2.degrees"] == pytest.approx(5)

    def test_tasks_are_adjusted_for_being_many(self):
        table = requested().tables["tasks"].to_pydict()
        assert table["task"] == sorted(set(TASKS.tolist()))
        p = []
        for task in table["task"]:
            d = (BINARY[:, 0] - BINARY[:, 1])[task == TASKS]
            p.append(scipy.stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue)
        assert table["pvalue"] == pytest.approx(p, abs=1e-10)
        assert table["holm"] == pytest.approx(multipletests(p, method="holm")[1], abs=1e-10)
        assert table["benjamini_hochberg"] == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-10)
        assert set(table["test"]) == {"exact McNemar"}

    def test_tasks_are_clustered_by_what_is_finer_than_a_task(self):
        order = np.argsort(TASKS, kind="stable")
        report = requested(BINARY[order], "passage", TASKS[order])
        row = report.tables["tasks"].to_pylist()[0]
        d = (BINARY[order][:, 0] - BINARY[order][:, 1])[:40]
        passages = np.arange(40) // 3
        expected = sm.OLS(d, np.ones(40)).fit(cov_type="cluster", cov_kwds={"groups": passages}, use_t=True)
        assert row["test"] == "clustered t"
        assert row["stderr"] == pytest.approx(expected.bse[0], rel=1e-10)
        assert row["pvalue"] == pytest.approx(expected.pvalues[0], rel=1e-10)

    def test_other_scores_have_no_mcnemar_but_flipped_signs(self):
        metrics = requested(CONTINUOUS, n_resamples=2999).finding.metrics
        assert isinstance(metrics["mcnemar.pvalue"], Undefined)
        d = CONTINUOUS[:, 0] - CONTINUOUS[:, 1]
        assert metrics["flips.pvalue"] == pytest.approx(scipy.stats.ttest_1samp(d, 0).pvalue, abs=0.01)
        assert metrics["flips.n_drawn"] == 2999
        half = 1.96 * scipy.stats.sem(d)
        assert [metrics["bca.low"], metrics["bca.high"]] == pytest.approx([d.mean() - half, d.mean() + half], abs=0.01)
        assert set(requested(CONTINUOUS).tables["tasks"].to_pydict()["test"]) == {"paired t"}

    def test_the_real_table_of_mmlu_pro(self, mmlu_pro):
        pair = mmlu_pro.Q[:, :2]
        metrics = requested(pair, "none", np.full(len(pair), "")).finding.metrics
        n_a, n_b = int((pair[:, 0] > pair[:, 1]).sum()), int((pair[:, 0] < pair[:, 1]).sum())
        assert metrics["mcnemar.pvalue"] == pytest.approx(scipy.stats.binomtest(n_a, n_a + n_b).pvalue, rel=1e-10)


class TestLaws:
    def test_the_other_method_round_everything_changes_sides(self):
        item, second = requested().finding.metrics, requested(model_a="B", model_b="A").finding.metrics
        assert second["difference"] == -item["difference"]
        assert (second["clustered.low"], second["n_a_better"]) == (-item["clustered.high"], item["n_b_better"])
        for name in ("clustered.pvalue", "mcnemar.pvalue", "clustered.flips.pvalue", "detectable"):
            assert second[name] == pytest.approx(item[name], rel=1e-12)

    @pytest.mark.parametrize("Q", [BINARY, CONTINUOUS])
    def test_where_lower_is_better_the_first_is_better_by_being_lower(self, Q):
        item, second = requested(Q).finding.metrics, requested(1 - Q, higher_is_better=False).finding.metrics
        for name in ("difference", "clustered.low", "clustered.high", "unpaired.stderr", "n_a_better", "flips.pvalue"):
            assert second[name] == pytest.approx(item[name], rel=1e-9)
        assert second["mean_a"] == pytest.approx(1 - item["mean_a"])
        warnings = " ".join(requested(1 - Q, higher_is_better=False).warnings)
        assert "Lower accuracy is better" in warnings

    def test_two_models_need_not_be_named(self):
        names, open_ = requested(BINARY[:, :2]), requested(BINARY[:, :2], model_a="", model_b="")
        assert names.finding.metrics == open_.finding.metrics
        assert requested(BINARY[:, :2], model_a="", model_b="A").finding.models == ("B", "A")

    def test_only_shared_prompts_count_and_the_others_are_reported(self):
        Q = BINARY.copy()
        Q[:10, 0], Q[10:14, 1], Q[:20, 2], Q[20, :2] = np.nan, np.nan, np.nan, np.nan
        report = requested(Q)
        rest = np.delete(np.arange(N), [*range(14), 20])
        alone = requested(BINARY[rest], tasks=TASKS[rest])
        metrics = dict(report.finding.metrics)
        assert metrics.pop("n_left_out") == 14
        assert metrics == {name: value for name, value in alone.finding.metrics.items() if name != "n_left_out"}
        output = " ".join(report.warnings)
        assert "10 prompts of B without a score of A" in output
        assert "4 prompts of A without a score of B" in output

    def test_flips_are_all_in_the_table(self):
        report = requested()
        rows = report.tables["flips"].to_pylist()
        d = BINARY[:, 0] - BINARY[:, 1]
        assert sorted(row["prompt"] for row in rows) == sorted(f"p{i}" for i in np.flatnonzero(d))
        for row in rows:
            place = int(row["prompt"][1:])
            assert (row["score_a"], row["score_b"], row["task"]) == (*BINARY[place, :2], TASKS[place])
            assert row["better"] == ("A" if d[place] > 0 else "B")

    def test_the_largest_differences_come_first(self):
        sizes = np.abs(requested(CONTINUOUS).tables["flips"].column("advantage_of_a").to_numpy())
        assert (np.diff(sizes) <= 0).all()

    def test_the_verdict_is_by_cr2_where_one_task_holds_most_prompts(self):
        tasks = np.array(["large"] * 180 + ["b", "c", "d", "e", "f", "g"] * 10)
        report = requested(tasks=tasks)
        assert report.finding.comparison.best is report.finding.comparison.uneven
        assert "of very unequal sizes" in str(report.summary)
        assert any("the largest has 75% of the prompts" in warning for warning in report.warnings)
        result = requested().finding.comparison
        assert result.best is result.clustered

    def test_the_same_seed_gives_the_same_numbers(self):
        item, again, second = (requested(CONTINUOUS, seed=seed).finding.metrics for seed in (1, 1, 2))
        assert item == again != second

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("Q", [BINARY, CONTINUOUS, BINARY[:1], BINARY[:, [0, 0]]])
    def test_pictures_are_drawn_with_labelled_axes(self, Q):
        for draw in requested(Q).figures.values():
            figure, written = draw(), io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[0].get_xlabel()
            assert figure.axes[0].get_ylabel()

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize(
        ("field", "label"), [("task", "all prompts (240), 6 clusters"), ("none", "all prompts (240)")]
    )
    def test_the_picture_reports_that_the_interval_over_all_is_another_kind(self, field, label):
        axes = requested(BINARY, field).figures["differences"]().axes[0]
        assert axes.get_yticklabels()[-1].get_text() == label


class TestWords:
    def test_a_clear_difference_is_a_verdict_with_what_pairing_gains_beside_it(self):
        output = str(requested(np.column_stack([BINARY[:, 0], BINARY[:, 2]])).summary)
        assert output.startswith("A is better than B by 0.")
        assert "clustered by task: 6 clusters" in output
        assert "times as many" in output

    def test_what_may_be_chance_is_no_verdict(self):
        Q = np.column_stack([BINARY[:, 0], np.roll(BINARY[:, 0], 1)])
        output = str(requested(Q, "none").summary)
        assert "but not significantly" in output or "have equal means" in output
        assert "prompts as independent" in output

    def test_identical_models_are_reported_to_be(self):
        report = requested(BINARY[:, [0, 0]])
        assert "the same score on every shared prompt" in str(report.summary)
        metrics = report.finding.metrics
        assert (metrics["difference"], metrics["clustered.pvalue"], metrics["mcnemar.pvalue"]) == (0, 1, 1)
        assert isinstance(metrics["bca.low"], Undefined)
        assert isinstance(metrics["detectable"], Undefined)

    def test_one_prompt_is_too_few(self):
        report = requested(np.array([[1.0, 0.0]]))
        assert "too few prompts for a test" in str(report.summary)
        assert isinstance(report.finding.metrics["naive.stderr"], Undefined)
        assert isinstance(report.finding.metrics["unpaired.stderr"], Undefined)

    @pytest.mark.parametrize(
        ("field", "tasks", "reason"),
        [
            ("none", TASKS, "prompts are not in clusters"),
            ("task", np.full(N, ""), "no prompt has a cluster"),
            ("task", np.full(N, "art"), "all prompts are in one cluster"),
        ],
    )
    def test_without_clusters_the_reason_is_passed(self, field, tasks, reason):
        metrics = requested(BINARY, field, tasks).finding.metrics
        undefined = [name for name in metrics if name.startswith(("clustered.", "cr2.", "n_clusters"))]
        assert len(undefined) == 13
        assert {metrics[name] for name in undefined} == {Undefined(reason)}

    def test_prompts_without_a_cluster_are_counted_in_a_warning(self):
        tasks = TASKS.copy()
        tasks[:5] = ""
        report = requested(tasks=tasks)
        assert report.finding.metrics["n_clusters"] == 11
        assert "5 of 240 prompts have no task; each of them is a separate cluster." in report.warnings

    def test_every_difference_the_same_is_defined(self):
        Q = np.column_stack([np.full(30, 0.75), np.full(30, 0.25)])
        metrics = requested(Q, "none").finding.metrics
        assert metrics["naive.stderr"] == 0
        assert metrics["flips.pvalue"] == pytest.approx(2 / 2**30)

    def test_where_all_clusters_report_the_same_there_is_no_interval_and_no_t(self):
        report = requested(np.column_stack([np.ones(N), np.zeros(N)]))
        output = str(report.summary)
        assert "All clusters give the same difference, so there is no interval." in output
        assert "Test: sign flips of whole clusters. For comparison: exact McNemar" in output
        assert "paired t-test" not in output
        continuous = requested(np.column_stack([np.full(N, 0.75), np.full(N, 0.25)])).tables["tasks"]
        assert set(continuous["test"].to_pylist()) == {"flipped signs"}

    def test_an_interval_that_disagrees_with_the_exact_test_is_owned_up_to(self):
        Q = np.zeros((100, 2))
        Q[:5, 0] = 1
        assert "the verdict follows the test" in requested(Q, "none").summary.caveats[0]
        Q[:9, 0] = 1
        assert not requested(Q, "none").summary.caveats

    @pytest.mark.parametrize(
        ("second", "margin", "verdict"),
        [
            (BINARY[:, 2], 0.01, "A is better than B by"),
            (BINARY[:, 2], 0.9, "A and B are equivalent within ±0.9: A is better, but by less than the margin"),
            (np.roll(BINARY[:, 0], 1), 0.3, "A and B are equivalent within ±0.3: their difference is"),
            (
                np.roll(BINARY[:, 0], 1),
                0.01,
                "Inconclusive: A and B are neither significantly different",
            ),
        ],
    )
    @pytest.mark.parametrize("field", ["task", "none"])
    def test_a_margin_gives_one_of_three_verdicts(self, second, margin, verdict, field):
        report = requested(np.column_stack([BINARY[:, 0], second]), field, margin=margin)
        assert report.summary.headline.startswith(verdict)
        metrics = report.finding.metrics
        inside = -margin <= metrics["equivalence.low"] and metrics["equivalence.high"] <= margin
        assert inside == (metrics["equivalence.pvalue"] <= 0.05) == ("equivalent within" in verdict)
        assert any("two one-sided tests" in text for text in report.summary.evidence)

    def test_equal_scores_of_few_prompts_are_not_equivalent(self):
        report = requested(CONTINUOUS[:, [0, 0]], margin=0.01)
        assert "the same score on every shared prompt" in report.summary.headline
        assert isinstance(report.finding.metrics["equivalence.low"], Undefined)

    def test_means_that_differ_by_rounding_are_equal(self):
        Q = np.column_stack([[0.1, 0.2, 0.0], [0.0, 0.0, 0.3]])
        assert "have equal means" in str(requested(Q, "none").summary)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"model_a": "Z"}, NotFoundError, "No model 'Z' with scores on b"),
            ({"model_a": ""}, SelectionError, "--model-a"),
            ({"model_b": "A"}, SelectionError, "Both models are A. Name two models"),
            ({"level": 1.0}, SelectionError, "between 0 and 1"),
            ({"n_resamples": 0}, SelectionError, "at least 1"),
            ({"margin": 0.0}, SelectionError, "margin is 0; it must be a positive number"),
            ({"margin": 0.1, "level": 0.4}, SelectionError, "with a margin it must be above 0.5"),
            ({"seed": -1}, SelectionError, "at least 0"),
        ],
    )
    def test_what_cannot_be_compared_is_refused_with_words_that_help(self, options, error, words):
        with pytest.raises(error, match=words):
            requested(**options)

    def test_models_without_a_common_prompt_are_refused(self):
        Q = BINARY.copy()
        Q[::2, 0], Q[1::2, 1] = np.nan, np.nan
        with pytest.raises(SelectionError, match="no prompt in common"):
            requested(Q)

    def test_infinite_scores_are_refused(self):
        Q = CONTINUOUS.copy()
        Q[0, 0] = np.inf
        with pytest.raises(SelectionError, match="infinite"):
            requested(Q)

    @pytest.mark.parametrize("size", [1e300, 1e-9, 1e-290])
    def test_very_large_and_small_scores_give_the_same_tests(self, size):
        item, second = requested(CONTINUOUS).finding.metrics, requested(CONTINUOUS * size).finding.metrics
        for name in ("naive.pvalue", "clustered.pvalue", "flips.pvalue", "pairing_gain", "correlation"):
            assert second[name] == pytest.approx(item[name], rel=1e-6)
        for name in ("difference", "stderr", "low", "high", "clustered.stderr", "bca.low", "detectable"):
            assert second[name] == pytest.approx(item[name] * size, rel=1e-6)

    def test_differences_beyond_float64_are_undefined_and_still_tested(self):
        Q = np.where(np.median(CONTINUOUS) < CONTINUOUS, 1.7e308, -1.7e308)
        report = requested(Q)
        expected = requested(Q / 2.0**1000).finding.metrics
        assert report.finding.metrics["pvalue"] == pytest.approx(expected["pvalue"])
        for figure in report.figures.values():
            figure().savefig(io.BytesIO(), format="svg")

    def test_an_infinite_score_of_another_model_does_not_matter(self):
        scores, prompts, clusters = inputs(CONTINUOUS)
        second = dataclasses.replace(scores, Q=np.where(np.arange(3) == 2, np.inf, CONTINUOUS))
        assert analyze(second, prompts, clusters, model_a="A", model_b="B", **FEW).finding.metrics
