"""Wrong inputs of a hurried user: each message is short, and names the problem and the fix."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
import wrong_inputs
from wrong_inputs import WrongInput

from tracker.cli import main
from tracker.connections import sqlite_connections
from tracker.connections.driver_errors import explain_driver_error
from tracker.connections.schema_versions import downgrade
from tracker.database import connect, create_unchecked_engine
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.queries.selection import Selection
from tracker.recording.pipeline import run_analysis

MAX_LINES = 3
PROMPTS = [
    {
        "id": f"q{i}",
        "task": "math" if i % 2 else "law",
        "question": f"Is {i} even?",
        "choices": ["yes", "no"],
        "answer": i % 2,
    }
    for i in range(8)
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A folder with a store and the files that a user confuses."""
    folder = tmp_path_factory.mktemp("hurried")
    lines = [f"{'math' if i % 2 else 'law'},q{i},{i % 2},{i % 3 // 2}" for i in range(12)]
    (folder / "scores.csv").write_text("\n".join(["task,prompt_id,alpha-7b,beta-7b", *lines]) + "\n")
    shutil.copy(sqlite_template, folder / "suffrage.db")
    engine = connect(f"sqlite:///{folder}/suffrage.db")
    ingest_file(engine, folder / "scores.csv", ReadOptions(benchmark="mmlu_pro", metric="accuracy"))
    (folder / "arc.jsonl").write_text("\n".join(map(json.dumps, PROMPTS)))
    _import_prompts(engine, folder / "arc.jsonl")
    run_analysis(engine, "rank-intervals", Selection(benchmark="mmlu_pro"), {}, publish_to=None)
    engine.dispose()
    (folder / "arc.jsonl").unlink()
    _write_other_stores(folder, sqlite_template)
    _write_wrong_files(folder)
    return folder


def _import_prompts(engine: object, path: Path) -> None:
    from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts

    fields = {"id": "id", "task": "task", "text": "question", "choices": "choices", "answer": "answer"}
    ingest_prompts(engine, "arc", str(path), PromptOptions(fields=fields, answer_is="index"))  # type: ignore[arg-type]


def _write_other_stores(folder: Path, sqlite_template: Path) -> None:
    with sqlite3.connect(folder / "other.db") as foreign:
        foreign.execute("CREATE TABLE run (name TEXT)")
    foreign.close()
    (folder / "damaged.db").write_bytes((folder / "other.db").read_bytes().replace(b"run", b"\xed(n"))
    shutil.copy(sqlite_template, folder / "empty.db")
    shutil.copy(sqlite_template, folder / "newer.db")
    with sqlite3.connect(folder / "newer.db") as newer:
        newer.execute("UPDATE suffrage_version SET version_num = '9999'")
    newer.close()
    for name, statements in {
        "lost": ["DELETE FROM suffrage_version"],
        "early": ["UPDATE suffrage_version SET version_num = '0001'"],
        "two": ["DELETE FROM suffrage_version", "INSERT INTO suffrage_version VALUES ('9999'), ('0001')"],
    }.items():
        shutil.copy(sqlite_template, folder / f"{name}.db")
        with sqlite3.connect(folder / f"{name}.db") as changed:
            for statement in statements:
                changed.execute(statement)
        changed.close()
    shutil.copy(sqlite_template, folder / "older.db")
    engine = create_unchecked_engine(f"sqlite:///{folder}/older.db")
    downgrade(engine, "-1")
    engine.dispose()


def _write_wrong_files(folder: Path) -> None:
    for name in ("results_folder", "pictures", "hollow", "folder.html"):
        (folder / name).mkdir()
    png = b"\x89PNG\r\n\x1a\n" + bytes(64)
    (folder / "pictures" / "plot.png").write_bytes(png)
    (folder / "plot.png").write_bytes(png)
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7\n" + bytes(64))
    (folder / "empty.csv").touch()
    (folder / "taken.html").touch()
    (folder / "cut.json.gz").write_bytes(gzip.compress(json.dumps(list(range(10_000))).encode())[:-200])
    (folder / "broken.json").write_text('{"results": {"arc": ')
    (folder / "config.json").write_text('{"learning_rate": 0.1}')
    (folder / "run.log").write_text("2024-01-01 INFO started\n2024-01-01 INFO done\n")
    (folder / "denied.csv").write_text("prompt_id,a,b\nq1,1,0\n")
    with zipfile.ZipFile(folder / "results.zip", "w") as archive:
        archive.write(folder / "scores.csv", "scores.csv")
    with zipfile.ZipFile(folder / "results.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with tarfile.open(folder / "results.tar.gz", "w:gz") as archive_file:
        archive_file.add(folder / "scores.csv", "scores.csv")


@pytest.fixture
def folder(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the template, which is the current folder; nobody may read ``denied.csv``."""
    copy = tmp_path / "work"
    shutil.copytree(template, copy)
    monkeypatch.chdir(copy)
    real_open = Path.open

    def open_unless_denied(self: Path, *arguments: object, **options: object) -> object:
        if self.name == "denied.csv":  # the superuser may read everything, whatever its mode
            raise PermissionError(13, "Permission denied", str(self))
        return real_open(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", open_unless_denied)
    return copy


def _arrange(wrong: WrongInput, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong.state != "stored":
        (folder / "suffrage.db").unlink()
    if wrong.state == "empty":
        shutil.copy(folder / "empty.db", folder / "suffrage.db")
    if wrong.state == "none":
        for path in folder.glob("*.db"):
            path.unlink()
    for name, value in wrong.environment.items():
        monkeypatch.setenv(name, value)
    for module in wrong.hidden:
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize("wrong", wrong_inputs.EVERY, ids=lambda wrong: wrong.id)
def test_a_wrong_input_gets_a_short_message_with_the_fix(
    wrong: WrongInput, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _arrange(wrong, folder, monkeypatch)
    before = sorted(os.listdir(folder))
    with pytest.raises(SystemExit) as stopped:
        main(wrong.arguments)
    printed = capfd.readouterr()
    assert stopped.value.code == wrong.code
    assert printed.out == ""
    assert printed.err.startswith("Error: ")
    assert len(printed.err.splitlines()) <= MAX_LINES
    assert "Traceback" not in printed.err
    assert "secret" not in printed.err
    for part in wrong.expected:
        assert part in printed.err
    assert {name for name in os.listdir(folder) if not name.endswith(("-wal", "-shm"))} == set(before)


def test_the_list_holds_at_least_sixty_inputs_each_once() -> None:
    ids = [wrong.id for wrong in wrong_inputs.EVERY]
    assert len(ids) == len(set(ids))
    assert len(ids) >= 60


class TestServers:
    def test_a_database_that_does_not_exist_is_named_with_the_command_that_creates_it(
        self, postgres_server: sa.URL, capfd: pytest.CaptureFixture[str]
    ) -> None:
        url = postgres_server.set(database="nowhere").render_as_string(hide_password=False)
        with pytest.raises(SystemExit) as stopped:
            main(["models", "--database", url])
        assert stopped.value.code == 1
        assert "the server has no such database. Create it: createdb nowhere" in capfd.readouterr().err

    def test_a_rejected_password_is_named_and_not_printed(self) -> None:
        engine = create_unchecked_engine("postgresql://me:secret@host/results")
        rejection = Exception('connection failed: FATAL:  password authentication failed for user "me"')
        message = explain_driver_error(sa.exc.OperationalError("", None, rejection), engine)
        assert "rejects the user or the password" in message
        assert "PGPASSWORD" in message
        assert "secret" not in message

    def test_a_deadlock_is_explained_and_ends_with_the_next_step(self) -> None:
        engine = create_unchecked_engine("postgresql://me@host/results")
        fault = psycopg.errors.DeadlockDetected("deadlock detected")
        message = explain_driver_error(sa.exc.OperationalError("", None, fault), engine)
        assert "another program changed the same rows" in message
        assert message.endswith("Run the command again.")

    def test_a_store_that_another_program_locks_is_named(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.01)
        with contextlib.closing(sqlite3.connect("suffrage.db", isolation_level=None)) as other_program:
            other_program.execute("BEGIN IMMEDIATE")
            with pytest.raises(SystemExit) as stopped:
                main(["runs", "hide", "1", "--no-mlflow"])
        assert stopped.value.code == 1
        assert "another program has been writing" in capfd.readouterr().err
