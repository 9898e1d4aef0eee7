from __future__ import annotations

import dataclasses
import io

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from performance_matrices import task_matrix

from analyses.numerics.elections.voting import bradley_terry
from analyses.numerics.elections.voting.rules import VOTING_RULES
from analyses.voting_rules import analyze
from analyses.voting_rules.method import scheme_name
from tracker.errors import SelectionError
from tracker.recording.finding import Undefined

RNG = np.random.default_rng(21)
SCORES = (RNG.normal(0, 1, (7, 1)) + np.linspace(0, 1.5, 12) + RNG.normal(0, 0.8, (7, 12))).round(2)
NAN = float("nan")


def csv(shared, name):
    frame = pd.read_csv(shared / "data/leaderboards" / f"{name}.csv")
    numbers = frame.select_dtypes("number")
    names = tuple(f"{name} {i}" for i, name in enumerate(frame.iloc[:, 0].astype(str)))
    T = numbers.to_numpy(dtype=np.float64).T
    return task_matrix(T, tasks=tuple(numbers.columns), models=names)


def paper():
    """Three models and nine tasks (section 3): a cycle."""
    places = [[1, 2, 3]] * 4 + [[3, 1, 2]] * 3 + [[2, 3, 1]] * 2
    return task_matrix(-np.array(places))


class TestAgainstReference:
    def test_the_cycle_of_the_paper_is_found_by_every_number(self):
        result = analyze(paper()).finding
        metrics = result.metrics
        assert metrics["condorcet.exists"] == 0
        assert metrics["condorcet.n_weak"] == 0
        assert metrics["smith.size"] == 3
        # 1 > 2 > 3 > 1 by 6:3, 7:2 and 5:4; the order 1 2 3 contradicts 3 + 2 + 5 comparisons of 27.
        assert metrics["kemeny.distance"] == metrics["kemeny.distance_at_least"] == 10
        assert metrics["kemeny.contradicted"] == pytest.approx(10 / 27)
        assert metrics["kemeny.unique"] == 1
        assert result.consensus.order.tolist() == [0, 1, 2]
        assert analyze(paper()).rankings["win_rate"].score == pytest.approx([10 / 27, 10 / 27, 7 / 27])
        assert metrics["pareto.n_pairs"] == 0
        assert "No Condorcet winner." in str(analyze(paper()).summary)

    def test_ranks_in_all_places_are_the_same(self):
        report = analyze(task_matrix(SCORES))
        table = report.tables["ranks"].to_pydict()
        for column, rule in enumerate(report.finding.outcomes):
            ranks = dict(
                zip(report.rankings[scheme_name(rule)].models, report.rankings[scheme_name(rule)].rank, strict=True)
            )
            assert [ranks[name] for name in table["model"]] == table[scheme_name(rule)]
            assert report.finding.arrays["ranks"][:, column].tolist() == list(ranks.values())
        assert table["mean"] == sorted(table["mean"])
        assert sum(table["n_first"]) == sum(
            (ranking.rank == ranking.rank.min()).sum() for ranking in report.rankings.values()
        )

    def test_pairs_of_all_tasks_are_counted_rule_by_rule(self):
        T = np.array([[3, 2, 1, 0], [3, 1, 2, 0], [9, 5, 4, 4]])
        report = analyze(task_matrix(T))
        ahead = [(i, j) for i in range(4) for j in range(4) if (T[:, i] >= T[:, j]).all() and (T[:, i] > T[:, j]).any()]
        assert report.finding.metrics["pareto.n_pairs"] == len(ahead)
        counted = report.tables["rules"].to_pylist()
        assert [row["rule"] for row in counted] == list(VOTING_RULES)
        counted = [row for row in counted if row["left_out"] is None]
        for row in counted:
            rule = row["rule"]
            rank = report.finding.outcomes[rule].ranks
            assert row["n_reversed"] + row["n_tied"] == report.finding.metrics[f"pareto.{scheme_name(rule)}"]
            assert row["n_reversed"] + row["n_tied"] == sum(rank[i] >= rank[j] for i, j in ahead)
        assert report.finding.metrics["pareto.mean"] == 0
        assert report.finding.metrics["pareto.plurality"] == 2
        assert report.tables["pareto"].num_rows == sum(row["n_reversed"] + row["n_tied"] for row in counted)

    @pytest.mark.parametrize(
        ("name", "n_removed"), [("cardinal_glue", 1), ("cardinal_vtab", 2), ("ordinal_heim_quality_human", 1)]
    )
    def test_the_leader_of_a_real_leaderboard_falls_without_the_tasks_named(self, shared, name, n_removed):
        scores = csv(shared, name)
        report = analyze(scores)
        removed = report.tables["removals"].column("removed").to_pylist()
        assert report.finding.metrics["removal.tasks"] == n_removed == len(removed)
        assert report.finding.metrics["removal.tasks.exact"] == 1
        kept = [i for i, task in enumerate(scores.tasks) if task not in removed]
        before, after = scores.T.mean(axis=0), scores.T[kept].mean(axis=0)
        assert scores.models[after.argmax()] in report.tables["removals"].column("leaders_then")[0].as_py()
        assert after[before.argmax()] < after.max() - 1e-9

    @pytest.mark.parametrize("name", ["cardinal_openllm", "cardinal_superglue", "ordinal_helm_accuracy"])
    def test_the_order_of_a_real_leaderboard_is_proven(self, shared, name):
        metrics = analyze(csv(shared, name)).finding.metrics
        assert metrics["kemeny.exact"] == 1
        assert metrics["condorcet.exists"] == 0
        assert metrics["pareto.kemeny"] == 0


class TestLaws:
    @pytest.mark.parametrize("rule", ["mean", "win-rate", "borda", "copeland", "minimax"])
    def test_where_lower_is_better_everything_is_turned_round(self, rule):
        item = analyze(task_matrix(SCORES), rule=rule)
        second = analyze(task_matrix(-SCORES, higher_is_better=False), rule=rule)
        assert item.finding.metrics == second.finding.metrics
        assert second.rankings["mean"].score == pytest.approx(-item.rankings["mean"].score)
        assert second.rankings["borda"].score == pytest.approx(item.rankings["borda"].score)

    def test_the_order_of_models_and_tasks_does_not_matter(self):
        rows, columns = RNG.permutation(7), RNG.permutation(12)
        scores = task_matrix(SCORES)
        turned = dataclasses.replace(
            scores,
            T=SCORES[np.ix_(rows, columns)],
            tasks=tuple(scores.tasks[i] for i in rows),
            models=tuple(scores.models[j] for j in columns),
        )
        item, second = (analyze(some, rule="borda") for some in (scores, turned))
        assert item.finding.metrics == second.finding.metrics
        assert item.tables["agreement"].equals(second.tables["agreement"])
        assert (
            item.tables["ranks"]
            .select(["model", "mean", "borda", "dowdall", "copeland"])
            .equals(second.tables["ranks"].select(["model", "mean", "borda", "dowdall", "copeland"]))
        )

    def test_gaps_leave_each_rule_what_it_can_use(self):
        T = SCORES.copy()
        T[0, 3] = T[1, 5] = NAN
        report, whole = analyze(task_matrix(T)), analyze(task_matrix(SCORES[2:]))
        for rule in ("mean", "median", "borda", "dowdall", "plurality"):
            assert report.rankings[rule].rank.tolist() == whole.rankings[rule].rank.tolist()
        assert report.finding.metrics["n_complete_tasks"] == 5
        assert any("5 of 7 tasks" in warning for warning in report.warnings)
        assert report.rankings["copeland"].rank.tolist() != whole.rankings["copeland"].rank.tolist()

    def test_rules_that_are_one_by_definition_have_one_vote(self):
        result = analyze(task_matrix(RNG.random((5, 6)))).finding
        assert {agreement.rule for agreement in result.independent_agreements} | {
            agreement.other_rule for agreement in result.independent_agreements
        } == set(VOTING_RULES) - {
            "win-rate",
            "win-rate-per-task",
            "bradley-terry",
        }
        assert result.metrics["agreement.mean"] == pytest.approx(
            np.mean([agreement.agreement for agreement in result.independent_agreements])
        )

    @pytest.mark.usefixtures("full_figures")
    @pytest.mark.parametrize("k", [3, 105])
    def test_pictures_are_drawn_with_labelled_axes(self, k):
        T = (RNG.random((6, k)) + np.linspace(0, 1, k)).round(2)
        names = tuple(f"an organisation/with-a-model-of-a-long-name-{j}" for j in range(k))
        for figure in (draw() for draw in analyze(task_matrix(T, models=names), time_limit=1.0).figures.values()):
            written = io.BytesIO()
            figure.savefig(written, format="png", dpi=40)
            written.seek(0)
            assert matplotlib.image.imread(written).std() > 0.01
            assert figure.axes[0].get_xlabel()
            assert figure.axes[0].get_ylabel()


class TestDegenerate:
    def test_without_a_complete_task_rules_that_need_it_are_undefined(self):
        T = np.where(np.eye(4, 12, dtype=bool), NAN, SCORES[:4])
        report = analyze(task_matrix(T))
        assert isinstance(report.finding.metrics["pareto.mean"], Undefined)
        assert isinstance(report.finding.metrics["removal.tasks"], Undefined)
        assert "mean" not in report.rankings
        assert "win_rate" in report.rankings
        assert any("Choose another one with --rule" in warning for warning in report.warnings)
        why = "no task has a score from every model"
        assert f"Rules left out: mean, median, Borda, Dowdall, plurality ({why})." in report.warnings
        assert analyze(task_matrix(T), rule="copeland").finding.metrics["removal.tasks.at_least"] >= 1

    def test_without_evalica_its_rule_is_left_out_with_a_word_on_how_to_get_it(self, monkeypatch):
        monkeypatch.setattr(bradley_terry, "find_spec", lambda name: None)
        report = analyze(task_matrix(SCORES), rule="bradley-terry")
        assert "bradley_terry" not in report.rankings
        assert report.finding.metrics["pareto.bradley_terry"].reason.endswith("pip install '.[voting]'")
        assert any("pip install '.[voting]'" in warning for warning in report.warnings)

    def test_all_tied_is_a_tie_by_every_rule(self):
        report = analyze(task_matrix(np.full((4, 5), 0.5)))
        assert {tuple(ranking.rank) for ranking in report.rankings.values()} == {(3.0,) * 5}
        metrics = report.finding.metrics
        assert metrics["agreement.mean"] == 1
        assert metrics["condorcet.n_weak"] == metrics["smith.size"] == 5
        assert isinstance(metrics["kemeny.contradicted"], Undefined)
        assert isinstance(metrics["removal.tasks"], Undefined)
        assert metrics["removal.tasks.exact"] == 1
        text = str(report.summary)
        assert "All 11 voting rules" in text
        assert "Pareto" not in text
        assert "No removal of tasks changes the first place by mean." in text

    def test_one_task_is_the_ranking_of_every_rule_but_plurality(self):
        report = analyze(task_matrix(SCORES[:1]))
        for name, ranking in report.rankings.items():
            if name not in ("plurality", "minimax"):
                assert ranking.rank.tolist() == report.rankings["mean"].rank.tolist()
        assert "bradley_terry" not in report.rankings
        assert isinstance(report.finding.metrics["removal.tasks"], Undefined)

    def test_no_number_is_missing_in_silence(self):
        for T in (SCORES, SCORES[:, :3], np.where(RNG.random(SCORES.shape) < 0.3, NAN, SCORES)):
            for rule in ("mean", "plurality", "bradley-terry"):
                report = analyze(task_matrix(T), rule=rule, time_limit=0.5)
                for value in report.finding.metrics.values():
                    assert isinstance(value, Undefined) or np.isfinite(value)
                assert all(np.isfinite(ranking.score).all() for ranking in report.rankings.values())
                assert len(report.finding.main_metrics) <= 50


class TestErrors:
    def test_too_few_models_and_nonsense_are_refused(self):
        with pytest.raises(SelectionError, match="at least 3 are needed"):
            analyze(task_matrix(SCORES[:, :2]))
        with pytest.raises(SelectionError, match="infinite"):
            analyze(task_matrix(np.where(SCORES > 1.5, np.inf, SCORES)))
        with pytest.raises(SelectionError, match="time_limit is -1"):
            analyze(task_matrix(SCORES), time_limit=-1)
        with pytest.raises(SelectionError, match=r"No rule 'approval'\. Known: mean, "):
            analyze(task_matrix(SCORES), rule="approval")
