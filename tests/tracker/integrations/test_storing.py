"""Files of finished evaluations are stored as by `suffrage ingest`, and failures are warnings with the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from stored_contents import contents

import tracker
from tracker.integrations import storing
from tracker.integrations.storing import import_command, store_files, store_location


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of Inspect with three samples."""
    samples = [
        {"id": n, "epoch": 1, "input": f"What is {n}+1?", "target": str(n + 1),
         "scores": {"match": {"value": "CI"[n == 2], "answer": str(n + 1)}}}
        for n in range(3)
    ]  # fmt: skip
    header = {
        "task": "sums",
        "model": "mock/one",
        "created": "2026-01-20T03:04:05+00:00",
        "run_id": "r",
        "task_id": "t",
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": header, "samples": samples}))
    return path


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of the test."""
    messages: list[str] = []
    monkeypatch.setattr(storing.logger, "warning", lambda text, *facts: messages.append(text % facts))
    return messages


class TestStored:
    def test_a_file_is_stored_as_by_the_command_and_once(
        self, log: Path, sqlite_url: str, sqlite_template: Path, tmp_path: Path
    ) -> None:
        (result,) = store_files([log], database=sqlite_url)
        assert result.summary().endswith("3 new prompts, 1 new model, 1 new run, 3 scores, 3 answers")
        shutil.copy(sqlite_template, tmp_path / "by_hand.db")
        by_hand = f"sqlite:///{tmp_path / 'by_hand.db'}"
        with tracker.open(by_hand) as store:
            store.ingest(log)
        assert contents(sqlite_url) == contents(by_hand)
        with tracker.open(sqlite_url) as store:
            before = contents(sqlite_url)
            assert "nothing changed" in store.ingest(log)[0].summary()
        assert contents(sqlite_url) == before

    def test_store_and_benchmark_come_from_the_environment(
        self, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SUFFRAGE_DATABASE_URL", f"sqlite:///{tmp_path}/new.db")
        monkeypatch.setenv("SUFFRAGE_BENCHMARK", "mine")
        assert len(store_files([log])) == 1
        with tracker.open() as store:
            assert [row.name for row in store.benchmarks()] == ["mine"]

    @pytest.mark.parametrize("form", ["{}", "file://{}", "mem://bucket/{}"])
    def test_paths_and_urls_name_the_file(
        self, log: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, form: str
    ) -> None:
        monkeypatch.setenv("SUFFRAGE_DATABASE_URL", sqlite_url)

        def download(url: str, path: str) -> None:
            assert url.startswith("mem://bucket/")
            shutil.copy(log, path)

        (result,) = store_location(form.format(log), download)
        assert result.path.name == "log.json"


class TestFailures:
    def test_a_failure_is_a_warning_with_the_command_that_imports_the_file(
        self, log: Path, tmp_path: Path, warnings: list[str]
    ) -> None:
        (tmp_path / "foreign.db").write_text("no store")
        database = f"sqlite:///{tmp_path}/foreign.db"
        assert store_files([log], database=database, benchmark="mine") == []
        (warning,) = warnings
        assert warning.startswith(f"Suffrage could not store {log}: ")
        assert warning.endswith(f"suffrage ingest {log} --benchmark mine --database {database}")

    def test_one_file_that_fails_does_not_stop_the_next(
        self, log: Path, sqlite_url: str, tmp_path: Path, warnings: list[str]
    ) -> None:
        damaged = tmp_path / "damaged.json"
        damaged.write_bytes(log.read_bytes()[:-40])
        assert [result.path for result in store_files([damaged, log], database=sqlite_url)] == [log]
        assert f"suffrage ingest {damaged} --database" in warnings[0]

    def test_a_url_that_cannot_be_read_is_a_warning_too(self, warnings: list[str]) -> None:
        def download(url: str, path: str) -> None:
            raise PermissionError("no access")

        assert store_location("s3://bucket/log.eval", download) == []
        (warning,) = warnings
        assert "could not read s3://bucket/log.eval: no access" in warning
        assert warning.endswith("suffrage ingest log.eval")

    def test_no_store_is_created_for_a_file_that_fails(self, tmp_path: Path, warnings: list[str]) -> None:
        assert store_files([tmp_path / "missing.json"], database=str(tmp_path / "new.db")) == []
        assert not (tmp_path / "new.db").exists()
        assert len(warnings) == 1

    def test_the_command_shows_no_password(self) -> None:
        command = import_command(Path("log 1.json"), database="postgresql://user:secret@host/results", model="one")
        assert command.startswith("suffrage ingest 'log 1.json' --model one --database")
        assert "secret" not in command
        assert "host/results" in command
