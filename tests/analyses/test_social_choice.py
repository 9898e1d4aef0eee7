from __future__ import annotations

import dataclasses
import io
import json
from fractions import Fraction
from functools import cache
from itertools import combinations

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from analyses.social_choice import analyze
from tracker.errors import SelectionError
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Undefined

NAN = float("nan")
RNG = np.random.default_rng(4)
SMALL = np.round(RNG.random((4, 9)), 2)
GAPS = np.where(RNG.random((6, 11)) < 0.15, NAN, np.round(RNG.random((6, 11)), 2))
GAPS[:3, 1:] = np.round(RNG.random((3, 10)), 2)
GAPS[:2, 0] = 0.5


def task_matrix(T, models=None):
    n, m = T.shape
    return TaskMatrix(
        T=np.asarray(T, dtype=np.float64),
        n_prompts=np.zeros((n, m), dtype=np.int64),
        stderr=np.full((n, m), NAN),
        tasks=tuple(f"task {i}" for i in range(n)),
        models=tuple(models or (f"model {j:02}" for j in range(m))),
        run_ids=np.arange(m),
    )


def leaderboard(shared, file):
    columns = pd.read_csv(shared / "data" / "leaderboards" / file).drop(columns="model")
    return task_matrix(columns.to_numpy(np.float64).T)


def metrics(T, **options):
    return analyze(task_matrix(T), **options).finding.metrics


@cache
def exact_metrics(columns="standardised"):
    """Of the small table, with time for a proof."""
    return metrics(SMALL, columns=columns, time_limit=30.0)


def exact(value):
    return Fraction(repr(float(value)))


def reversals(before, after):
    """Pairs in opposite order by two lists of exact totals."""
    return sum((before[i] - before[j]) * (after[i] - after[j]) < 0 for i, j in combinations(range(len(before)), 2))


def ranks(totals):
    """Average ranks, 1 is the largest."""
    return [sum(b > a for b in totals) + (sum(b == a for b in totals) + 1) / 2 for a in totals]


def rate(T, i, field):
    """Pairwise win rate of a model in a field, by its definition."""
    total = Fraction(0)
    for j in field:
        shared = [t for t in range(len(T)) if not np.isnan(T[t, i]) and not np.isnan(T[t, j])]
        if shared and i != j:
            total += Fraction(sum(bool(T[t, i] > T[t, j]) for t in shared), len(shared))
    return total / len(field)


class TestAgainstReference:
    """Witnesses are checked from the stored tables alone, by definition and in fractions."""

    @pytest.mark.parametrize("columns", ["standardised", "raw"])
    @pytest.mark.parametrize("higher_is_better", [True, False])
    def test_stored_weights_make_the_reversals_and_the_change_of_rank(self, columns, higher_is_better):
        scores = dataclasses.replace(task_matrix(SMALL), higher_is_better=higher_is_better)
        report = analyze(scores, system="cardinal", columns=columns, time_limit=0)
        result, rows = report.finding.metrics, report.tables["cardinal"].to_pylist()
        sign = 1 if higher_is_better else -1
        S = [[sign * exact(item) for item in row] for row in SMALL]
        before = [sum(column) for column in zip(*S, strict=True)]
        for name in ("tau", "mrc"):
            weights = [Fraction(row[f"{name}_weight"]) / Fraction(row["scale"]) for row in rows]
            assert all(0.01 <= row[f"{name}_weight"] <= 1 for row in rows)
            after = [sum(w * item for w, item in zip(weights, column, strict=True)) for column in zip(*S, strict=True)]
            moved = max(abs(a - b) for a, b in zip(ranks(before), ranks(after), strict=True))
            if name == "tau":
                assert result["cardinal.n_reversed"] == reversals(before, after)
                assert result["cardinal.tau"] == reversals(before, after) / 36
            else:
                assert result["cardinal.mrc"] == moved / 8
            assert report.rankings[f"cardinal.{name}"].rank.tolist() == ranks(after)
            alpha = [row[f"{name}_alpha"] for row in rows]
            assert max(alpha) == 1
            assert sign * report.rankings[f"cardinal.{name}"].score == pytest.approx(
                [float(item / sum(weights)) for item in after], rel=1e-12
            )
            assert dict(report.task_values[f"cardinal.{name}.weight"]) == {
                row["task"]: row[f"{name}_weight"] for row in rows
            }
        assert report.rankings["mean"].rank.tolist() == ranks(before)
        assert report.rankings["mean"].score == pytest.approx(SMALL.mean(axis=0))

    @pytest.mark.parametrize("T", [SMALL, GAPS])
    def test_the_listed_models_make_the_reversals_and_the_change_of_rank(self, T):
        report = analyze(task_matrix(T), system="ordinal", top=4)
        result, index = report.finding.metrics, {name: j for j, name in enumerate(task_matrix(T).models)}
        every = list(range(T.shape[1]))
        leading = sorted(every, key=lambda j: (-rate(T, j, every), j))[:4]
        assert {row["model"] for row in report.tables["ordinal_ranking"].to_pylist()} == {
            f"model {j:02}" for j in leading
        }
        before = [rate(T, j, leading) for j in leading]
        for name in ("tau", "mrc"):
            added = [index[row["model"]] for row in report.tables["ordinal_added"].to_pylist() if row[f"{name}_added"]]
            after = [rate(T, j, leading + added) for j in leading]
            moved = max(abs(a - b) for a, b in zip(ranks(before), ranks(after), strict=True))
            if name == "tau":
                assert result["ordinal.tau"] == reversals(before, after) / 6
                assert result["ordinal.n_added"] == len(added)
            else:
                assert result["ordinal.mrc"] == moved / 3
            stored = report.rankings[f"ordinal.{name}"]
            assert [index[model] for model in stored.models] == leading
            assert stored.rank.tolist() == ranks(after)
            assert stored.score == pytest.approx([float(item) for item in after], rel=1e-14)
        assert report.rankings["win_rate"].score == pytest.approx([float(rate(T, j, every)) for j in every])
        assert report.rankings["ordinal.before"].rank.tolist() == ranks(before)

    @pytest.mark.parametrize("file", ["ordinal_bigcode.csv", "ordinal_helm_accuracy.csv", "ordinal_heim_nudity.csv"])
    def test_the_values_of_real_leaderboards(self, shared, file):
        known = json.loads((shared / "reference" / "social_choice.json").read_text())["ordinal"][file]
        result = analyze(leaderboard(shared, file), system="ordinal").finding.metrics
        names = {
            "W": "diversity",
            "W_knn_imputed": "diversity",
            "W_tie_corrected": "diversity.tie_corrected",
            "W_complete_tasks": "diversity.complete_tasks",
            "tau": "ordinal.tau",
            "MRC": "ordinal.mrc",
        }
        assert {name: round(result[names[name]], 6) for name in names.keys() & known.keys()} == {
            name: value for name, value in known.items() if name != "peer"
        }
        assert result["ordinal.exact"] == 1


class TestLaws:
    def test_without_gaps_the_diversities_are_one(self):
        result = metrics(SMALL, time_limit=0)
        assert result["diversity"] == result["diversity.complete_tasks"] == result["diversity.complete_models"]
        assert result["n_missing"] == 0

    def test_with_gaps_each_diversity_is_that_of_its_part_of_the_table(self):
        result = metrics(GAPS, time_limit=0, system="ordinal")
        complete = ~np.isnan(GAPS)
        of_tasks = metrics(GAPS[complete.all(axis=1)], time_limit=0, system="ordinal")
        of_models = metrics(GAPS[:, complete.all(axis=0)], time_limit=0, system="ordinal")
        assert result["diversity.complete_tasks"] == of_tasks["diversity"]
        assert result["diversity.tie_corrected"] == of_tasks["diversity.tie_corrected"]
        assert result["diversity.complete_models"] == of_models["diversity"]
        assert result["n_missing"] == (~complete).sum() > 0
        assert result["diversity"] not in (of_tasks["diversity"], of_models["diversity"])

    def test_with_gaps_cardinal_sensitivity_is_that_of_the_tasks_without(self):
        report = analyze(task_matrix(GAPS), system="cardinal", time_limit=0)
        kept = ~np.isnan(GAPS).any(axis=1)
        alone = metrics(GAPS[kept], system="cardinal", time_limit=0)
        result = report.finding.metrics
        assert {k: v for k, v in result.items() if k.startswith("cardinal")} == {
            k: v for k, v in alone.items() if k.startswith("cardinal")
        }
        assert report.tables["cardinal"].num_rows == kept.sum() < 6
        assert any(f"{kept.sum()} of 6 complete tasks" in warning for warning in report.warnings)

    def test_a_system_that_is_not_selected_is_missing(self):
        for system, second in (("cardinal", "ordinal"), ("ordinal", "cardinal")):
            report = analyze(task_matrix(SMALL), system=system, time_limit=0)
            for names in (report.finding.metrics, report.tables, report.rankings, report.figures, report.task_values):
                assert not any(name.startswith(second) for name in names)
            assert f"{system}.tau" in report.finding.metrics

    @pytest.mark.parametrize("win_rate", ["pairwise", "per-task"])
    def test_where_lower_is_better_everything_is_turned_round(self, win_rate):
        turned = dataclasses.replace(task_matrix(-GAPS), higher_is_better=False)
        item, second = (analyze(scores, time_limit=0, win_rate=win_rate) for scores in (task_matrix(GAPS), turned))
        assert second.finding.metrics == item.finding.metrics
        assert (second.rankings["mean"].score == -item.rankings["mean"].score).all()

    def test_values_of_a_search_without_time_lie_within_the_bounds(self):
        for columns in ("standardised", "raw"):
            full, quick = exact_metrics(columns), metrics(SMALL, columns=columns, time_limit=0)
            for name in ("cardinal.tau", "cardinal.mrc", "ordinal.tau", "ordinal.mrc"):
                assert quick[name] <= full[name] <= full[f"{name}_upper"]
                assert full[name] <= quick[f"{name}_upper"]

    def test_the_paper_finds_no_more_and_the_same_with_the_same_seed(self):
        full = exact_metrics()
        paper, again, second = (metrics(SMALL, method="paper", seed=seed) for seed in (3, 3, 4))
        assert paper == again
        for result in (paper, second):
            for name in ("cardinal.tau", "cardinal.mrc", "ordinal.tau", "ordinal.mrc"):
                assert result[name] <= full[f"{name}_upper"] <= result[f"{name}_upper"]
        assert full["cardinal.exact"] == full["ordinal.exact"] == 1

    def test_the_same_weight_for_all_changes_nothing_on_raw_columns(self):
        result = metrics(SMALL, system="cardinal", columns="raw", epsilon="1", time_limit=0)
        assert result["cardinal.tau"] == result["cardinal.tau_upper"] == result["cardinal.mrc"] == 0
        assert result["cardinal.epsilon"] == 1

    def test_auto_takes_the_least_of_one_hundredth_and_the_ratio_of_deviations(self):
        assert metrics(SMALL, epsilon="auto", time_limit=0)["cardinal.epsilon"] == 0.01
        wide = SMALL * np.array([[1.0], [1.0], [1.0], [1000.0]])
        sd = wide.std(axis=1, ddof=1)
        result = metrics(wide, epsilon="auto", time_limit=0)["cardinal.epsilon"]
        assert result == pytest.approx(sd.min() / sd.max(), rel=1e-12)
        assert result < 0.01

    def test_named_leading_models_take_the_place_of_the_share(self):
        first = analyze(task_matrix(SMALL), system="ordinal", top=3, time_limit=0)
        names = first.rankings["ordinal.before"].models
        explicit = analyze(
            task_matrix(SMALL), system="ordinal", top_models=(names[2], names[0], names[1]), time_limit=0
        )
        assert explicit.rankings["ordinal.before"].models == names
        assert explicit.finding.metrics == first.finding.metrics
        assert "(the first 3 models by win rate, " in str(first.summary)
        assert "(the 3 named models, " in str(explicit.summary)

    def test_tasks_that_rank_at_random_have_the_diversity_that_the_summary_names(self):
        rng = np.random.default_rng(8)
        reports = [analyze(task_matrix(rng.random((3, 8))), system="ordinal", time_limit=0) for _ in range(200)]
        mean = np.mean([report.finding.metrics["diversity"] for report in reports])
        assert mean == pytest.approx(1 - 1 / 3, abs=0.03)
        assert "(0 if all tasks agree, about 0.667 at random)" in str(reports[0].summary)

    def test_win_rates_are_those_of_the_rule(self):
        rates = analyze(task_matrix(SMALL), win_rate="per-task", system="ordinal", time_limit=0).rankings["win_rate"]
        beaten = (SMALL[:, :, None] > SMALL[:, None, :]).sum(axis=2)
        tied = (SMALL[:, :, None] == SMALL[:, None, :]).sum(axis=2) - 1
        assert rates.score == pytest.approx(((beaten + tied / 2) / 8).mean(axis=0))

    @pytest.mark.parametrize("T", [SMALL, GAPS, SMALL[:1], np.ones((3, 4)), GAPS[3:]])
    @pytest.mark.parametrize("method", ["exact", "paper"])
    def test_metrics_have_no_nan_and_the_summary_disclaims_a_test(self, T, method):
        for system in ("both", "cardinal", "ordinal"):
            report = analyze(task_matrix(T), system=system, method=method, time_limit=0)
            metrics = report.finding.metrics
            assert all(isinstance(value, Undefined) or np.isfinite(value) for value in metrics.values())
            assert len(report.finding.main_metrics) <= 50
            assert "a significance test" in report.summary.caveats[0]


class TestDegenerate:
    def test_one_task_has_nothing_to_disagree_with_and_nothing_to_weigh(self):
        report = analyze(task_matrix(SMALL[:1]))
        result = report.finding.metrics
        for name in ("diversity", "diversity.tie_corrected", "cardinal.tau", "cardinal.tau_upper", "cardinal.mrc"):
            assert result[name] == 0
        assert result["cardinal.exact"] == 1
        assert "task_distances" not in report.figures
        text = str(report.summary)
        assert "diversity is 0 by definition" in text
        assert "Cardinal sensitivity is 0 by definition" in text

    def test_where_every_task_ties_all_models_the_values_are_defined_and_summarized(self):
        report = analyze(task_matrix(np.full((3, 5), 0.5)))
        result = report.finding.metrics
        assert result["diversity"] == 1
        assert isinstance(result["diversity.tie_corrected"], Undefined)
        for name in ("cardinal.tau", "cardinal.mrc_upper", "ordinal.tau_upper", "ordinal.mrc", "cardinal.tau_b"):
            assert result[name] == 0
        assert any("counts ties as disagreement" in warning for warning in report.warnings)
        assert report.tables["cardinal"]["tau_weight"].null_count == 3
        for draw in report.figures.values():
            draw()

    def test_a_task_that_ties_all_models_has_no_weight(self):
        T = np.vstack([SMALL, np.full((1, 9), 0.3)])
        report = analyze(task_matrix(T), system="cardinal", time_limit=30.0)
        last = report.tables["cardinal"].to_pylist()[-1]
        assert (last["task"], last["tau_weight"], last["mrc_alpha"]) == ("task 4", None, None)
        assert any("because all models tie: task 4" in warning for warning in report.warnings)
        without = exact_metrics()
        assert report.finding.metrics["cardinal.tau"] == without["cardinal.tau"]
        assert report.finding.metrics["diversity"] > without["diversity"]

    def test_tasks_with_the_same_scores_are_named(self):
        report = analyze(task_matrix(np.vstack([SMALL, SMALL[1:2]])), time_limit=0)
        assert any("task 1 = task 4" in warning for warning in report.warnings)

    def test_too_few_complete_tasks_leave_nothing_to_weigh(self):
        report = analyze(task_matrix(GAPS[3:]), time_limit=0)
        result = report.finding.metrics
        assert np.isnan(GAPS[3:]).any(axis=1).all()
        for name in ("cardinal.tau", "cardinal.exact", "diversity.complete_tasks", "diversity.tie_corrected"):
            assert isinstance(result[name], Undefined)
        assert "Cardinal sensitivity is undefined" in str(report.summary)
        assert set(report.tables) == {"ordinal_added", "ordinal_ranking"}
        assert result["diversity"] > 0

    def test_a_model_without_any_score_is_left_out(self):
        T = SMALL.copy()
        T[:, 3] = NAN
        report = analyze(task_matrix(T), time_limit=0)
        assert report.finding.n_models == 8
        assert report.finding.n_missing == 0
        assert "Models without a score here are left out: model 03." in report.warnings

    def test_a_tie_at_the_line_of_the_leading_models_is_a_warning(self):
        T = np.hstack([SMALL, SMALL])
        report = analyze(task_matrix(T), system="ordinal", top=3, time_limit=0)
        assert any("decide which one is included" in warning for warning in report.warnings)
        leading = report.rankings["ordinal.before"].models
        report = analyze(task_matrix(T), system="ordinal", top_models=leading, time_limit=0)
        assert not any("decide which one" in warning for warning in report.warnings)
        report = analyze(task_matrix(SMALL), system="ordinal", top=3, time_limit=0)
        rates = np.sort(report.rankings["win_rate"].score)
        assert rates[-3] > rates[-4]
        assert not any("decide which one" in warning for warning in report.warnings)

    def test_a_bound_that_is_not_met_is_a_warning_with_what_narrows_it(self):
        T = np.round(np.random.default_rng(0).random((12, 30)), 3)
        report = analyze(task_matrix(T), system="cardinal", time_limit=0)
        assert report.finding.metrics["cardinal.exact"] == 0
        assert any("A larger --time-limit" in warning for warning in report.warnings)
        assert "at most" in str(report.summary)

    def test_win_rates_per_task_with_gaps_warn_that_time_does_not_help(self):
        report = analyze(task_matrix(GAPS), system="ordinal", win_rate="per-task", time_limit=0.1, top=5)
        is_open = report.finding.metrics["ordinal.exact"] == 0
        assert any("does not add up over rivals" in warning for warning in report.warnings) == is_open
        assert not any("A larger --time-limit" in warning for warning in report.warnings)


class TestErrors:
    @pytest.mark.parametrize(
        ("T", "options", "words"),
        [
            (SMALL[:, :2], {}, "at least 3 are needed"),
            (np.full((3, 4), NAN), {}, "at least 3 are needed"),
            (np.where(SMALL > 0.9, np.inf, SMALL), {}, "infinite"),
            (SMALL, {"epsilon": "0"}, "from 1e-9 to 1"),
            (SMALL, {"epsilon": "-0.1"}, "from 1e-9 to 1"),
            (SMALL, {"epsilon": "1.01"}, "from 1e-9 to 1"),
            (SMALL, {"epsilon": "nan"}, "from 1e-9 to 1"),
            (SMALL, {"epsilon": "inf"}, "from 1e-9 to 1"),
            (SMALL, {"epsilon": "1e-999999999"}, "from 1e-9 to 1"),
            (SMALL, {"epsilon": "a little"}, "from 1e-9 to 1"),
            (SMALL, {"top": 0.0}, "share between 0 and 1"),
            (SMALL, {"top": -1.0}, "share between 0 and 1"),
            (SMALL, {"top": NAN}, "share between 0 and 1"),
            (SMALL, {"top": np.inf}, "share between 0 and 1"),
            (SMALL, {"top": 2.5}, "share between 0 and 1"),
            (SMALL, {"top": 1.0}, "at most 8 of the 9 models can lead"),
            (SMALL, {"top": 9.0}, "at most 8 of the 9 models can lead"),
            (SMALL, {"top_models": ("model 01", "nobody")}, "'nobody' is not among the models here"),
            (SMALL, {"top_models": ("model 01", "model 01")}, "1 model named as leading"),
            (SMALL, {"top_models": tuple(f"model {j:02}" for j in range(9))}, "9 models named as leading"),
            (SMALL, {"time_limit": -1.0}, "number of seconds"),
            (SMALL, {"time_limit": NAN}, "number of seconds"),
            (SMALL, {"time_limit": np.inf}, "number of seconds"),
            (SMALL, {"seed": -1}, "at least 0"),
            (SMALL, {"method": "guess"}, "Known: exact, paper"),
            (SMALL, {"system": "none"}, "Known: both, cardinal, ordinal"),
            (SMALL, {"columns": "ranked"}, "Known: standardised, raw"),
            (SMALL, {"win_rate": "elo"}, "Known: pairwise, per-task"),
        ],
    )
    def test_invalid_options_are_rejected_with_messages_that_help(self, T, options, words):
        with pytest.raises(SelectionError, match=words):
            analyze(task_matrix(T), **options)


class TestFigures:
    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize(
        ("shape", "system", "names"),
        [
            ((2, 3), "both", {"cardinal_ranking", "ordinal_ranking", "task_distances"}),
            ((12, 45), "both", {"cardinal_ranking", "ordinal_ranking", "task_distances"}),
            ((90, 4), "ordinal", {"ordinal_ranking", "task_distances"}),
        ],
    )
    def test_pictures_are_drawn_with_labelled_axes(self, shape, system, names):
        T = np.round(np.random.default_rng(1).random(shape), 2)
        models = [f"a model of the family with a long name, {j} billion parameters" for j in range(shape[1])]
        report = analyze(task_matrix(T, models), system=system, time_limit=0)
        assert set(report.figures) == names
        for draw in report.figures.values():
            written = io.BytesIO()
            figure = draw()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert all(axes.get_ylabel() or axes.get_yticklabels() for axes in figure.axes)

    def test_of_many_models_those_that_move_most_are_named_and_no_name_covers_another(self):
        T = np.round(np.random.default_rng(2).random((3, 70)), 3)
        report = analyze(task_matrix(T), system="cardinal", time_limit=0)
        axes = report.figures["cardinal_ranking"]().axes[0]
        names = [text.get_text() for text in axes.texts]
        moved = np.abs(report.rankings["cardinal.tau"].rank - report.rankings["mean"].rank)
        assert any(f"model {int(moved.argmax()):02}" in name for name in names)
        assert len(names) < 50
        for side in ("left", "right"):
            places = sorted(text.get_position()[1] for text in axes.texts if text.get_ha() == side)
            assert np.diff(places).min() > 0.5
