"""`suffrage compare`, `suffrage history`, and the choices of `suffrage leaderboard`."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.errors import NotFoundError, OutputError, SelectionError

N = 240


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(suffrage, arguments)
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path) -> str:
    """Two models, the first of which was run three times; the second lacks a prompt."""
    rng = np.random.default_rng(5)
    hard = rng.random(N)
    rows = []
    for model, run, ability in (("org/a", "1", 0.5), ("org/a", "2", 0.5), ("org/a", "3", 0.8), ("org/b", "1", 0.3)):
        for i in range(N - (model == "org/b")):
            right = int(rng.random() < (ability + (0.5 - hard[i]) / 2))
            rows.append((model, f"q{i}", f"t{i % 12}", f"What is\n{i}?", right, run))
    path = tmp_path / "long.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("model", "prompt_id", "task", "question", "correct", "run"))
        writer.writerows(rows)
    call("ingest", str(path), "--benchmark", "b", "--database", sqlite_url, "--no-mlflow")
    return sqlite_url


class TestCompare:
    def test_it_prints_the_better_model_tasks_and_flipped_prompts(self, url: str) -> None:
        result = call("compare", "b", "org/a", "org/b", "--flips", "2", "--database", url)
        assert result.stdout.startswith("org/a is better than org/b by 0.")
        assert "on 239 shared prompts" in result.stdout
        assert "times as many" in " ".join(result.stdout.split())
        assert "by task, A minus B (A is org/a), the 6 of 12 with the largest differences;" in result.stdout
        assert re.search(r"2 of \d+ that org/a \(A\) does better on; 2 of \d+ that org/b \(B\) does", result.stdout)
        assert len(result.output.splitlines()) <= 40
        assert "What is 1" in result.stdout or "What is 2" in result.stdout
        assert "also with missing scores at their bounds" in " ".join(result.stdout.split())
        assert "Caveat: 1 score is missing. On all 240 prompts" in result.stdout

    def test_as_json_it_holds_everything_that_is_printed(self, url: str) -> None:
        stored = json.loads(call("compare", "b", "org/a", "org/b", "--format", "json", "--database", url).stdout)
        assert stored["metrics"]["n_prompts"] == 239
        assert stored["metrics"]["n_a_better"] - stored["metrics"]["n_b_better"] == pytest.approx(
            239 * stored["metrics"]["difference"]
        )
        assert len(stored["tasks"]) == 12
        assert {row["better"] for row in stored["flips"]} == {"org/a", "org/b"}

    def test_two_runs_of_one_model_are_compared_by_their_keys(self, url: str) -> None:
        stored = json.loads(call("compare", "b", "run:3", "run:1", "--format", "json", "--database", url).stdout)
        assert (stored["model_a"], stored["model_b"]) == ("org/a (run 3)", "org/a (run 1)")
        assert stored["metrics"]["difference"] > 0.1
        mixed = json.loads(call("compare", "b", "org/b", "run:1", "--format", "json", "--database", url).stdout)
        assert (mixed["model_a"], mixed["model_b"]) == ("org/b", "org/a")

    def test_documents_have_the_verdict_then_all_prompts_and_each_task(self, url: str) -> None:
        numbers = json.loads(call("compare", "b", "org/a", "org/b", "--database", url, "--format", "json").stdout)
        markdown = call("compare", "b", "org/a", "org/b", "--database", url, "--format", "markdown").stdout
        assert markdown.startswith("**org/a is better than org/b by ")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown.splitlines() if line[:1] == "|"]
        assert rows[0] == ["task", "n", "mean A", "mean B", "difference", "95 % low", "95 % high", "p", "p (Holm)"]
        assert [row[0] for row in rows[2:]] == ["all", *(task["task"] for task in numbers["tasks"])]
        assert rows[2][1:5] == [
            "239",
            *(f"{numbers['metrics'][name]:.4f}" for name in ("mean_a", "mean_b", "difference")),
        ]
        latex = call("compare", "b", "org/a", "org/b", "--database", url, "--format", "latex").stdout
        assert latex.count("\\\\") == len(numbers["tasks"]) + 2
        assert "Differences are A minus B." in latex

    def test_nothing_is_recorded_without_the_option(self, url: str) -> None:
        call("compare", "b", "org/a", "org/b", "--database", url)
        assert call("findings", "--format", "json", "--database", url).stdout.strip() == "[]"
        message = call("compare", "b", "org/a", "org/b", "--record", "--no-mlflow", "--database", url).stderr
        assert "Recorded as finding 1" in message
        listing = json.loads(call("findings", "--format", "json", "--database", url).stdout)
        assert [row["name"] for row in listing] == ["comparison"]

    def test_the_picture_goes_where_it_is_wanted(self, url: str, tmp_path: Path) -> None:
        call("compare", "b", "org/a", "org/b", "--output", str(tmp_path / "x.png"), "--database", url)
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")

    def test_a_name_that_is_no_model_is_answered_with_the_models(self, url: str) -> None:
        with pytest.raises(NotFoundError, match=r"Did you mean 'org/[ab]' or 'org/[ab]'"):
            call("compare", "b", "org/a", "org/x", "--database", url)

    def test_models_are_named_once(self, url: str) -> None:
        result = CliRunner().invoke(suffrage, ("compare", "b", "org/a", "org/b", "--runs", "1", "--database", url))
        assert result.exit_code == 2
        assert "leave out --models and --runs" in result.stderr.replace("\n", " ")


class TestMissingScores:
    def test_each_command_applies_its_policy(self, url: str) -> None:
        def rows(*options: str) -> list[dict[str, str]]:
            return list(csv.DictReader(call("export", "scores", "b", "--database", url, *options).stdout.splitlines()))

        assert len(rows()) == 240 + 239
        common = rows("--missing", "common")
        assert len(common) == 2 * 239
        assert len({row["prompt_id"] for row in common}) == 239
        assert {row["model"] for row in rows("--missing", "common", "--min-coverage", "1")} == {"org/a"}
        shared = call("compare", "b", "org/a", "org/b", "--missing", "common", "--flips", "0", "--database", url)
        assert "missing scores at their bounds" not in shared.stdout
        for command in (("export", "scores", "b"), ("plan", "b", "--effect", "0.1"), ("models", "related", "b")):
            with pytest.raises(SelectionError, match="Scores are missing, of 240 prompts: org/b "):
                call(*command, "--missing", "fail", "--database", url)
        assert "Only the 239 of 240 prompts" in " ".join(
            call("plan", "b", "--effect", "0.1", "--database", url).stdout.split()
        )


class TestHistory:
    def test_a_model_is_followed_from_run_to_run(self, url: str) -> None:
        result = call("history", "org/a", "--database", url)
        expected = "org/a rose by 0.2250 from run 2 to 3; 1 of 2 changes is significant at 0.05 (Holm)."
        assert expected in " ".join(result.stdout.split())
        assert "prompts changed from run 2 to run 3 of org/a; 5 of them" in result.stdout

    def test_a_benchmark_lists_every_run(self, url: str) -> None:
        rows = list(csv.DictReader(io.StringIO(call("history", "b", "--format", "csv", "--database", url).stdout)))
        assert [(row["model"], row["run"], row["since"]) for row in rows] == [
            ("org/a", "1", ""),
            ("org/a", "2", "1"),
            ("org/a", "3", "2"),
            ("org/b", "4", ""),
        ]

    def test_rows_of_benchmarks_run_once_and_twice_have_the_same_columns(self, url: str, tmp_path: Path) -> None:
        path = tmp_path / "other.csv"
        path.write_text("model,prompt_id,correct,condition\norg/a,p,1,answer_only\norg/a,q,0,full\n")
        call("ingest", str(path), "--benchmark", "a", "--database", url, "--no-mlflow")
        values = json.loads(call("history", "org/a", "--format", "json", "--database", url).stdout)
        assert {tuple(row) for row in values} == {tuple(values[0])}
        places = [(row["benchmark"], row["condition"]) for row in values]
        assert sorted(places) == [("a", "answer_only"), ("a", "full"), *[("b", "full")] * 3]
        message = csv.DictReader(io.StringIO(call("history", "org/a", "--format", "csv", "--database", url).stdout))
        assert [row["run"] for row in message] == [str(row["run"]) for row in values]

    def test_a_single_run_has_a_mean_and_no_change(self, url: str, tmp_path: Path) -> None:
        result = call("history", "org/b", "--database", url)
        assert "239" in result.stdout
        assert "No model has two runs here" in result.stderr
        refused = CliRunner().invoke(
            suffrage, ("history", "org/b", "--output", str(tmp_path / "x.png"), "--database", url)
        )
        assert "nothing to draw" in refused.stderr

    def test_the_picture_goes_where_it_is_wanted(self, url: str, tmp_path: Path) -> None:
        call("history", "b", "--output", str(tmp_path / "x.svg"), "--database", url)
        assert b"<svg" in (tmp_path / "x.svg").read_bytes()

    def test_a_picture_that_is_there_is_not_replaced_unasked(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "x.png").write_text("mine")
        query = ("history", "b", "--output", str(tmp_path / "x.png"), "--database", url)
        with pytest.raises(OutputError, match="exists already"):
            call(*query)
        assert (tmp_path / "x.png").read_text() == "mine"
        call(*query, "--force")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")

    def test_a_name_that_is_neither_is_answered_with_both(self, url: str) -> None:
        with pytest.raises(NotFoundError, match="org/a, org/b"):
            call("history", "nobody", "--database", url)


class TestLeaderboard:
    def test_ranks_have_intervals_and_indistinguishable_groups_are_listed(self, url: str) -> None:
        result = call("leaderboard", "b", "--missing", "common", "--database", url)
        verdict, *below = [*result.stdout.splitlines(), *result.stderr.splitlines()]
        assert verdict.startswith("org/a is first by 0.")
        assert "; no other of the 2 ranked models may be first (95% confidence). On these tasks its rank" in verdict
        assert not any("first" in line or "significant" in line for line in below)
        rows = json.loads(call("leaderboard", "b", "--missing", "common", "--format", "json", "--database", url).stdout)
        assert [(row["rank"], row["rank_low"], row["rank_high"]) for row in rows] == [(1, 1, 1), (2, 2, 2)]

    def test_documents_have_the_verdict_and_the_rows_of_the_table(self, url: str) -> None:
        board = list(csv.DictReader(io.StringIO(call("leaderboard", "b", "--database", url, "--format", "csv").stdout)))
        markdown = call("leaderboard", "b", "--database", url, "--format", "markdown").stdout
        assert markdown.startswith("**org/a is first by ")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in markdown.splitlines() if line[:1] == "|"]
        assert rows[0] == ["rank", "ranks", "model", "mean", "95 % low", "95 % high", "n", "coverage"]
        assert [row[2:4] for row in rows[2:]] == [[row["model"], f"{float(row['mean']):.4f}"] for row in board]
        latex = call("leaderboard", "b", "--database", url, "--format", "latex").stdout
        assert latex.startswith("% needs \\usepackage{booktabs}\n\\begin{table}")
        assert "org/b" in latex

    def test_a_model_with_too_few_scores_is_excluded_with_the_reason(self, url: str) -> None:
        message = call("leaderboard", "b", "--min-coverage", "1", "--database", url).stderr
        assert "less than 1 (--min-coverage) of the 240 prompts: org/b (99.6%)." in message

    def test_missing_scores_can_be_refused(self, url: str) -> None:
        with pytest.raises(SelectionError, match="org/b 1"):
            call("leaderboard", "b", "--missing", "fail", "--database", url)
