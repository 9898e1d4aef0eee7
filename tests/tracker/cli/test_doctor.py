"""`suffrage doctor` reports every fault with what to do next, and what is sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run

from tracker.cli import suffrage
from tracker.connections.schema_versions import downgrade, known_versions
from tracker.database import connect, transaction
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import compute_checksum
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.mlflow.publishing import publish_missing
from tracker.recording.pipeline import run_analysis

ARITHMETIC = Selection(benchmark="arithmetic")


def examined(engine: sa.Engine, *options: str) -> tuple[int, dict[str, tuple[str, str, str]]]:
    """Exit code, and verdict, words and advice of each check."""
    url = engine.url.render_as_string(hide_password=False)
    options = options or ("--no-mlflow",)
    result = CliRunner().invoke(suffrage, ["doctor", "--database", url, "--format", "json", *options])
    assert isinstance(result.exception, SystemExit | None), result.exception
    checks = {load["name"]: (load["verdict"], load["result"], load["advice"]) for load in json.loads(result.stdout)}
    return result.exit_code, checks


@pytest.fixture
def sound(filled: sa.Engine) -> sa.Engine:
    """A store whose runs have the checksums of their scores."""
    with transaction(filled) as session:
        for key in range(1, 6):
            text = compute_checksum(list(load_scores(session, key).values()))
            session.execute(sa.update(tables.run).where(tables.run.c.id == key).values(checksum=text))
    return filled


@pytest.mark.usefixtures("toys")
class TestSound:
    def test_a_sound_store_is_all_well(self, sound: sa.Engine, tracking_uri: str) -> None:
        run_analysis(sound, "toy", ARITHMETIC, publish_to=tracking_uri)
        publish_missing(sound, tracking_uri)
        code, checks = examined(sound, "--tracking-uri", tracking_uri)
        assert (code, {verdict for verdict, _, _ in checks.values()}) == (0, {"ok"}), checks
        assert list(checks) == [
            "program", "store", "schema", "search", "references", "content", "scores", "runs", "models", "prompts",
            "metrics", "findings", "room", "MLflow", "published",
        ]  # fmt: skip
        assert checks["prompts"][1] == "40, 40 of them without text"
        assert checks["runs"][1] == "5 complete"
        assert checks["published"][1] == "6 runs and findings, all up to date"
        assert run(sound, "db", "check").exit_code == 0

    def test_the_table_has_a_line_for_each_check(self, sound: sa.Engine) -> None:
        text = run(sound, "doctor", "--no-mlflow")
        assert [line.split()[:2] for line in text.stdout.splitlines() if line[0] != " "][:3] == [
            ["ok", "program"], ["ok", "store"], ["ok", "schema"],
        ]  # fmt: skip
        assert text.stderr == "13 checks: no problems, no warnings.\n"


@pytest.mark.usefixtures("toys")
class TestWarnings:
    def test_stale_findings_are_listed_with_the_rerun_command(self, sound: sa.Engine) -> None:
        run_analysis(sound, "toy", ARITHMETIC)
        run(sound, "runs", "hide", "2", "--reason", "odd", "--no-mlflow")
        code, checks = examined(sound)
        assert code == 2
        assert checks["findings"][0] == "warning"
        assert checks["findings"][1] == "1 of 1 is stale: 1. Finding 1: hidden since: run 2 (odd)"
        assert "`suffrage analyze toy arithmetic --missing common`" in checks["findings"][2]
        assert checks["runs"][1] == "4 complete, 1 hidden"

    def test_partial_runs_are_named(self, sound: sa.Engine) -> None:
        with transaction(sound) as session:
            session.execute(sa.update(tables.run).where(tables.run.c.id == 4).values(status="partial"))
        code, checks = examined(sound)
        assert (code, checks["runs"][:2]) == (2, ("warning", "4 complete, 1 partial"))
        assert "Run 4 has only the data before the damage" in checks["runs"][2]

    def test_what_mlflow_does_not_show_as_it_is_is_counted(self, sound: sa.Engine, tracking_uri: str) -> None:
        publish_missing(sound, tracking_uri)
        run_analysis(sound, "toy", ARITHMETIC)
        run(sound, "runs", "hide", "2", "--no-mlflow")
        with transaction(sound) as session:
            session.execute(sa.update(tables.publication).where(tables.publication.c.ref_id == 3).values(version="old"))
        code, checks = examined(sound, "--tracking-uri", tracking_uri)
        assert code == 2
        assert checks["published"] == (
            "warning",
            "5 published; 1 not published, 1 outdated, 1 published but excluded",
            "Run: suffrage publish",
        )

    def test_mlflow_that_is_away_is_a_warning(self, sound: sa.Engine, tmp_path: Path) -> None:
        (tmp_path / "bad.db").write_text("no database" * 500)
        code, checks = examined(sound, "--tracking-uri", f"sqlite:///{tmp_path}/bad.db")
        assert (code, checks["MLflow"][:2]) == (2, ("warning", "it cannot be reached"))
        assert examined(sound, "--tracking-uri", "file:///nowhere")[0] == 2

    def test_mlflow_that_was_never_used_is_not_made(self, sound: sa.Engine, tmp_path: Path) -> None:
        code, checks = examined(sound, "--tracking-uri", f"sqlite:///{tmp_path}/none.db")
        assert (code, checks["MLflow"][0]) == (0, "ok")
        assert not (tmp_path / "none.db").exists()

    def test_a_store_that_is_not_there_yet_is_not_made(self, tmp_path: Path) -> None:
        result = CliRunner().invoke(suffrage, ["doctor", "--database", f"sqlite:///{tmp_path}/none.db"])
        assert (result.exit_code, (tmp_path / "none.db").exists()) == (2, False)
        assert "is empty" in result.stdout


class TestProblems:
    def test_changed_scores_are_found_by_run(self, sound: sa.Engine) -> None:
        with transaction(sound) as session:
            session.execute(sa.update(tables.score).where(tables.score.c.run_id == 3).values(value=0.5))
            session.execute(sa.update(tables.run).where(tables.run.c.id == 5).values(n_scores=41))
        code, checks = examined(sound)
        assert (code, checks["scores"][:2]) == (1, ("problem", "run 3, run 5"))
        assert "`suffrage db check` lists what can restore them" in checks["scores"][2]
        assert "suffrage ingest --on-conflict update" in checks["scores"][2]

    @pytest.mark.tampers
    def test_stray_references_and_changed_tables_are_found(self, sound: sa.Engine) -> None:
        with sound.connect() as connection:
            if sound.dialect.name == "sqlite":
                connection.connection.dbapi_connection.execute("PRAGMA foreign_keys=OFF")
            else:
                connection.execute(sa.text("SET session_replication_role = replica"))
            connection.execute(sa.text("DELETE FROM prompt WHERE id = 1"))
            connection.execute(sa.text("ALTER TABLE model ADD COLUMN extra INTEGER"))
            connection.commit()
        code, checks = examined(sound)
        assert code == 1
        assert checks["references"][0] == checks["schema"][0] == "problem"
        assert "extra" in checks["schema"][1]

    def test_an_older_store_is_a_problem_with_the_upgrade_command(self, sound: sa.Engine) -> None:
        downgrade(sound, "0002")
        code, checks = examined(sound)
        assert (code, list(checks)) == (1, ["program", "store"])
        assert f"is at version 0002, but this program needs {known_versions()[-1]}" in checks["store"][1]
        assert "suffrage db upgrade" in checks["store"][2]

    def test_a_file_that_is_no_store_is_one_problem(self, tmp_path: Path) -> None:
        (tmp_path / "x.db").write_text("no database" * 500)
        result = CliRunner().invoke(suffrage, ["doctor", "--database", f"sqlite:///{tmp_path}/x.db"])
        assert result.exit_code == 1
        assert "problem  store" in result.stdout

    def test_a_damaged_file_is_one_problem(self, sqlite_url: str) -> None:
        connect(sqlite_url).dispose()
        path = Path(sqlite_url.removeprefix("sqlite:///"))
        content = bytearray(path.read_bytes())
        content[5000:60000] = bytes(55000)
        path.write_bytes(content)
        result = CliRunner().invoke(suffrage, ["doctor", "--no-mlflow", "--database", sqlite_url])
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 1
