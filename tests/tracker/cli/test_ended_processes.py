"""Real processes that are interrupted, whose reader goes away, or whose libraries warn."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.cli.commands import config
from tracker.database import connect
from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file

COMMAND = [sys.executable, "-m", "tracker.cli"]
WAIT = 300
"""Seconds after which a process that hangs is stopped; none takes as long."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of 300 models, and prompts that a model can answer."""
    folder = tmp_path_factory.mktemp("ended")
    models = [f"model-{i}" for i in range(300)]
    lines = [",".join([f"q{i}", *(str((i + j) % 2) for j in range(300))]) for i in range(4)]
    (folder / "scores.csv").write_text("\n".join([",".join(["prompt_id", *models]), *lines]) + "\n")
    few = [",".join([f"t{i % 2}", f"q{i}", str(i % 2), str(i % 3 // 2)]) for i in range(12)]
    (folder / "few.csv").write_text("\n".join(["task,prompt_id,a,b", *few]) + "\n")
    rows = (json.dumps({"q": f"Is {i} even?", "o": ["yes", "no"], "a": i % 2}) for i in range(4))
    (folder / "prompts.jsonl").write_text("\n".join(rows))
    engine = connect(f"sqlite:///{folder}/suffrage.db")
    ingest_file(engine, folder / "scores.csv", ReadOptions(benchmark="many", metric="accuracy"))
    ingest_file(engine, folder / "few.csv", ReadOptions(benchmark="quiz", metric="accuracy"))
    options = PromptOptions(fields={"text": "q", "choices": "o", "answer": "a"}, answer_is="index")
    ingest_prompts(engine, "parity", str(folder / "prompts.jsonl"), options)
    engine.dispose()
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(template, tmp_path / "copy")


def run(folder: Path, *arguments: str) -> str:
    """What a command that succeeds prints on the store of a folder."""
    url = f"sqlite:///{folder}/suffrage.db"
    result = CliRunner().invoke(suffrage, [*arguments, "--database", url], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def check_store(folder: Path) -> None:
    """Fails unless the store is sound."""
    assert run(folder, "db", "check") == ""


def test_a_closed_pipe_ends_a_command_in_silence(store: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as after `| head -1` has printed its line
    for arguments in (["models"], ["models", "--format", "json"], ["models", "--format", "csv"]):
        with subprocess.Popen([*COMMAND, *arguments], cwd=store, stdout=writer, stderr=subprocess.PIPE) as process:
            _, err = process.communicate(timeout=WAIT)
        assert process.returncode == 141, arguments
        assert err == b"", arguments
    os.close(writer)


def test_head_ends_a_command_in_silence(store: Path) -> None:
    shell = f"set -o pipefail; {' '.join(COMMAND)} models --format json | head -1"
    ended = subprocess.run(["bash", "-c", shell], cwd=store, capture_output=True, text=True, check=False, timeout=WAIT)
    assert ended.returncode in (0, 141)
    assert (ended.stdout, ended.stderr) == ("[\n", "")


def test_ctrl_c_ends_an_evaluation_in_one_line_and_leaves_the_store_sound(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        arguments = ["evaluate", "parity", "--model", "silent", "--api-base", address, "--tries", "1"]
        with subprocess.Popen(
            [*COMMAND, *arguments], cwd=store, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            server.settimeout(WAIT)
            connection, _ = server.accept()  # the request is under way, and never answered
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=WAIT)
            connection.close()
    assert process.returncode == 130
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("Stopped; the answers so far are stored.")
    check_store(store)


def test_ctrl_c_within_a_file_leaves_nothing_of_it(store: Path) -> None:
    code = """
import signal, sys
import sqlalchemy as sa
from sqlalchemy import event, orm
from tracker.cli import main

def interrupt(session):
    if session.scalar(sa.text("SELECT count(*) FROM benchmark WHERE name = 'again'")):
        print("all rows are written", flush=True)
        signal.raise_signal(signal.SIGINT)

event.listen(orm.Session, "before_commit", interrupt)
main(sys.argv[1:])
"""
    arguments = ["ingest", "scores.csv", "--benchmark", "again", "--metric", "accuracy"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=store, capture_output=True, text=True, check=False, timeout=WAIT
    )
    assert ended.stdout == "all rows are written\n"
    assert ended.returncode == 130
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("Stopped")
    check_store(store)
    output = run(store, "benchmarks")
    assert "quiz" in output
    assert "again" not in output


def test_ctrl_c_while_a_kernel_runs_ends_a_command_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                raise SystemError("_numba_unpickle returned a result with an exception set") from error
        except SystemError as error:
            raise SystemError("CPUDispatcher returned a result with an exception set") from error

    monkeypatch.setattr(config.command, "callback", lambda **_: interrupted())
    result = CliRunner().invoke(suffrage, ["config"])
    assert (result.exit_code, result.output) == (130, "Stopped.\n")


def test_warnings_and_logs_of_libraries_never_reach_the_terminal(store: Path) -> None:
    """Each command comes before those that import more, so that its own imports are observed.

    `tests/tracker/recording/test_publishing.py` holds what `publish` prints against a single line.
    """
    commands = [
        ["models"],
        ["leaderboard", "quiz"],
        ["report", "quiz", "--force"],
        ["analyze", "rank-intervals", "quiz"],
        ["doctor"],
    ]
    code = """
import json, sys
from tracker.cli import main

for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as end:
        print("ended:", end.code, *arguments, file=sys.stderr, flush=True)
"""
    words = [sys.executable, "-c", code, json.dumps(commands)]
    ended = subprocess.run(words, cwd=store, capture_output=True, text=True, check=False, timeout=WAIT)
    assert ended.returncode == 0, ended.stderr
    codes = [int(code) for code in re.findall(r"^ended: (\d+)", ended.stderr, flags=re.MULTILINE)]
    assert len(codes) == len(commands), ended.stderr
    assert set(codes) <= {0, 2}, ended.stderr  # 2: the warnings of the doctor
    for noise in (r"\w+Warning:", "INFO", "WARNING", "DEBUG", "site-packages", "Traceback", "alembic", "numba"):
        assert not re.search(noise, ended.stderr), ended.stderr
