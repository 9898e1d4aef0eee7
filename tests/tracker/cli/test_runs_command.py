"""`suffrage runs`: listed, hidden, superseded, deleted, and what the person is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run, written

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import NotFoundError
from tracker.queries.selection import Selection
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.pipeline import run_analysis

ARITHMETIC = Selection(benchmark="arithmetic")


def listing(engine: sa.Engine, *options: str) -> dict[int, str]:
    """Status of each run that is listed."""
    return {row["id"]: row["status"] for row in json.loads(run(engine, "runs", *options, "--format", "json").stdout)}


@pytest.mark.usefixtures("toys")
class TestRunStatus:
    def test_hidden_runs_are_listed_on_request_only(self, filled: sa.Engine) -> None:
        message = run(filled, "runs", "hide", "2", "3", "--reason", "odd", "--no-mlflow").stderr
        assert message == "Runs 2, 3 are hidden.\n"
        assert set(listing(filled)) == set(listing(filled, "list")) == {1, 4, 5}
        assert listing(filled, "list", "--all") == listing(filled, "--all") == {
            1: "complete", 2: "hidden", 3: "hidden", 4: "complete", 5: "complete",
        }  # fmt: skip
        table = run(filled, "runs")
        assert "Not listed: 2 hidden or superseded. List them with --all." in table.stderr
        assert "odd" in run(filled, "runs", "list", "--all").stdout
        assert run(filled, "runs", "unhide", "2", "--no-mlflow").stderr == "Run 2 is in use again.\n"
        assert set(listing(filled)) == {1, 2, 4, 5}

    def test_one_run_is_shown_whole(self, filled_file: sa.Engine) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC)
        run(filled_file, "runs", "hide", "2", "--reason", "odd", "--no-mlflow")
        stored = json.loads(run(filled_file, "runs", "show", "2", "--format", "json").stdout)
        assert (stored["status"], stored["reason"], stored["findings"], stored["n_scores"]) == (
            "hidden",
            "odd",
            [1],
            40,
        )
        assert stored["settings"]["temperature"] == 0.5

    def test_deleting_previews_the_loss_and_needs_confirmation(self, filled_file: sa.Engine) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC)
        url = filled_file.url.render_as_string(hide_password=False)
        refused = CliRunner().invoke(suffrage, ["runs", "delete", "2", "--database", url])
        assert refused.exit_code == 2
        assert "Also deleted: 40 scores. Prompts, models and findings stay." in refused.stderr
        assert "Stale after the deletion: finding 1." in refused.stderr
        assert "Nothing was deleted, since there is no terminal to confirm on. Add --yes to delete." in refused.stderr
        assert len(listing(filled_file)) == 5
        message = run(filled_file, "runs", "delete", "2", "--yes", "--no-mlflow").stderr
        assert "Run 2 is deleted.\nStale now: finding 1." in message
        assert set(listing(filled_file)) == {1, 3, 4, 5}
        printed = run(filled_file, "show", "1")
        assert "Stale: deleted since: run 2 of arithmetic/model 1. Run it again: " in printed.stderr

    def test_mlflow_shows_it_at_once_and_is_missed_with_a_warning(
        self, filled_file: sa.Engine, tracking_uri: str
    ) -> None:
        run_analysis(filled_file, "toy", ARITHMETIC, publish_to=tracking_uri)
        publish_missing(filled_file, tracking_uri)
        run(filled_file, "runs", "hide", "2", "--tracking-uri", tracking_uri)
        done = publish_missing(filled_file, tracking_uri)
        assert (done.n_new, done.n_marked, done.n_deleted) == (0, 0, 0)
        away = run(filled_file, "runs", "unhide", "2", "--tracking-uri", "sqlite:////nowhere/mlflow.db")
        assert "Warning: " in away.stderr
        assert publish_missing(filled_file, tracking_uri).n_marked == 1

    def test_ingesting_results_of_a_hidden_run_is_a_warning(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        known = ("--benchmark", "b", "--metric", "accuracy", "--no-mlflow")
        run(engine, "ingest", written(tmp_path / "a.csv", "prompt_id,m\np1,1\n"), *known)
        run(engine, "runs", "hide", "1", "--no-mlflow")
        message = run(engine, "ingest", written(tmp_path / "b.csv", "prompt_id,m\np1,1\np2,0\n"), *known).stderr
        assert "m: run 1 stays hidden; show it again with suffrage runs unhide 1" in message
        assert listing(engine, "--all") == {1: "hidden"}
        engine.dispose()


class TestErrors:
    def test_options_before_the_word_are_not_swallowed(self, filled_file: sa.Engine) -> None:
        result = CliRunner().invoke(suffrage, ["runs", "--model", "x", "hide", "2"])
        assert result.exit_code == 2
        assert "Give the options after the word hide." in result.stderr

    def test_a_key_of_no_run_is_named(self, filled: sa.Engine) -> None:
        for words in (
            ("hide", "99999999999"),
            ("unhide", "77"),
            ("delete", "77", "--yes"),
            ("supersede", "1", "--by", "9"),
        ):
            with pytest.raises(NotFoundError, match="Known: "):
                run(filled, "runs", *words)
