from __future__ import annotations

import io
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.multitest import multipletests

from analyses.rank_intervals import analyze
from tracker.errors import SelectionError
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.leaderboard_result import describe_task_spans
from tracker.recording.finding import Undefined

RNG = np.random.default_rng(13)
N, K = 300, 6
TASKS = np.array(list("abcdefghijkl") * (N // 12))
Q = (RNG.random((N, K)) < np.array([0.5, 0.8, 0.52, 0.2, 0.79, 0.5])).astype(float)
MODELS = tuple("UVWXYZ")
FEW = {"n_resamples": 200}


def requested(
    Q: np.ndarray = Q,
    field: str = "none",
    tasks: np.ndarray = TASKS,
    higher_is_better: bool = True,
    strata: np.ndarray | None = None,
    **options,
):
    n, k = Q.shape
    ids = np.arange(7, 7 + n, dtype=np.int64)
    scores = PerformanceMatrix(
        Q=Q,
        prompt_ids=ids,
        tasks=tasks[:n],
        models=MODELS[:k],
        run_ids=np.arange(k),
        metric="accuracy",
        higher_is_better=higher_is_better,
        worst=0.0 if higher_is_better else 1.0,
        best=1.0 if higher_is_better else 0.0,
    ).treat_missing("bounds")
    names = np.full(n, "") if field == "none" else tasks[:n]
    effects = "random" if strata is None else "fixed"
    clusters = Clusters(field=field, prompt_ids=ids, names=names, tasks=strata, task_effects=effects)
    return analyze(scores, clusters, **FEW | options)


class TestAgainstReference:
    def test_pairs_are_those_of_scipy_and_statsmodels(self):
        rows = requested().tables["pairs"].to_pylist()
        assert len(rows) == K * (K - 1) // 2
        p = []
        for row in rows:
            a, b = (Q[:, MODELS.index(row[name])] for name in ("model", "other"))
            expected = scipy.stats.ttest_rel(a, b)
            p.append(expected.pvalue)
            assert row["difference"] == pytest.approx(a.mean() - b.mean(), abs=1e-12)
            assert row["difference"] >= 0
            n_a, n_b = int((a > b).sum()), int((a < b).sum())
            assert (row["n_only_model"], row["n_only_other"]) == (n_a, n_b)
            assert row["mcnemar_pvalue"] == pytest.approx(scipy.stats.binomtest(n_a, n_a + n_b).pvalue, rel=1e-10)
        rejected, holm, *_ = multipletests(p, 0.05, method="holm")
        assert [row["pvalue"] for row in rows] == pytest.approx(p, abs=1e-10)
        assert [row["holm"] for row in rows] == pytest.approx(holm, abs=1e-10)
        assert [row["separable"] for row in rows] == rejected.tolist()
        assert requested().finding.metrics["n_separable_pairs"] == rejected.sum()

    def test_the_models_planted_close_are_one_group(self):
        report = requested()
        groups: dict[int, set[str]] = {}
        for row in report.tables["groups"].to_pylist():
            groups.setdefault(row["group"], set()).add(row["model"])
        assert list(groups.values()) == [{"V", "Y"}, {"U", "W", "Z"}]
        ranking = report.rankings["rank-intervals"]
        ends = dict(zip(ranking.models, zip(ranking.rank_low, ranking.rank_high, strict=True), strict=True))
        assert ends == {"V": (1, 2), "Y": (1, 2), "U": (3, 5), "W": (3, 5), "Z": (3, 5), "X": (6, 6)}
        assert "No significant difference within: ranks 1–2; ranks 3–5." in report.summary.evidence
        assert report.summary.headline.endswith("may be first too: the difference is not significant.")

    def test_the_headline_has_the_ranks_on_these_and_on_other_tasks(self):
        strong = Q.copy()
        strong[:, 1] = (RNG.random(N) < np.where(np.isin(TASKS, ["a", "b", "c"]), 0.1, 0.99)).astype(float)
        fixed_tasks = requested(strong, field="none", strata=TASKS)
        other_tasks = requested(strong, field="task", tasks=TASKS)
        spans = fixed_tasks.finding.task_spans
        for report, known in zip((fixed_tasks, other_tasks), spans, strict=True):
            ends = zip(report.finding.ranks.rank_low, report.finding.ranks.rank_high, strict=True)
            assert known == dict(zip(report.finding.models, ends, strict=True))
        assert spans[0] != spans[1]
        texts = " ".join([fixed_tasks.summary.headline, *fixed_tasks.summary.evidence])
        assert texts.count(describe_task_spans(spans[0]["Y"], spans[1]["Y"])) == 1

    def test_models_with_equal_scores_share_the_first_place(self):
        headline = requested(np.ones((20, 3))).summary.headline
        assert headline.endswith("share the first place: no model is ahead of another.")

    def test_a_model_without_a_rank_may_lead_for_all_that_is_known(self):
        far = np.column_stack([np.ones(60), np.zeros(60), np.ones(60)])
        assert requested(far[:, :2]).summary.headline == (
            "U is first with 95% confidence: no other of the 2 models may be first."
        )
        far[3:7, 2] = np.nan
        caveats = requested(far).summary.caveats
        assert caveats[0] == "1 model is listed apart, without a rank, because too many scores are missing."

    def test_mmlu_pro_can_be_distinguished_in_seconds(self, mmlu_pro_full):
        n = mmlu_pro_full.n_prompts
        names = np.array([f"part {i % 14}" for i in range(n)])
        scores = replace(mmlu_pro_full, worst=0.0, best=1.0).treat_missing("bounds")
        report = analyze(scores, Clusters(field="task", prompt_ids=mmlu_pro_full.prompt_ids, names=names))
        assert report.finding.metrics["n_models"] == 28
        assert report.finding.metrics["n_excluded"] == 1
        assert report.finding.metrics["n_missing"] == 32
        assert report.summary.headline.startswith("gemini-1.5-pro-002 is first with 95% confidence")


class TestLaws:
    def test_where_lower_is_better_everything_is_turned_round(self):
        item, second = requested(field="task"), requested(1 - Q, field="task", higher_is_better=False)
        assert item.finding.metrics == pytest.approx(second.finding.metrics)
        for name in ("rank", "rank_low", "rank_high"):
            result = [getattr(report.rankings["rank-intervals"], name).tolist() for report in (item, second)]
            assert result[0] == result[1]

    def test_clusters_that_disagree_widen_the_intervals(self):
        favours = RNG.normal(0, 0.25, (12, K))
        scores = Q * 0.2 + favours[np.unique(TASKS, return_inverse=True)[1]]
        item, second = (requested(scores, field).finding.metrics for field in ("none", "task"))
        assert second["width.mean"] > item["width.mean"]
        assert second["n_clusters"] == 12
        assert item["n_clusters"] == Undefined("prompts are not in clusters")

    def test_a_gap_is_set_against_each_model_that_would_be_better(self):
        gaps = Q.copy()
        gaps[3, 2] = np.nan
        report = requested(gaps)
        for value in (0.0, 1.0):
            whole = requested(np.where(np.isnan(gaps), value, gaps)).finding.ranks
            assert not (report.finding.ranks.better & ~whole.better).any()
        assert report.finding.models == MODELS

    def test_arrays_are_in_the_order_of_the_models(self):
        report = requested()
        better = report.finding.arrays["better"]
        ranking = report.rankings["rank-intervals"]
        assert ranking.rank_low.tolist() == (1 + better.sum(axis=0)).tolist()
        assert ranking.score.tolist() == Q.mean(axis=0).tolist()

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("table", [Q, Q[:1], Q[:, [0, 0]], RNG.random((60, 6))])
    def test_pictures_are_drawn_with_labelled_axes(self, table):
        for draw in requested(table).figures.values():
            figure, written = draw(), io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[0].get_xlabel()
            assert figure.axes[0].get_ylabel()


class TestDegenerate:
    def test_identical_models_are_named(self):
        report = requested(Q[:, [0, 1, 0]])
        assert "1 pair of models does not differ beyond rounding: U = W." in report.warnings
        assert report.finding.metrics["n_groups"] == 1

    def test_without_resamples_there_are_no_bootstrap_ranks(self):
        report = requested(n_resamples=0)
        assert report.finding.metrics["width.bootstrap"] == Undefined("nothing was resampled")
        assert set(report.tables["models"].to_pydict()["bootstrap_low"]) == {None}

    def test_few_or_unequal_clusters_are_reported(self):
        tasks = np.array(["a"] * 200 + ["b", "c", "d", "e"] * 25)
        output = " ".join(requested(field="task", tasks=tasks).warnings)
        assert "The 5 clusters (task) weigh as 2.1 of equal size (the largest has 67% of the prompts)" in output

    def test_scores_other_than_0_and_1_have_no_mcnemar(self):
        assert "mcnemar_pvalue" not in requested(RNG.random((30, 3))).tables["pairs"].column_names

    @pytest.mark.parametrize(
        ("field", "words"),
        [("none", "stratified by task"), ("passage", "clustered by passage within tasks")],
    )
    def test_strata_are_in_the_sentence_about_errors(self, field, words):
        report = requested(field=field, strata=np.repeat(["mathematics", "law"], N // 2))
        assert f"Standard errors are {words}." in report.summary.evidence

    def test_one_cluster_is_none(self):
        report = requested(field="task", tasks=np.full(N, "a"))
        assert report.finding.metrics["n_clusters"] == Undefined("all prompts are in one cluster")
        assert "Standard errors are computed as if prompts were independent." in report.summary.evidence


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"Q": Q[:, :1]}, "Choose more models"),
            ({"Q": np.where(np.arange(3) > 0, np.nan, np.ones((3, 3)))}, "2 lack too many scores"),
            ({"Q": np.full((3, 3), np.inf)}, "infinite"),
            ({"level": 0.0}, "between 0 and 1"),
            ({"n_resamples": -1}, "at least 0"),
            ({"seed": -1}, "at least 0"),
        ],
    )
    def test_what_cannot_be_ranked_is_refused_with_words_that_help(self, options, words):
        with pytest.raises(SelectionError, match=words):
            requested(**options)
