"""`suffrage simulate` and `suffrage tradeoff`: from baselines and benchmarks to the picture of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from mlflow import MlflowClient

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import OutputError, SelectionError
from tracker.queries.sql import tables

SMALL = ("--tasks", "6", "--models", "12", "--trials", "2", "--time-limit", "0")


def run(engine: sa.Engine, *arguments: str, tracking_uri: str = "", code: int = 0) -> Result:
    url = engine.url.render_as_string(hide_password=False)
    mlflow = ["--tracking-uri", tracking_uri] if tracking_uri else ["--no-mlflow"]
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url, *mlflow])
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def rows(engine: sa.Engine) -> list[sa.Row]:
    with transaction(engine, write=False) as session:
        return list(session.execute(sa.select(tables.finding).order_by(tables.finding.c.id)))


def numbers(engine: sa.Engine, key: int) -> dict[str, float | None]:
    metric = tables.finding_metric.c
    with transaction(engine, write=False) as session:
        return dict(session.execute(sa.select(metric.name, metric.value).where(metric.finding_id == key)).all())


class TestSimulate:
    def test_constant_is_stable_random_is_not_and_each_system_has_a_finding(self, store: sa.Engine) -> None:
        run(store, "simulate", "constant", *SMALL, "--top", "3")
        printed_text = run(store, "simulate", "random", *SMALL, "--top", "3", "--seed", "1")
        assert printed_text.stdout.startswith(
            "Independent random scores (tasks 6, models 12), means over 2 trials: diversity"
        )
        recorded = rows(store)
        assert [(record.analysis, record.benchmark_id, record.selection) for record in recorded] == [
            ("social-choice", None, {})
        ] * 4
        assert [(record.parameters["simulated"], record.parameters["system"]) for record in recorded] == [
            ("constant", "cardinal"),
            ("constant", "ordinal"),
            ("random", "cardinal"),
            ("random", "ordinal"),
        ]
        assert (recorded[3].parameters["top"], recorded[3].parameters["n_trials"], recorded[3].seed) == (3, 2, 1)
        stable, restless = numbers(store, recorded[0].id), numbers(store, recorded[2].id)
        assert (stable["diversity"], stable["cardinal.tau_upper"], stable["cardinal.mrc_upper"]) == (0, 0, 0)
        assert restless["diversity"] > 0.7
        assert 0.1 < restless["cardinal.tau"] <= restless["cardinal.tau_upper"] <= 1
        assert restless["diversity.sd"] > 0
        assert "ordinal.tau" not in restless

    def test_the_same_seed_gives_the_same_numbers(self, filled_file: sa.Engine) -> None:
        for seed in ("0", "0", "1"):
            run(filled_file, "simulate", "random", *SMALL, "--system", "cardinal", "--seed", seed)
        record, again, second = (numbers(filled_file, row.id) for row in rows(filled_file))
        assert record == again != second

    def test_a_split_is_about_its_benchmark_but_is_not_its_finding(self, filled_file: sa.Engine) -> None:
        run(filled_file, "simulate", "split", "arithmetic", "--tasks", "4", "--trials", "2", "--time-limit", "1")
        [split] = rows(filled_file)
        assert split.parameters["simulated"] == "split into 4 tasks"
        assert split.selection["benchmark"] == "arithmetic"
        assert split.benchmark_id is not None
        assert numbers(filled_file, split.id)["n_tasks"] == 4
        with transaction(filled_file, write=False) as session:
            assert session.scalar(sa.select(sa.func.count()).select_from(tables.finding_run)) == 5
        with transaction(filled_file) as session:
            session.execute(sa.update(tables.run).values(checksum="new"))
        url = filled_file.url.render_as_string(hide_password=False)
        printed = CliRunner().invoke(suffrage, ["show", str(split.id), "--database", url])
        assert "It is simulated (split into 4 tasks). To repeat it, see `suffrage simul" in printed.stderr

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ("constant --models 2", "2 is not in the range"),
            ("random --trials 0", "0 is not in the range"),
            ("split", "Missing argument 'BENCHMARK'"),
            ("random --method odd", "'odd' is not one of"),
        ],
    )
    def test_what_does_not_fit_is_a_usage_error(self, filled_file: sa.Engine, options: str, words: str) -> None:
        assert words in run(filled_file, "simulate", *options.split(), code=2).stderr

    def test_so_few_models_that_ten_cannot_lead_are_refused_where_some_must_lead(self, filled_file: sa.Engine) -> None:
        few = ("--models", "8", "--tasks", "1", "--trials", "1", "--time-limit", "0")
        run(filled_file, "simulate", "random", *few, "--system", "cardinal")
        with pytest.raises(SelectionError, match="top is 10; at least 2 and at most 7"):
            run(filled_file, "simulate", "random", *few, "--system", "ordinal")

    @pytest.mark.parametrize("top", ["12", "0", "1.5"])
    def test_a_number_of_leaders_that_cannot_be_leaves_nothing_recorded(self, filled_file: sa.Engine, top: str) -> None:
        with pytest.raises(SelectionError, match="top is"):
            run(filled_file, "simulate", "random", *SMALL, "--top", top)
        assert rows(filled_file) == []

    def test_a_search_by_descent_is_not_labelled_exact(self, filled_file: sa.Engine) -> None:
        printed_text = run(
            filled_file, "simulate", "random", *SMALL, "--method", "paper", "--system", "cardinal"
        ).stdout
        assert "Search: the paper's gradient descent." in printed_text

    def test_options_of_the_question_are_refused_as_the_question_does(self, filled_file: sa.Engine) -> None:
        with pytest.raises(SelectionError, match="epsilon"):
            run(filled_file, "simulate", "random", *SMALL, "--epsilon", "7")
        assert rows(filled_file) == []


class TestTradeoff:
    def test_every_benchmark_is_a_point_here_and_a_run_of_one_experiment_in_mlflow(
        self, filled_file: sa.Engine, more: Callable[..., list[int]], tracking_uri: str, tmp_path: Path
    ) -> None:
        more(filled_file, "algebra")
        for name in ("arithmetic", "algebra"):
            run(filled_file, "analyze", "social-choice", name, "--time-limit", "1", tracking_uri=tracking_uri)
        for kind in ("constant", "random"):
            run(filled_file, "simulate", kind, *SMALL, "--system", "cardinal", tracking_uri=tracking_uri)
        picture = tmp_path / "picture.svg"
        result = run(filled_file, "tradeoff", "--output", str(picture), "--format", "json", tracking_uri=tracking_uri)
        listed_rows = json.loads(result.stdout)
        assert (listed_rows["metrics"]["cardinal.tau.n"], listed_rows["metrics"]["ordinal.tau.n"]) == (4, 2)
        assert listed_rows["metrics"]["cardinal.tau.pearson"] is not None
        assert listed_rows["undefined"]["ordinal.tau.pearson"] == "2 points are too few"
        assert "<svg" in picture.read_text()
        [tradeoff] = [row for row in rows(filled_file) if row.analysis == "tradeoff"]
        assert (tradeoff.benchmark_id, tradeoff.selection) == (None, {})

        client = MlflowClient(tracking_uri)
        experiment = client.get_experiment_by_name("suffrage/social-choice")
        printed = {run.info.run_name.split()[0]: run.data for run in client.search_runs([experiment.experiment_id])}
        assert set(printed) == {"arithmetic", "algebra", "constant", "random"}
        for name, data in printed.items():
            assert {"diversity", "cardinal.tau", "cardinal.mrc"} <= set(data.metrics), name
        assert printed["random"].params["simulated"] == "random"
        assert client.get_experiment_by_name("suffrage/tradeoff") is not None

        [first, *_] = rows(filled_file)
        for options, n in ((("--exclude", "algebra,Random"), 2), (("--finding-ids", str(first.id)), 1)):
            printed_text = json.loads(run(filled_file, "tradeoff", *options, "--format", "json").stdout)
            assert printed_text["metrics"]["n_points"] == n

    def test_without_findings_the_commands_that_make_them_are_named(self, filled_file: sa.Engine) -> None:
        with pytest.raises(SelectionError, match="Run `suffrage analyze social-choice BENCHMARK`"):
            run(filled_file, "tradeoff")

    def test_a_picture_of_another_kind_is_refused_before_anything_is_recorded(self, filled_file: sa.Engine) -> None:
        result = run(filled_file, "tradeoff", "--output", "picture.docx", code=2)
        assert "ends in .png, .pdf, .svg" in result.stderr
        assert rows(filled_file) == []

    def test_a_folder_that_is_not_there_is_refused_before_anything_is_recorded(
        self, filled_file: sa.Engine, tmp_path: Path
    ) -> None:
        result = run(filled_file, "tradeoff", "--output", str(tmp_path / "none" / "picture.png"), code=2)
        assert "there is no folder" in result.stderr
        assert rows(filled_file) == []

    def test_a_picture_that_cannot_be_written_is_one_sentence(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        run(filled_file, "simulate", "constant", *SMALL, "--system", "cardinal")
        with pytest.raises(OutputError, match=r"cannot be written: File name too long\. Use another name"):
            run(filled_file, "tradeoff", "--output", str(tmp_path / f"{'long' * 100}.png"))

    def test_the_same_epsilon_may_be_written_otherwise_and_what_is_none_is_refused(
        self, filled_file: sa.Engine
    ) -> None:
        run(filled_file, "simulate", "constant", *SMALL, "--system", "cardinal", "--epsilon", "0.010")
        printed_text = json.loads(run(filled_file, "tradeoff", "--epsilon", "1e-2", "--format", "json").stdout)
        assert printed_text["metrics"]["n_points"] == 1
        with pytest.raises(SelectionError, match="decimal number"):
            run(filled_file, "tradeoff", "--epsilon", "some")
