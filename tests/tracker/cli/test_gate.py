"""`suffrage gate`: it fails after a significant regression, and only then."""

from __future__ import annotations

import csv
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from tracker.api import gate
from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import BadInputError, NotFoundError, OutputError, SelectionError
from tracker.exporting.document_tables import escape_markdown
from tracker.recording.comparing.regressions import BaselineComparison, RunPair

N = 200
BASE = [int(i % 10 < 7) for i in range(N)]
WORSE = [0 if i % 7 == 0 else score for i, score in enumerate(BASE)]
SIMILAR = [1 - score if i in (3, 17, 59) else score for i, score in enumerate(BASE)]
BETTER = [1 if i % 4 == 0 else score for i, score in enumerate(BASE)]
OPTIONS = ("--benchmark", "quiz")


def write_scores(folder: Path, scores: Mapping[str, Sequence[int]], *, first: int = 0) -> Path:
    """Write the scores of some models, as a table with a row for each prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "scores.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("model", "prompt_id", "task", "accuracy"))
        for model, values in scores.items():
            writer.writerows((model, f"q{i + first}", f"t{i % 4}", value) for i, value in enumerate(values))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of results: of one model, and of several."""
    folder = tmp_path_factory.mktemp("gate")
    single = {"baseline": BASE, "worse": WORSE, "similar": SIMILAR, "better": BETTER}
    for name, scores in single.items():
        write_scores(folder / name, {"assistant": scores})
    write_scores(folder / "several", {"main": BASE, "candidate": WORSE, "sibling": SIMILAR})
    write_scores(folder / "few", {"assistant": BASE[:120]})
    (folder / "damaged").mkdir()
    (folder / "damaged" / "scores.csv").write_text("model,prompt_id,accuracy\nassistant,q1,not a number\n")
    (folder / "blank").mkdir()
    return folder


@pytest.fixture(autouse=True)
def ready_stores(request: pytest.FixtureRequest, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the tables of temporary stores, which takes a tenth of the time; TestStore creates them."""

    def copy(url: str) -> sa.Engine:
        shutil.copy(sqlite_template, url.removeprefix("sqlite:///"))
        return connect(url)

    if request.cls is not TestStore:
        monkeypatch.setattr(gate, "connect", copy)


def call(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(suffrage, ["gate", *map(str, arguments)])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


def against_earlier(folders: Path, name: str, *options: str) -> Result:
    return call(folders / name, "--baseline-results", folders / "baseline", *OPTIONS, *options)


def rows(result: Result) -> list[list[str]]:
    """The rows of the table of comparisons, without its head."""
    lines = [line for line in result.stdout.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


class TestVerdict:
    def test_a_significant_loss_fails_and_names_prompts_and_the_difference_with_its_interval(
        self, folders: Path
    ) -> None:
        result = against_earlier(folders, "worse")
        assert result.exit_code == 3
        assert result.stdout.startswith("## Significant regression\n")
        loss = (sum(BASE) - sum(WORSE)) / N
        sentence = rf"assistant is worse than its earlier results by {loss:.4f} on 200 prompts of quiz "
        assert re.search(sentence + r"\(95% interval -0\.\d{4} to -0\.\d{4}, p = \S+\)\.", result.stdout)
        ((status, model, _, benchmark, metric, n, *_),) = rows(result)
        assert (status, model, benchmark, metric, n) == ("regression", "assistant", "quiz", "accuracy", "200")
        assert "the baseline on" in result.stdout
        assert "(run " not in result.stdout
        assert result.stderr == "Significant regression.\n"

    @pytest.mark.parametrize(
        ("name", "status"), [("similar", "no significant regression"), ("better", "better"), ("baseline", "identical")]
    )
    def test_without_a_significant_loss_it_passes(self, folders: Path, name: str, status: str) -> None:
        result = against_earlier(folders, name)
        assert result.exit_code == 0
        assert result.stdout.startswith("## No significant regression in 1 comparison\n")
        assert [row[0] for row in rows(result)] == [status]
        assert [row[5] for row in rows(result)] == ["200"]

    def test_a_regression_in_one_of_several_files_is_detected(self, tmp_path: Path) -> None:
        """The other file is the same as before, byte for byte, and no run of the baseline stands in for the new one."""
        for name, scores in (("old", BASE), ("new", WORSE)):
            write_scores(tmp_path / name / "a", {"assistant": BASE})
            write_scores(tmp_path / name / "b", {"assistant": scores}, first=N)
        result = call(tmp_path / "new", "--baseline-results", tmp_path / "old", *OPTIONS)
        assert result.exit_code == 3
        assert [row[5] for row in rows(result)] == ["400"]

    def test_missing_scores_count_by_the_policy(self, tmp_path: Path) -> None:
        """The new results lack prompts that the baseline solves: a loss if they are wrong, none on shared prompts."""
        write_scores(tmp_path / "old", {"assistant": [1] * 50})
        write_scores(tmp_path / "new", {"assistant": [1] * 40})
        command = (tmp_path / "new", "--baseline-results", tmp_path / "old", *OPTIONS, "--min-coverage", "0.5")
        assert rows(call(*command))[0][0] == "identical"
        worst = call(*command, "--missing", "worst")
        assert (worst.exit_code, rows(worst)[0][0], rows(worst)[0][5]) == (3, "regression", "40")
        assert call(*command, "--missing", "bounds").exit_code == 0
        assert call(*command, "--missing", "impute").exit_code == 0
        with pytest.raises(SelectionError, match="Scores are missing"):
            call(*command, "--missing", "fail")

    def test_a_loss_within_the_margin_passes(self, folders: Path) -> None:
        assert against_earlier(folders, "worse", "--margin", "0.02").exit_code == 3
        result = against_earlier(folders, "worse", "--margin", "0.09")
        assert result.exit_code == 0
        assert "but the loss is not significantly larger than the margin of 0.09" in result.stdout

    def test_models_are_compared_with_a_named_one_at_a_corrected_level(self, folders: Path) -> None:
        result = call(folders / "several", "--baseline", "main", *OPTIONS)
        assert result.exit_code == 3
        assert result.stdout.startswith("## 1 significant regression in 2 comparisons\n")
        assert [row[:3] for row in rows(result)] == [
            ["regression", "candidate", "main"],
            ["no significant regression", "sibling", "main"],
        ]
        assert "p ≤ 0.025 (Bonferroni's correction for 2 comparisons of 0.05)" in result.stdout
        assert "97.5% interval" in result.stdout
        assert re.search(r"^quiz: (main|sibling) is first", result.stdout, re.M)
        assert call(folders / "several", "--baseline", "main", "--model", "sibling", *OPTIONS).exit_code == 0

    def test_its_numbers_are_those_of_the_comparison(self, folders: Path, sqlite_url: str) -> None:
        runner = CliRunner()
        arguments = [str(folders / "several"), *OPTIONS, "--database", sqlite_url, "--no-mlflow"]
        assert runner.invoke(suffrage, ["ingest", *arguments]).exit_code == 0
        names = ["quiz", "candidate", "main", "--format", "json", "--database", sqlite_url]
        compared = json.loads(runner.invoke(suffrage, ["compare", *names]).stdout)
        checked = call(
            folders / "several", "--baseline", "main", "--model", "candidate", *OPTIONS, "--format", "json"
        ).stdout
        (row,) = json.loads(checked)["comparisons"]
        assert row["status"] == "regression"
        metrics = compared["metrics"]
        assert {name: row[name] for name in ("difference", "low", "high", "pvalue", "detectable")} == {
            name: metrics[name] for name in ("difference", "low", "high", "pvalue", "detectable")
        }

    def test_where_smaller_scores_are_better_a_rise_is_a_loss(self, tmp_path: Path) -> None:
        for name, scores in (("old", WORSE), ("new", BASE)):
            (tmp_path / name).mkdir()
            lines = "".join(f"q{i},{score}\n" for i, score in enumerate(scores))
            (tmp_path / name / "scores.csv").write_text(f"prompt_id,assistant\n{lines}")
        options = ("--baseline-results", tmp_path / "old", *OPTIONS, "--metric")
        assert call(tmp_path / "new", *options, "accuracy").exit_code == 0
        assert call(tmp_path / "new", *options, "error_rate").exit_code == 3


class TestStore:
    def test_it_is_temporary_whatever_the_settings(
        self, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SUFFRAGE_DATABASE_URL", f"sqlite:///{tmp_path}/kept.db")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert against_earlier(folders, "worse").exit_code == 3
        assert list(tmp_path.iterdir()) == []


class TestSummary:
    def test_it_is_appended_to_a_file(self, folders: Path, tmp_path: Path) -> None:
        path = tmp_path / "summary.md"
        path.write_text("# Before\n")
        result = against_earlier(folders, "similar", "--summary", str(path))
        assert path.read_text() == f"# Before\n{result.stdout}"
        with pytest.raises(OutputError, match="Name another file with --summary"):
            against_earlier(folders, "similar", "--summary", str(tmp_path / "missing" / "summary.md"))

    def test_names_are_no_markup(self, tmp_path: Path) -> None:
        name = "<img src=x>|[a](b)"
        write_scores(tmp_path / "old", {name: BASE})
        write_scores(tmp_path / "new", {name: WORSE})
        result = call(tmp_path / "new", "--baseline-results", tmp_path / "old", *OPTIONS)
        assert "<img" not in re.sub(r"\\<img", "", result.stdout)
        ((_, model, *cells),) = rows(result)
        assert model == r"\<img src=x\>\|\[a\](b)"
        assert len(cells) == 10

    @given(st.text())
    def test_a_text_stays_on_one_line_and_opens_no_markup(self, text: str) -> None:
        line = escape_markdown(text)
        assert len(line.splitlines()) <= 1
        assert not re.search(r"(?<!\\)(?:\\\\)*[<>|`*\[\]]", line)


class TestErrors:
    """Each says what to do."""

    def test_a_missing_baseline(self, folders: Path) -> None:
        with pytest.raises(NotFoundError, match=r"No baseline 'candidate' in \S+ with results of quiz.* --baseline"):
            against_earlier(folders, "several", "--model", "candidate")
        with pytest.raises(NotFoundError, match=r"No baseline 'mian' .*Did you mean 'main'\?.*--baseline"):
            call(folders / "several", "--baseline", "mian", *OPTIONS)
        result = call(folders / "worse", *OPTIONS)
        assert result.exit_code == 2
        assert "Add --baseline-results PATH for earlier results, or --baseline MODEL" in result.stderr

    def test_only_the_baseline(self, folders: Path) -> None:
        with pytest.raises(SelectionError, match=r"it holds assistant alone.*\n.*--baseline-results"):
            call(folders / "baseline", "--baseline", "assistant", *OPTIONS)

    def test_an_unknown_model(self, folders: Path) -> None:
        with pytest.raises(NotFoundError, match=r"No model 'asistant' .*Did you mean 'assistant'"):
            against_earlier(folders, "worse", "--model", "asistant")

    @pytest.mark.parametrize("name", ["damaged", "blank", "no-such-folder"])
    def test_an_unreadable_folder(self, folders: Path, name: str) -> None:
        with pytest.raises(BadInputError, match=name):
            against_earlier(folders, name)
        with pytest.raises(BadInputError, match=name):
            call(folders / "worse", "--baseline-results", folders / name, *OPTIONS)

    def test_too_few_shared_prompts(self, folders: Path) -> None:
        with pytest.raises(SelectionError, match=r"share 120 of 200 prompts of quiz.*95%\.\n.*--min-coverage"):
            against_earlier(folders, "few")
        result = against_earlier(folders, "few", "--min-coverage", "0.5")
        assert result.exit_code == 0
        assert [row[5] for row in rows(result)] == ["120"]


PAIR = RunPair(benchmark="b", metric="m", model="a", baseline="a", run_id=2, baseline_id=1)


class TestLaws:
    @given(
        difference=st.floats(-1, 1),
        half=st.floats(0, 0.5),
        pvalue=st.floats(0, 1),
        margins=st.tuples(*[st.floats(0, 1)] * 2),
    )
    def test_a_larger_margin_or_a_gain_never_makes_a_regression(
        self, difference: float, half: float, pvalue: float, margins: tuple[float, float]
    ) -> None:
        def status(margin: float) -> str:
            return BaselineComparison(
                pair=PAIR, n_prompts=100, n_changed=1, difference=difference, low=difference - half,
                high=difference + half, pvalue=pvalue, level=0.95, margin=margin,
            ).status  # fmt: skip

        small, large = map(status, sorted(margins))
        assert large != "regression" or small == "regression"
        assert "regression" not in (small, large) or (difference <= 0 and pvalue <= 0.05 + 1e-12)
