"""`suffrage verdict`: who is first, what could change that, and what the stored data cannot show.

The hook is documented in docs/how-to/verdict.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from command_runner import run, written

from tracker.database import transaction
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Policy, Selection
from tracker.queries.sql import tables
from tracker.recording.finding import VerdictLine, compare_leaders
from tracker.recording.verdict.benchmark_verdict import load_verdict
from tracker.recording.verdict.open_questions import QUESTIONS, list_open_questions
from tracker.recording.verdict.recorded_lines import find_recorded_line
from tracker.recording.verdict.recorded_tests import adjust_first_place
from tracker.schema.findings import FindingMetric, StoredFinding

PLUGIN = '''
"""Two analyses of one package."""

from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Report, Summary, VerdictLine, analysis


@analysis(in_verdict={{"n": 7}})
def analyze(scores: PerformanceMatrix, *, n: int = 3) -> Report:
    if {fails}:
        raise SelectionError("This needs more prompts.")
    line = VerdictLine(topic="luck", text=f"With n = {{n}} luck decides.", leader_changes="unknown")
    return Report(Finding(), summary=Summary("Luck."), verdict=[line])
'''


@pytest.fixture(scope="module")
def two_leaders(tmp_path_factory: pytest.TempPathFactory) -> sa.Engine:
    """Model `broad` has the better mean over prompts, `narrow` the better mean over tasks; tests may add findings."""
    folder = tmp_path_factory.mktemp("two_leaders")
    rows = ["model,prompt_id,task,correct"]
    for task, n_prompts, right in (
        ("large", 40, {"broad": 30, "narrow": 24}),
        ("small", 10, {"broad": 3, "narrow": 6}),
    ):
        for model, n_right in right.items():
            rows += [f"{model},{task}{i},{task},{int(i < n_right)}" for i in range(n_prompts)]
    engine = sa.create_engine(f"sqlite:///{folder / 'store.db'}")
    run(engine, "ingest", written(folder / "scores.csv", "\n".join(rows)), "--benchmark", "quiz", "--no-mlflow")
    return engine


class TestVerdict:
    def test_options_of_the_selection_are_replaced_not_repeated(self, two_leaders: sa.Engine) -> None:
        printed = run(two_leaders, "verdict", "quiz", "--task-effects", "random").stdout
        assert "$ suffrage leaderboard quiz --task-effects fixed" in printed
        commands = printed.split("$ ")[1:]
        assert all(command.count("--task-effects") == ("leaderboard" in command) for command in commands)

    def test_the_first_place_is_adjusted_for_recorded_tests(self, two_leaders: sa.Engine) -> None:
        with transaction(two_leaders, write=False) as session:
            board = replace(load_leaderboard(session, Selection(benchmark="quiz")), first_holm=0.01)
            assert adjust_first_place(session, board).looks.startswith(
                "Looks: no recorded tests of quiz came before, so Holm leaves p = 0.01 (first place). "
            )
        with transaction(two_leaders) as session:
            for place, pvalue in enumerate([0.9] * 5 + [0.01]):
                analysis, metric = ("comparison", "pvalue") if place < 5 else ("rank-intervals", "first.holm")
                finding = StoredFinding(
                    benchmark_id=1, analysis=analysis, parameters={}, selection={}, input_digest=str(place),
                    code_version="",
                )  # fmt: skip
                session.add(finding)
                session.flush()
                session.add(FindingMetric(finding_id=finding.id, name=metric, value=pvalue))
                session.add(FindingMetric(finding_id=finding.id, name="n_pairs", value=1.0))
        with transaction(two_leaders, write=False) as session:
            again, new = (adjust_first_place(session, replace(board, first_holm=p)) for p in (0.01, 0.008))
        assert again.looks.startswith(
            "Looks: quiz has 6 recorded tests, this one among them. Holm over all leaves p = 0.06 "
        )
        assert again.line is not None
        assert again.line.text == "With Holm over 6 tests another model may be first: p = 0.06, alone 0.01."
        assert new.looks.startswith("Looks: 6 recorded tests of quiz came before. Holm over all 7 leaves p = 0.056 ")

    def test_the_first_line_names_the_leader_and_further_lines_what_changes_it(self, two_leaders: sa.Engine) -> None:
        printed = run(two_leaders, "verdict", "quiz").stdout
        assert printed.startswith("broad is first by 0.06")
        assert (
            " yes equal weights of tasks: With equal weights of the 2 tasks narrow is first. "
            "$ suffrage leaderboard quiz --weights task-equal "
        ) in " ".join(printed.split())
        assert "Not known from the stored data:" in printed

    def test_each_command_works(self, two_leaders: sa.Engine) -> None:
        choices = json.loads(run(two_leaders, "verdict", "quiz", "--format", "json").stdout)["choices"]
        assert len(choices) >= 2
        for choice in choices:
            words = choice["command"].split()
            record = ["--no-mlflow"] if words[1] == "analyze" else []
            assert run(two_leaders, *words[1:], *record).exit_code == 0

    def test_json_holds_what_is_printed(self, two_leaders: sa.Engine) -> None:
        verdict = json.loads(run(two_leaders, "verdict", "quiz", "--format", "json").stdout)
        printed = " ".join(run(two_leaders, "verdict", "quiz").stdout.split())
        assert verdict["leaders"] == ["broad"]
        assert verdict["margin"] == pytest.approx(33 / 50 - 30 / 50)
        texts = [verdict["headline"], *verdict["not_known"]]
        texts += [choice["text"] for choice in verdict["choices"]] + [
            choice["command"] for choice in verdict["choices"]
        ]
        assert [text for text in texts if text not in printed] == []

    def test_choices_that_change_the_first_place_come_first(self, two_leaders: sa.Engine) -> None:
        changes = [check.line.leader_changes for check in load_verdict(two_leaders, Selection(benchmark="quiz")).checks]
        assert changes[0] == "yes"
        assert changes == sorted(changes, key=["yes", "maybe", "unknown", "no"].index)

    def test_tags_state_the_leader_and_each_choice(self, two_leaders: sa.Engine) -> None:
        tags = load_verdict(two_leaders, Selection(benchmark="quiz")).tags
        assert tags["suffrage.verdict.leader"] == "broad"
        assert tags["suffrage.verdict.margin"] == "0.06"
        assert tags["suffrage.verdict.changes.equal_weights_of_tasks"] == "yes"

    def test_a_slow_analysis_is_quoted_from_its_latest_finding_on_the_same_scores(self, two_leaders: sa.Engine) -> None:
        run(two_leaders, "analyze", "weight-robustness", "quiz", "--n-draws", "50", "--no-mlflow")
        whole = Selection(benchmark="quiz", metric="accuracy")
        with transaction(two_leaders, write=False) as session:
            board = load_leaderboard(session, whole, n_resamples=0)
            line, key = find_recorded_line(session, "weight-robustness", whole, board)
            assert (line.text, line.leader_changes) == (f"broad is first in the recorded finding {key}.", "no")
            part = replace(whole, tasks=("small",))
            assert find_recorded_line(session, "weight-robustness", part, board) is None
            assert find_recorded_line(session, "trials", whole, board) is None

    def test_a_recorded_leader_with_rivals_leaves_the_first_place_open(self, two_leaders: sa.Engine) -> None:
        run(two_leaders, "analyze", "mixed-model", "quiz", "--no-mlflow")
        whole = Selection(benchmark="quiz", metric="accuracy")
        with transaction(two_leaders, write=False) as session:
            board = load_leaderboard(session, whole, n_resamples=0)
            line, key = find_recorded_line(session, "mixed-model", whole, board)
        computed = next(
            check.line
            for check in load_verdict(two_leaders, Selection(benchmark="quiz")).checks
            if check.line.topic == "mixed model"
        )
        assert line.text == f"broad is first in the recorded finding {key}; 1 other model may be first too."
        assert line.leader_changes == computed.leader_changes == "maybe"

    def test_another_leader_of_an_analysis_is_a_change_whatever_the_analysis_varies(
        self, sqlite_url: str, tmp_path: Path
    ) -> None:
        engine, rows = sa.create_engine(sqlite_url), ["model,prompt_id,task,correct"]
        for task, n, right in (("large", 40, (40, 20, 0)), ("small", 10, (1, 9, 0)), ("tiny", 5, (0, 5, 0))):
            for model, n_right in zip(("broad", "narrow", "bad"), right, strict=True):
                rows += [f"{model},{task}{i},{task},{int(i < n_right)}" for i in range(n)]
        run(engine, "ingest", written(tmp_path / "scores.csv", "\n".join(rows)), "--benchmark", "quiz", "--no-mlflow")
        verdict = load_verdict(engine, Selection(benchmark="quiz"))
        line = next(check.line for check in verdict.checks if check.line.topic == "voting rule")
        assert verdict.leaders == ("broad",)
        assert line.leader_changes == "yes"
        assert re.fullmatch(r"All \d+ voting rules over the tasks put narrow first\.", line.text)
        line = next(check.line for check in verdict.checks if check.line.topic == "tasks")
        assert line.text == "By mean over the tasks narrow is first, even with all tasks."
        assert line.leader_changes == "yes"

    @pytest.mark.parametrize(
        ("leaders", "expected"), [("AB", "no"), ("A", "maybe"), ("AC", "maybe"), ("C", "yes"), ("ABC", "maybe")]
    )
    def test_a_tie_with_a_leader_leaves_the_first_place_open_and_another_model_changes_it(
        self, leaders: str, expected: str
    ) -> None:
        assert compare_leaders(list(leaders), ["A", "B"]) == expected

    def test_tied_leaders_leave_the_first_place_to_the_weights(self, sqlite_url: str, tmp_path: Path) -> None:
        engine, rows = sa.create_engine(sqlite_url), ["model,prompt_id,correct"]
        rows += [f"{model},q{i},{int((i < 20) == (model == 'A'))}" for model in "AB" for i in range(40)]
        run(engine, "ingest", written(tmp_path / "scores.csv", "\n".join(rows)), "--benchmark", "quiz", "--no-mlflow")
        verdict = load_verdict(engine, Selection(benchmark="quiz"))
        line = next(check.line for check in verdict.checks if check.line.topic == "weights of prompts")
        assert line.leader_changes == "maybe"
        assert line.text.startswith("One of A, B leads in all 5,000 random weightings")

    def test_lines_of_analyses_without_task_effects_stay_with_them(self, two_leaders: sa.Engine) -> None:
        topics = [
            {check.line.topic for check in load_verdict(two_leaders, Selection(benchmark="quiz", **options)).checks}
            for options in ({}, {"task_effects": "none"})
        ]
        assert {"mixed model", "weights of prompts"} <= topics[0] & topics[1]

    def test_the_command_about_excluded_models_ranks_them(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = sa.create_engine(sqlite_url)
        missing_scores(engine, tmp_path, right=70, n_first=100, n_second=80)
        checks = load_verdict(engine, Selection(benchmark="gaps")).checks
        command = next(check.command for check in checks if check.line.topic == "models listed apart")
        assert command == "suffrage leaderboard gaps --min-coverage 0.8"

    def test_the_policy_for_missing_scores_reaches_every_analysis(self, two_leaders: sa.Engine) -> None:
        verdict = load_verdict(two_leaders, Selection(benchmark="quiz", missing="bounds"))
        topics = {check.line.topic: check.command for check in verdict.checks}
        assert "--missing bounds" in topics["equal weights of tasks"]
        assert topics["weights of prompts"] == "suffrage analyze weight-robustness quiz --missing bounds"
        assert "mixed model" in topics, verdict.warnings

    def test_it_works_on_both_engines(self, filled: sa.Engine) -> None:
        verdict = load_verdict(filled, Selection(benchmark="arithmetic"))
        assert verdict.headline.startswith(f"{verdict.leaders[0]} is first by ")
        assert {check.line.topic for check in verdict.checks} >= {"voting rule", "weights of prompts"}


def missing_scores(engine: sa.Engine, folder: Path, *, right: int, n_first: int, n_second: int) -> dict[str, str]:
    """Which topics about missing scores change the first place; `first` has that many of 100 prompts, all right."""
    rows = ["model,prompt_id,task,correct"]
    rows += [f"first,{i},all,1" for i in range(n_first)]
    rows += [f"second,{i},all,{int(i < right)}" for i in range(n_second)]
    rows += [f"third,{i},all,0" for i in range(100)]
    run(engine, "ingest", written(folder / "scores.csv", "\n".join(rows)), "--benchmark", "gaps", "--no-mlflow")
    return {
        check.line.topic: check.line.leader_changes
        for check in load_verdict(engine, Selection(benchmark="gaps")).checks
        if check.line.topic in ("missing scores", "models listed apart")
    }


class TestMissingScores:
    @pytest.mark.parametrize(
        ("right", "n_first", "n_second", "expected"),
        [
            (90, 100, 100, {}),
            (90, 98, 100, {"missing scores": "no"}),
            (99, 98, 100, {"missing scores": "maybe"}),
            (90, 96, 97, {"missing scores": "no"}),
            (70, 100, 80, {"models listed apart": "no"}),
            (80, 100, 80, {"models listed apart": "maybe"}),
        ],
    )
    def test_a_line_states_whether_they_decide_the_first_place(
        self,
        sqlite_url: str,
        tmp_path: Path,
        right: int,
        n_first: int,
        n_second: int,
        expected: dict[str, str],
    ) -> None:
        engine = sa.create_engine(sqlite_url)
        changes = missing_scores(engine, tmp_path, right=right, n_first=n_first, n_second=n_second)
        assert changes == expected

    @pytest.mark.parametrize(
        ("n_second", "right", "expected", "text"),
        [
            (50, 35, "maybe", "second can be first: too many scores are missing."),
            (90, 20, "no", "second cannot be first, whatever the missing scores are."),
        ],
    )
    @pytest.mark.parametrize("missing", [None, "common", "worst"])
    def test_an_excluded_model_may_be_first_if_its_missing_scores_can_make_it(
        self,
        sqlite_url: str,
        tmp_path: Path,
        n_second: int,
        right: int,
        expected: str,
        text: str,
        missing: Policy | None,
    ) -> None:
        engine = sa.create_engine(sqlite_url)
        rows = ["model,prompt_id,task,correct", *(f"first,{i},all,{int(i < 80)}" for i in range(100))]
        rows += [f"second,{i},all,{int(i < right)}" for i in range(n_second)]
        rows += [f"third,{i},all,0" for i in range(100)]
        run(engine, "ingest", written(tmp_path / "scores.csv", "\n".join(rows)), "--benchmark", "gaps", "--no-mlflow")
        verdict = load_verdict(engine, Selection(benchmark="gaps", missing=missing))
        line = next(check.line for check in verdict.checks if check.line.topic == "models listed apart")
        assert (line.leader_changes, line.text) == (expected, text)

    def lines(
        self, sqlite_url: str, folder: Path, scores: list[tuple[str, str, int, int, int]], **options: str
    ) -> dict[str, VerdictLine]:
        """The lines by topic; a model has the first ``right`` of the prompts ``first`` to ``last`` of a task right."""
        rows = ["model,prompt_id,task,correct"]
        for model, task, right, first, last in scores:
            rows += [f"{model},{task}{i},{task},{int(i < right)}" for i in range(first, last)]
        engine = sa.create_engine(sqlite_url)
        path = written(folder / "scores.csv", "\n".join(rows))
        run(engine, "ingest", path, "--benchmark", "gaps", "--bounds", "0", "1", "--no-mlflow")
        return {check.line.topic: check.line for check in load_verdict(engine, Selection(**options)).checks}  # type: ignore[arg-type]

    def test_on_the_prompts_that_an_excluded_model_shares_it_can_be_first(
        self, sqlite_url: str, tmp_path: Path
    ) -> None:
        scores = [("ant", "t", 85, 0, 100), ("bee", "t", 50, 0, 100), ("cat", "t", 88, 0, 88)]
        line = self.lines(sqlite_url, tmp_path, scores, benchmark="gaps", missing="common")["models listed apart"]
        assert (line.leader_changes, line.text) == ("yes", "If they are ranked, cat is first.")

    @pytest.mark.parametrize(("right", "expected"), [(60, "maybe"), (30, "no")])
    def test_an_excluded_model_whose_difference_is_not_significant_may_be_first(
        self, sqlite_url: str, tmp_path: Path, right: int, expected: str
    ) -> None:
        scores = [("ant", "t", 80, 0, 100), ("bee", "t", 20, 0, 100), ("cat", "t", right, 0, 90)]
        line = self.lines(sqlite_url, tmp_path, scores, benchmark="gaps")["models listed apart"]
        assert line.leader_changes == expected
        assert line.text.startswith("cat may be first too:" if expected == "maybe" else "cat cannot be first")

    def test_only_models_that_no_other_is_always_ahead_of_can_have_the_best_mean(
        self, sqlite_url: str, tmp_path: Path
    ) -> None:
        scores = [("ant", "t", 90, 4, 100), ("bee", "t", 88, 0, 100), ("dog", "t", 87, 0, 100)]
        line = self.lines(sqlite_url, tmp_path, scores, benchmark="gaps")["missing scores"]
        assert line.text == "bee can have the best mean, depending on the missing scores."

    def test_missing_scores_of_a_task_leave_equal_weights_open(self, sqlite_url: str, tmp_path: Path) -> None:
        scores = [("ant", "a", 90, 0, 100), ("bee", "a", 90, 0, 100), ("ant", "b", 38, 0, 95), ("bee", "b", 41, 0, 100)]
        line = self.lines(sqlite_url, tmp_path, scores, benchmark="gaps")["equal weights of tasks"]
        assert line.leader_changes == "maybe"
        assert line.text.endswith("That is on measured scores: bee can have the best mean.")

    def test_without_a_ranked_model_no_choice_changes_the_first_place(self, sqlite_url: str, tmp_path: Path) -> None:
        scores = [("ant", "a", 5, 0, 10), ("bee", "b", 5, 0, 10)]
        assert set(self.lines(sqlite_url, tmp_path, scores, benchmark="gaps")) <= {"models listed apart"}

    def test_weights_cannot_separate_models_with_equal_scores(self, sqlite_url: str, tmp_path: Path) -> None:
        scores = [("ant", "t", 9, 0, 20), ("bee", "t", 9, 0, 20), ("cat", "t", 2, 0, 20)]
        line = self.lines(sqlite_url, tmp_path, scores, benchmark="gaps")["weights of prompts"]
        assert line.leader_changes == "no"
        assert line.text.startswith("One of ant, bee leads in all")

    def test_leaders_with_equal_means_are_decided_by_missing_scores(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = sa.create_engine(sqlite_url)
        rows = ["model,prompt_id,task,correct", *(f"first,{i},all,{int(i < 80)}" for i in range(100))]
        rows += [f"second,{i},all,{int(i < 76)}" for i in range(95)]
        run(engine, "ingest", written(tmp_path / "scores.csv", "\n".join(rows)), "--benchmark", "gaps", "--no-mlflow")
        verdict = load_verdict(engine, Selection(benchmark="gaps"))
        line = next(check.line for check in verdict.checks if check.line.topic == "missing scores")
        assert verdict.leaders == ("first", "second")
        assert line.leader_changes == "maybe"
        assert "depends on the missing scores" in line.text


def test_who_may_lead_is_not_known_where_differences_are_not_tested(two_leaders: sa.Engine) -> None:
    weighted = load_verdict(two_leaders, Selection(benchmark="quiz", weights="task-equal"))
    assert "not tested" in weighted.headline
    assert weighted.contenders is None
    assert "suffrage.verdict.n_may_lead" not in weighted.tags
    assert load_verdict(two_leaders, Selection(benchmark="quiz")).contenders == ("broad", "narrow")


class TestHook:
    def test_an_installed_analysis_adds_its_line_with_its_parameters(
        self, filled_file: sa.Engine, install: Callable[..., None]
    ) -> None:
        install("lucky", {"luck": PLUGIN.format(fails=False)})
        [line] = [check for check in load_verdict(filled_file, Selection(benchmark="arithmetic")).checks
                  if check.line.topic == "luck"]  # fmt: skip
        assert line.line.text == "With n = 7 luck decides."
        assert line.command == "suffrage analyze luck arithmetic"

    def test_one_that_fails_is_a_warning(self, filled_file: sa.Engine, install: Callable[..., None]) -> None:
        install("lucky", {"luck": PLUGIN.format(fails=True)})
        verdict = load_verdict(filled_file, Selection(benchmark="arithmetic"))
        assert "luck has no line: This needs more prompts." in verdict.warnings
        assert "luck" not in {check.line.topic for check in verdict.checks}


class TestOpenQuestions:
    def test_a_question_is_left_out_once_the_data_answer_it(
        self, filled_file: sa.Engine, more: Callable[..., list[int]]
    ) -> None:
        selection = Selection(benchmark="arithmetic")
        with transaction(filled_file) as session:
            assert list(list_open_questions(session, selection)) == list(QUESTIONS.values())
            run, score = tables.run, tables.score
            keys = session.scalars(sa.select(run.c.id).order_by(run.c.id)).all()
            session.execute(sa.update(run).where(run.c.id == keys[0]).values(condition="answer_only"))
            session.execute(sa.update(run).where(run.c.id == keys[1]).values(variant="other"))
            session.execute(sa.update(score).where(score.c.run_id == keys[2]).values(trial=1))
        with transaction(filled_file, write=False) as session:
            remaining = list(list_open_questions(session, selection))
        assert remaining == [QUESTIONS["reference answers"], QUESTIONS["world"]]
