"""A separate process publishes what this one would, or leaves it to this one."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from filelock import FileLock

from tracker.database import connect, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.sql import tables
from tracker.recording.mlflow.process.publishing_process import PublishingProcess

COMMAND = [sys.executable, "-m", "tracker.cli", "ingest", "scores.csv", "--benchmark", "quiz"]
WAIT = 300
"""Tenths of a second in which all processes of a command end; none takes as long."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of results of two models."""
    (tmp_path / "scores.csv").write_text("prompt_id,a,b\nq1,1,0\nq2,0,1\n")
    return tmp_path


@pytest.fixture
def store(folder: Path) -> sa.Engine:
    """A store in that folder with these results."""
    engine = connect(f"sqlite:///{folder}/suffrage.db")
    ingest_file(engine, folder / "scores.csv", ReadOptions(benchmark="quiz"))
    return engine


def runs_of(file: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT name, status FROM runs ORDER BY name").fetchall()


def n_runs(file: Path) -> int:
    """Return the number of stored runs; 0 as long as the store has no tables."""
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as connection, suppress(sqlite3.OperationalError):
        return int(connection.execute("SELECT count(*) FROM run").fetchone()[0])
    return 0


def n_publications(engine: sa.Engine) -> int:
    with transaction(engine, write=False) as session:
        return session.scalar(sa.select(sa.func.count()).select_from(tables.publication)) or 0


def ends(group: int) -> bool:
    """Return whether a group of processes has ended, after a moment."""
    time.sleep(0.1)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


class TestProcess:
    def test_it_publishes_and_records_it(self, store: sa.Engine, folder: Path) -> None:
        with PublishingProcess(f"sqlite:///{folder}/mlflow.db") as process:
            process.publish_runs(store, [1, 2])
            assert process._has_answered
        assert runs_of(folder / "mlflow.db") == [("a", "FINISHED"), ("b", "FINISHED")]
        assert n_publications(store) == 2

    def test_this_process_publishes_if_it_was_killed(self, store: sa.Engine, folder: Path) -> None:
        with PublishingProcess(f"sqlite:///{folder}/mlflow.db") as process:
            assert process._process is not None
            process._process.kill()
            process.publish_runs(store, [1, 2])
        assert len(runs_of(folder / "mlflow.db")) == n_publications(store) == 2

    def test_this_process_publishes_if_none_can_be_started(
        self, store: sa.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with PublishingProcess(f"sqlite:///{folder}/mlflow.db") as process:
            assert process._process is None
            process.publish_runs(store, [1, 2])
        assert len(runs_of(folder / "mlflow.db")) == n_publications(store) == 2

    def test_an_error_ends_it(self, folder: Path) -> None:
        with pytest.raises(KeyboardInterrupt), PublishingProcess(f"sqlite:///{folder}/mlflow.db") as process:
            raise KeyboardInterrupt
        assert process._process is not None
        assert process._process.returncode is not None


class TestCommand:
    def test_a_new_folder_gets_both_files(self, folder: Path) -> None:
        result = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, check=True)
        assert result.stdout == ""
        assert result.stderr.splitlines()[1:] == ["Next: suffrage leaderboard quiz"]
        assert runs_of(folder / "mlflow.db") == [("a", "FINISHED"), ("b", "FINISHED")]

    def test_a_warning_is_shown_as_without_the_process(self, folder: Path) -> None:
        (folder / "mlflow.db").write_text("no database")
        result = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, check=True)
        [_, warning, hint] = result.stderr.splitlines()
        assert "file is not a database" in warning
        assert warning.endswith("The results are safe in the store. Publish them later with `suffrage publish`.")
        assert hint == "Next: suffrage leaderboard quiz"

    def test_a_file_that_cannot_be_parsed_leaves_no_files(self, folder: Path) -> None:
        (folder / "scores.csv").write_text("nothing")
        result = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, check=False)
        assert result.returncode == 1
        assert os.listdir(folder) == ["scores.csv"]

    def test_ctrl_c_ends_both_processes(self, folder: Path) -> None:
        with (
            FileLock(folder / "mlflow.db.lock"),  # the second process waits for it, and the first for the second
            subprocess.Popen(COMMAND, cwd=folder, stderr=subprocess.PIPE, start_new_session=True) as process,
        ):
            while not n_runs(folder / "suffrage.db"):
                assert process.poll() is None
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)
            _, error = process.communicate(timeout=300)
        assert b"Traceback" not in error
        assert process.returncode == 130
        assert any(ends(process.pid) for _ in range(WAIT))  # also what MLflow started, such as uname
