"""`suffrage analyze`: a question on the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from mlflow import MlflowClient

import analyses
from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.sql import tables
from tracker.recording.declaration import load_declaration

DROPPED_IN = '''
"""What is the share of right answers?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracker.figures.canvas import create_figure
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Report, Summary, analysis


@dataclass(frozen=True, kw_only=True)
class Share(Finding):
    share: float


@analysis
def analyze(scores: PerformanceMatrix, *, decimals: int = 3) -> Report:
    share = round(float(np.nanmean(scores.Q)), decimals)
    return Report(
        Share(share=share),
        summary=Summary(f"The share is {share:.3f}."),
        figures={"empty": lambda: create_figure(2, 1, "Nothing")},
    )
'''


def run_analyze(engine: sa.Engine, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(suffrage, ["analyze", *arguments, "--database", str(engine.url)])
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.mark.usefixtures("toys")
class TestOutput:
    def test_summary_and_numbers_go_to_stdout_and_everything_else_to_stderr(
        self, filled_file: sa.Engine, tracking_uri: str
    ) -> None:
        result = run_analyze(filled_file, "toy", "arithmetic", "--tracking-uri", tracking_uri)
        lines = result.stdout.splitlines()
        assert lines[0].startswith("On 40 prompts the mean score is ")
        assert lines[1:] == ["  Caveat: This is a toy."]
        recorded = result.stderr.splitlines()[-1]
        assert recorded.startswith("Recorded as finding 1 (")
        assert recorded.endswith("): `suffrage show 1`")
        assert len(recorded) <= 100
        assert "Warning" not in result.stderr

    def test_json_and_csv_hold_the_numbers_in_full(self, filled_file: sa.Engine) -> None:
        printed = json.loads(run_analyze(filled_file, "toy", "arithmetic", "--no-mlflow", "--format", "json").stdout)
        assert printed["finding_id"] == 1
        assert printed["metrics"]["undefined"] is None
        assert printed["undefined"]["untested"] == "invariant under this null"
        assert printed["mlflow_run_id"] is None
        lines = run_analyze(filled_file, "toy", "arithmetic", "--no-mlflow", "--format", "csv").stdout.splitlines()
        assert lines[0] == "name,value,reason"
        assert f"mean,{printed['metrics']['mean']!r}," in lines

    def test_without_mlflow_nothing_of_it_is_written(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        result = run_analyze(filled_file, "toy", "arithmetic", "--no-mlflow")
        assert not list(tmp_path.glob("ml*"))
        assert "suffrage ui" not in result.stderr

    def test_an_mlflow_that_is_away_is_a_warning(self, filled_file: sa.Engine) -> None:
        result = run_analyze(filled_file, "toy", "arithmetic", "--tracking-uri", "http://127.0.0.1:9")
        assert "Warning: MLflow at http://127.0.0.1:9 rejected the request" in result.stderr
        assert "Recorded as finding 1" in result.stderr


@pytest.mark.usefixtures("toys")
class TestOptions:
    def test_options_become_the_recorded_parameters(self, filled_file: sa.Engine) -> None:
        arguments = "--n-blocks 3 --method fancy --quantiles 0.1,0.5 --quantiles 0.9 --threshold 2 --verbose --seed 9"
        run_analyze(
            filled_file,
            "toy",
            "arithmetic",
            "--no-mlflow",
            "--tasks",
            "task 1,task 2",
            "--workers",
            "2",
            *arguments.split(),
        )
        with transaction(filled_file, write=False) as session:
            row = session.execute(sa.select(tables.finding)).one()
        assert row.parameters == {
            "n_blocks": 3,
            "method": "fancy",
            "quantiles": [0.1, 0.5, 0.9],
            "threshold": 2.0,
            "verbose": True,
            "label": "",
            "seed": 9,
        }
        assert row.selection["tasks"] == ["task 1", "task 2"]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("--method odd", "'odd' is not one of 'plain', 'fancy'"),
            ("--quantiles 0.1,x", "'x' is not a valid float"),
            ("--n-blocks x", "'x' is not a valid integer"),
            ("--workers 0", "give a number of cores"),
        ],
    )
    def test_what_does_not_fit_is_a_usage_error(self, filled_file: sa.Engine, arguments: str, words: str) -> None:
        result = run_analyze(filled_file, "toy", "arithmetic", *arguments.split(), code=2)
        assert words in result.stderr

    def test_the_device_is_an_option_of_analyses_that_have_the_choice(self, filled_file: sa.Engine) -> None:
        assert "--device NAME" in run_analyze(filled_file, "prompt-correlation", "--help").stdout
        assert "--device" not in run_analyze(filled_file, "toy", "--help").stdout
        result = run_analyze(filled_file, "toy", "arithmetic", "--device", "cuda", code=2)
        assert "No such option" in result.stderr

    def test_a_device_that_is_not_there_is_an_error(self, filled_file: sa.Engine) -> None:
        with pytest.raises(SelectionError, match="Device 'tpu' is neither cpu nor a CUDA device"):
            run_analyze(filled_file, "prompt-correlation", "arithmetic", "--no-mlflow", "--device", "tpu")

    def test_help_lists_questions_without_importing_them(self) -> None:
        code = (
            "import sys; from tracker.cli import suffrage\n"
            "try: suffrage.main(['analyze', '--help'])\n"
            "finally: print([m for m in ('toys', 'numpy', 'sqlalchemy', 'mlflow', 'analyses') if m in sys.modules])"
        )
        environment = dict(os.environ) | {"PYTHONPATH": "site"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        assert "toy" in done.stdout
        assert "How hard are the prompts?" in done.stdout
        assert done.stdout.splitlines()[-1] == "[]"

    def test_help_of_one_shows_defaults_and_choices(self, filled_file: sa.Engine) -> None:
        text = " ".join(run_analyze(filled_file, "toy", "--help").stdout.split())
        assert "--method [plain|fancy] how [default: plain]" in text
        assert "--quantiles A,B [default: 0.25,0.75]" in text
        assert "--verbose " in text
        assert "--no-verbose" not in text
        assert "A toy that returns one of everything." in text


class TestLists:
    def test_analyses_lists_what_can_be_run_with_its_package(self, toys: None) -> None:
        done = CliRunner().invoke(suffrage, ["analyses", "--format", "json"])
        listing = {row["name"]: row for row in json.loads(done.stdout)}
        assert listing["prompt-correlation"]["package"].startswith("suffrage ")
        assert listing["prompt-correlation"]["description"].startswith("Test whether prompts agree")
        assert "toy" in listing

    def test_findings_shows_the_status_of_a_failed_analysis_and_the_first_line_of_its_error(
        self, filled_file: sa.Engine, toys: None
    ) -> None:
        database = ["--database", str(filled_file.url)]
        CliRunner().invoke(suffrage, ["analyze", "toy", "arithmetic", "--no-mlflow", *database])
        sound = CliRunner().invoke(suffrage, ["findings", *database]).stdout
        assert "status" not in sound.splitlines()[0]
        CliRunner().invoke(suffrage, ["analyze", "toy", "arithmetic", "--label", "bug", "--no-mlflow", *database])
        head, _, latest, earlier = CliRunner().invoke(suffrage, ["findings", *database]).stdout.splitlines()
        assert "status" in head
        assert "failed" in latest
        assert "ZeroDivisionError: a bug" in latest
        assert "complete" in earlier
        assert "Failed: ZeroDivisionError: a bug" in CliRunner().invoke(suffrage, ["show", "2", *database]).stdout


class TestPlugins:
    def test_one_file_dropped_into_the_folder_is_a_command_a_row_and_an_experiment(
        self, filled_file: sa.Engine, tracking_uri: str, tmp_path: Path
    ) -> None:
        folder = tmp_path / "copied"
        shutil.copytree(
            Path(analyses.__file__).parent, folder / "analyses", ignore=shutil.ignore_patterns("__pycache__")
        )
        (folder / "analyses" / "dropped_in.py").write_text(DROPPED_IN)
        environment = dict(os.environ) | {"PYTHONPATH": str(folder), "MLFLOW_TRACKING_URI": tracking_uri}

        def run(*arguments: str) -> str:
            command = [sys.executable, "-m", "tracker.cli", "analyze", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "dropped-in What is the share of right answers?" in " ".join(run("--help").split())
        text = run("dropped-in", "arithmetic", "--decimals", "2", "--database", str(filled_file.url))
        assert text.startswith("The share is 0.")
        with transaction(filled_file, write=False) as session:
            assert session.execute(sa.select(tables.finding.c.analysis)).scalars().all() == ["dropped-in"]
            value = session.scalar(sa.select(tables.finding_metric.c.value))
        client = MlflowClient(tracking_uri=tracking_uri)
        [experiment] = client.search_experiments(filter_string="name = 'suffrage/dropped-in'")
        [run_] = client.search_runs([experiment.experiment_id])
        assert run_.data.params["decimals"] == "2"
        assert run_.data.metrics == {"share": value}
        assert [file.path for file in client.list_artifacts(run_.info.run_id) if file.path.endswith(".png")] == [
            "empty.png"
        ]

    def test_a_broken_plugin_costs_only_its_own_command(self, filled_file: sa.Engine, toys: None, install) -> None:
        install(
            "bad", {"broken": DROPPED_IN.replace("import numpy", "import no_such_module"), "torn": DROPPED_IN[:-20]}
        )
        text = CliRunner().invoke(suffrage, ["analyze", "--help"]).stdout
        assert "broken" in text
        assert "(not usable: its source is not Python in line" in text
        assert "How hard are the prompts?" in text
        for name, words in (("broken", "No module named 'no_such_module'"), ("torn", "not Python")):
            with pytest.raises(ImportError, match=words):
                run_analyze(filled_file, name, "arithmetic")
        run_analyze(filled_file, "toy", "arithmetic", "--no-mlflow")

    def test_a_parameter_named_like_a_shared_option_is_refused(self, filled_file: sa.Engine, install) -> None:
        install("bad", {"clash": DROPPED_IN.replace("decimals: int", "models: int")})
        with pytest.raises(ImportError, match="its parameter models is an option that every analysis has"):
            run_analyze(filled_file, "clash", "arithmetic")

    def test_a_mistyped_name_is_answered_with_those_that_are_near(self, filled_file: sa.Engine) -> None:
        with pytest.raises(LookupError, match="Did you mean 'prompt-correlation'"):
            run_analyze(filled_file, "prompt-corelation", "arithmetic")

    def test_every_analysis_that_is_installed_has_a_command(self) -> None:
        group = suffrage.get_command(click.Context(suffrage), "analyze")
        assert isinstance(group, click.Group)
        context = click.Context(group)
        for name in group.list_commands(context):
            created = group.get_command(context, name)
            assert created is not None
            assert created.get_short_help_str(200)
            used = {parameter.name for parameter in created.params}
            assert "tracking_uri" in used
            assert ({"benchmark", "tasks"} <= used) == load_declaration(name).is_of_one_benchmark


class TestTables:
    def test_a_table_of_a_finding_is_printed_and_its_name_listed(self, toys: None, filled_file: sa.Engine) -> None:
        query = run_analyze(filled_file, "toy", "arithmetic", "--no-mlflow")
        assert "1 table" in query.stderr
        url = str(filled_file.url)
        displayed = CliRunner().invoke(
            suffrage, ["show", "1", "--table", "quantiles", "--format", "json", "--database", url]
        )
        assert [row["q"] for row in json.loads(displayed.stdout)] == [0.25, 0.75]

    def test_a_table_that_is_not_there_is_answered_with_those_that_are(
        self, toys: None, filled_file: sa.Engine
    ) -> None:
        run_analyze(filled_file, "toy", "arithmetic", "--no-mlflow")
        url = str(filled_file.url)
        displayed = CliRunner().invoke(suffrage, ["show", "1", "--table", "quantile", "--database", url])
        assert isinstance(displayed.exception, NotFoundError)
        assert "Did you mean 'quantiles'?" in str(displayed.exception)
