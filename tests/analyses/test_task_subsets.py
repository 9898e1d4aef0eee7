from __future__ import annotations

import dataclasses
import io
import itertools

import joblib
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from performance_matrices import task_matrix
from scipy import stats

from analyses.task_subsets import analyze
from tracker.errors import SelectionError
from tracker.recording.finding import Undefined

RNG = np.random.default_rng(12)
SCORES = (RNG.normal(0, 1, (8, 1)) + np.linspace(0, 2, 15) + RNG.normal(0, 0.7, (8, 15))).round(2)
NAN = float("nan")


def compute(T, **options):
    return analyze(task_matrix(T), **options).finding


def csv(shared, name):
    frame = pd.read_csv(shared / "data/leaderboards" / name)
    numbers = frame.select_dtypes("number")
    return task_matrix(numbers.to_numpy().T, tasks=tuple(numbers.columns))


class TestAgainstReference:
    def test_numbers_are_those_of_the_obvious_loop(self):
        result = compute(SCORES, max_size=3)
        full = stats.rankdata(-SCORES.mean(axis=0))
        for size in (1, 2, 3):
            taus, mrcs = [], []
            for tasks in itertools.combinations(range(8), size):
                ranks = stats.rankdata(-SCORES[list(tasks)].mean(axis=0).round(9))
                taus.append((1 - stats.kendalltau(full, ranks).statistic) / 2)
                mrcs.append(np.abs(full - ranks).max() / 14)
            metrics = result.metrics
            assert metrics[f"best.tau_b.{size}"] == pytest.approx(min(taus), abs=1e-12)
            assert metrics[f"median.tau_b.{size}"] == pytest.approx(np.median(taus), abs=1e-12)
            assert metrics[f"best.mrc.{size}"] == pytest.approx(min(mrcs))
            assert metrics[f"median.mrc.{size}"] == pytest.approx(np.median(mrcs))

    @pytest.mark.parametrize("name", ["cardinal_glue.csv", "cardinal_openllm.csv", "cardinal_vtab.csv"])
    def test_a_smallest_set_of_a_real_leaderboard_is_one(self, shared, name):
        scores = csv(shared, name)
        result = analyze(scores, within=0.05, n_splits=1).finding
        size, exact = result.metrics["size_within"], result.metrics["size_within.exact"]
        assert exact
        names, _ = result.smallest
        for tried in range(1, min(int(size), len(result.sizes)) + 1):
            least = result.metrics[f"best.tau_paper.{tried}"]
            assert (least <= 0.05) == (tried == size)
        full, some = scores.T.mean(axis=0), scores.T[[scores.tasks.index(name) for name in names]].mean(axis=0)
        i, j = np.triu_indices(len(full), 1)
        changed = np.sign((full[i] - full[j]).round(9)) != np.sign((some[i] - some[j]).round(9))
        assert changed.mean() <= 0.05

    def test_a_diverse_leaderboard_needs_more_tasks_than_a_uniform_one(self, shared):
        """What the paper reports: the most diverse benchmarks are the farthest, the least diverse the nearest."""
        openllm, vtab = (
            analyze(csv(shared, f"cardinal_{name}.csv"), n_splits=1).finding.metrics for name in ("openllm", "vtab")
        )
        for size in range(1, 6):
            for curve in ("best", "median"):
                assert openllm[f"{curve}.tau.{size}"] > vtab[f"{curve}.tau.{size}"]


class TestLaws:
    @pytest.mark.parametrize("rule", ["mean", "win-rate"])
    def test_the_order_of_tasks_and_models_does_not_matter(self, rule):
        rows, columns = RNG.permutation(8), RNG.permutation(15)
        scores = task_matrix(SCORES)
        turned = dataclasses.replace(
            scores,
            T=SCORES[np.ix_(rows, columns)],
            tasks=tuple(scores.tasks[i] for i in rows),
            models=tuple(scores.models[j] for j in columns),
        )
        item, second = (analyze(some, rule=rule) for some in (scores, turned))
        assert item.tables["sizes"].equals(second.tables["sizes"])
        assert item.task_values == second.task_values
        assert item.tables["greedy"].column("tau").equals(second.tables["greedy"].column("tau"))

    def test_where_lower_is_better_everything_is_turned_round(self):
        scores = task_matrix(SCORES)
        turned = dataclasses.replace(scores, T=-SCORES, higher_is_better=False)
        item, second = (analyze(some) for some in (scores, turned))
        assert item.tables["sizes"].equals(second.tables["sizes"])
        assert second.rankings["all_tasks"].score == pytest.approx(-item.rankings["all_tasks"].score)
        assert second.rankings["all_tasks"].rank.tolist() == item.rankings["all_tasks"].rank.tolist()

    def test_any_number_of_workers_and_the_same_seed_give_the_same_bytes(self):
        options = {"n_samples": 300, "largest_enumeration": 20, "seed": 4}
        alone = analyze(task_matrix(SCORES), **options)
        with joblib.parallel_config(n_jobs=2, backend="threading"):
            shared = analyze(task_matrix(SCORES), **options)
        assert alone.finding.metrics == shared.finding.metrics
        assert all(alone.finding.arrays[n].tobytes() == a.tobytes() for n, a in shared.finding.arrays.items())
        second = analyze(task_matrix(SCORES), **options | {"seed": 5})
        assert second.finding.metrics != alone.finding.metrics

    def test_where_not_all_sets_were_examined_every_output_reports_it(self):
        report = analyze(task_matrix(SCORES), n_samples=40, largest_enumeration=30, within=0.02)
        sizes = report.tables["sizes"].to_pylist()
        assert [row["examined"] for row in sizes] == ["all", "all", "sample", "sample", "sample", "all"]
        assert [row["n_examined"] for row in sizes] == [8, 28, 40, 40, 40, 28]
        assert sizes[3]["n_subsets"] == 70
        size = int(report.finding.metrics["size_within"])
        assert size > 3
        assert report.finding.metrics["size_within.exact"] == 0
        assert report.summary.headline.startswith(f"{size} of 8 tasks keep at least")
        assert report.summary.headline.endswith("; fewer may be enough; on held-out models, greedy tasks change 3.2%.")

    def test_the_rankings_are_those_of_all_and_of_the_greedy_tasks(self):
        report = analyze(task_matrix(SCORES), within=0.1)
        ranked = report.rankings["all_tasks"]
        assert ranked.score == pytest.approx(SCORES.mean(axis=0))
        assert ranked.rank.tolist() == stats.rankdata(-SCORES.sum(axis=0).round(9)).tolist()
        size = int(report.finding.metrics["greedy.size_within"])
        chosen = [int(row["task"].split()[1]) for row in report.tables["greedy"].to_pylist()[:size]]
        assert report.rankings["greedy_tasks"].score == pytest.approx(SCORES[chosen].mean(axis=0))
        positions = report.task_values["greedy_position"]
        assert [positions[f"task {task}"] for task in chosen] == list(range(1, size + 1))
        steps = report.tables["greedy"].column("tau_paper").to_pylist()
        assert steps[size - 1] <= 0.1
        assert all(step > 0.1 for step in steps[: size - 1])

    def test_best_and_median_and_what_selection_does_are_in_the_summary(self):
        text = str(analyze(task_matrix(SCORES)).summary)
        for words in (
            "at best",
            "in the median",
            "is chosen with all scores known",
            "no number here is a significance test",
        ):
            assert words in text
        assert "Held-out half of the models" in text


class TestDegenerate:
    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("rule", ["mean", "win-rate"])
    @pytest.mark.parametrize(
        "T",
        [
            np.full((4, 5), 0.5),
            np.array([[1.0, 2, 3], [3, 2, 1]]),
            np.array([[1.0, 1, 1], [3, 2, 1], [3, 2, 1]]),
            np.repeat(SCORES[:, :4], 2, axis=1),
            np.repeat(SCORES[:1], 5, axis=0),
        ],
    )
    def test_metrics_are_finite_or_undefined_and_figures_are_drawn(self, T, rule):
        report = analyze(task_matrix(T), rule=rule)
        result = report.finding
        assert all(isinstance(value, Undefined) or np.isfinite(value) for value in result.metrics.values())
        assert set(result.main_metrics) <= set(result.metrics)
        assert str(report.summary)
        for draw in report.figures.values():
            written = io.BytesIO()
            draw().savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01

    def test_three_models_have_no_halves(self):
        report = analyze(task_matrix(SCORES[:, :3]))
        assert isinstance(report.finding.metrics["holdout.judged.1"], Undefined)
        assert any("No model is held out" in warning for warning in report.warnings)
        assert "Held-out" not in str(report.summary)

    def test_sizes_end_before_all_tasks_and_the_headline_stays_short(self):
        report = analyze(task_matrix(SCORES), max_size=50)
        assert [subsets.sample.size for subsets in report.finding.sizes] == list(range(1, 8))
        assert report.warnings == []
        assert len(report.finding.main_metrics) <= 50

    def test_tasks_that_tie_all_models_are_named_and_not_chosen(self):
        report = analyze(task_matrix(np.vstack([np.ones(15), SCORES])))
        assert any("same score on task 0" in warning for warning in report.warnings)
        assert report.finding.metrics["n_tied_tasks"] == 1
        assert report.finding.metrics["best.tau.1"] == 0
        assert report.finding.metrics["best.tau_paper.1"] > 0
        assert report.tables["sizes"].to_pylist()[0]["nearest"] != "task 0"

    def test_missing_scores_leave_tasks_out_of_means_and_stay_in_win_rates(self):
        T = SCORES.copy()
        T[2, 3] = NAN
        by_mean, by_wins = (analyze(task_matrix(T), rule=rule) for rule in ("mean", "win-rate"))
        assert by_mean.finding.tasks == tuple(f"task {i}" for i in range(8) if i != 2)
        assert any("Excluded, without a score of every model: task 2" in warning for warning in by_mean.warnings)
        without = analyze(task_matrix(np.delete(SCORES, 2, axis=0)))
        assert by_mean.finding.metrics == without.finding.metrics
        assert len(by_wins.finding.tasks) == 8
        assert any(
            "two models are compared on the tasks of a set that both have" in warning for warning in by_wins.warnings
        )


class TestErrors:
    @pytest.mark.parametrize(
        ("T", "options", "words"),
        [
            (SCORES[:1], {}, "1 task here; at least 2 are needed"),
            (SCORES[:, :2], {}, "at least 3 are needed"),
            (np.where(np.eye(8, 15) > 0, NAN, SCORES)[:3], {}, "Of 3 tasks, 0 have a score from every model"),
            (np.where(np.eye(8, 15) > 0, np.inf, SCORES), {}, "infinite"),
            (SCORES, {"max_size": 0}, "max_size is 0; it must be at least 1"),
            (SCORES, {"n_samples": 0}, "n_samples is 0"),
            (SCORES, {"n_samples": 10**9}, "at most 1,000,000 sets"),
            (SCORES, {"n_splits": 0}, "n_splits is 0"),
            (SCORES, {"largest_enumeration": -1}, "largest_enumeration is -1"),
            (SCORES, {"seed": -1}, "seed is -1"),
            (SCORES, {"within": 1.0}, "within is 1.0"),
            (SCORES, {"within": NAN}, "within is nan"),
            (SCORES, {"rule": "borda"}, "Known: mean, win-rate"),
            (
                np.where(np.eye(40, 900) > 0, NAN, 0.5),
                {"rule": "win-rate", "max_size": 4},
                "900 models by 102,090 sets of tasks are 8e.10 comparisons",
            ),
        ],
    )
    def test_invalid_options_are_rejected_in_a_sentence(self, T, options, words):
        with pytest.raises(SelectionError, match=words):
            analyze(task_matrix(T), **options)
