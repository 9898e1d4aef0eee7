"""`suffrage undo` and `suffrage metrics`: what they print, confirm and change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run
from store_rows import rows_of

from tracker.cli import suffrage
from tracker.database import connect
from tracker.errors import ConflictError
from tracker.recording.mlflow import publishing

FULL = "model,prompt_id,score\na,1,1\na,2,0\na,3,1\nb,1,0\nb,2,0\nb,3,1\n"
LIMITED = "model,prompt_id,score\na,1,0\na,2,1\n"


@pytest.fixture
def engine(sqlite_url: str, tmp_path: Path) -> sa.Engine:
    """A store with a full file under accuracy."""
    engine = connect(sqlite_url)
    ingest(engine, tmp_path / "full.csv", FULL, "--metric", "accuracy")
    return engine


def ingest(engine: sa.Engine, path: Path, text: str, *options: str) -> str:
    path.write_text(text)
    return run(engine, "ingest", str(path), "--benchmark", "b", "--no-mlflow", *options).stderr


def fails(engine: sa.Engine, *arguments: str) -> str:
    """What a wrong command line prints."""
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url])
    assert result.exit_code == 2
    return result.stderr


class TestUndo:
    def test_it_shows_confirms_and_removes(self, engine: sa.Engine, tmp_path: Path) -> None:
        before = rows_of(engine)
        ingest(engine, tmp_path / "limited.csv", LIMITED, "--metric", "accuracy")
        after = rows_of(engine)
        preview = run(engine, "undo", "--dry-run").stderr
        assert "limited.csv (long-table, source 2):\n  To remove: 2 scores, 1 run.\nDry run: nothing was ch" in preview
        assert "no terminal to confirm on. Add --yes to undo." in fails(engine, "undo", "--no-mlflow")
        assert rows_of(engine) == after
        assert run(engine, "undo", "--yes", "--no-mlflow").stderr.endswith("limited.csv is undone.\n")
        assert rows_of(engine) == before

    def test_it_lists_the_imports(self, engine: sa.Engine, tmp_path: Path) -> None:
        ingest(engine, tmp_path / "limited.csv", LIMITED, "--metric", "accuracy")
        rows = json.loads(run(engine, "undo", "--list", "--format", "json").stdout)
        assert [(row["source"], row["n_prompts"], row["n_models"], row["n_runs"]) for row in rows] == [
            (2, 0, 0, 1),
            (1, 3, 2, 2),
        ]

    def test_it_names_the_import_to_undo_first(self, engine: sa.Engine, tmp_path: Path) -> None:
        ingest(engine, tmp_path / "limited.csv", LIMITED, "--metric", "accuracy")
        with pytest.raises(ConflictError, match=r"full\.csv cannot be undone: .*\n.*suffrage undo --source 2"):
            run(engine, "undo", "--source", "1", "--yes")


class TestMetrics:
    def test_a_forgotten_metric_is_an_error_that_names_the_option(self, engine: sa.Engine, tmp_path: Path) -> None:
        before = rows_of(engine)
        message = ingest_failure(engine, tmp_path / "full.csv")
        assert "b has this content under accuracy, not under score. Nothing was stored.\n" in message
        assert "--metric accuracy" in message
        assert "--new-metric" in message
        assert rows_of(engine) == before

    def test_they_are_listed_chosen_renamed_and_deleted(self, engine: sa.Engine, tmp_path: Path) -> None:
        def defaults() -> dict[str, bool]:
            rows = json.loads(run(engine, "metrics", "--format", "json").stdout)
            return {row["metric"]: row["default"] for row in rows}

        ingest(engine, tmp_path / "full.csv", FULL, "--new-metric")
        assert defaults() == {"accuracy": True, "score": False}
        board = run(engine, "leaderboard", "b").stderr
        assert "Metric of b: accuracy, its default. Choose another with --metric NAME: score" in board
        run(engine, "metrics", "default", "b", "score")
        assert defaults() == {"accuracy": False, "score": True}
        run(engine, "metrics", "rename", "score", "points")
        assert "To delete: 6 scores of 2 runs.\n" in fails(engine, "metrics", "delete", "b", "points", "--no-mlflow")
        assert defaults() == {"points": True, "accuracy": False}
        run(engine, "metrics", "delete", "b", "points", "--yes", "--no-mlflow")
        assert defaults() == {"accuracy": True}

    def test_runs_that_go_with_a_metric_go_from_mlflow(
        self, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        updates: list[tuple[object, ...]] = []
        monkeypatch.setattr(publishing, "publish_changes", lambda _, *update: updates.append(update))
        run(engine, "metrics", "delete", "b", "accuracy", "--yes", "--tracking-uri", "sqlite:///elsewhere.db")
        assert updates == [((1, 2), (), "sqlite:///elsewhere.db")]

    @pytest.mark.parametrize(
        "command", [("leaderboard", "b"), ("export", "scores", "b"), ("compare", "b", "a", "b", "--format", "json")]
    )
    def test_every_command_reports_the_metric_and_the_run_it_uses(
        self, engine: sa.Engine, tmp_path: Path, command: tuple[str, ...]
    ) -> None:
        ingest(engine, tmp_path / "full.csv", FULL, "--new-metric")
        ingest(engine, tmp_path / "limited.csv", LIMITED, "--metric", "accuracy")
        printed = run(engine, *command)
        text = " ".join((printed.stdout + printed.stderr).split())
        assert "a: run 1 with 3 prompts, not run 3 with 2 prompts" in text
        if command[0] != "export":  # which has all metrics
            assert "Metric of b: accuracy, its default" in text


def ingest_failure(engine: sa.Engine, path: Path) -> str:
    url = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, ["ingest", str(path), "--benchmark", "b", "--no-mlflow", "--database", url])
    assert result.exit_code == 1
    return result.stderr
