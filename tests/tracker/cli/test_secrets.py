"""A password and a key appear nowhere: process list, output, tracebacks, stores, MLflow, exports."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import sqlalchemy as sa
from protocol_server import MODEL, ProtocolServer

from tracker.cli import main

PASSWORD = "canary-Zq7-password"
KEY = "sk-canary-9fX2-key"
TOKEN = "canary-4tB8-token"
SECRETS = (PASSWORD, KEY, TOKEN)
COMMAND = [sys.executable, "-m", "tracker.cli"]
WAIT = 600
"""Seconds after which a process that hangs is stopped; none takes as long."""


def with_password(url: str) -> str:
    """The URL of a server that trusts everybody, with a password that it does not need."""
    return sa.make_url(url).set(password=PASSWORD).render_as_string(hide_password=False)


def list_processes() -> dict[int, str]:
    """The command line of every process, but of this one and those above it."""
    above, number = set(), os.getpid()
    while number > 1:
        above.add(number)
        number = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    lines = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) not in above:
            try:
                lines[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:  # it has ended
                continue
    return lines


def find_secrets(texts: dict[Any, str]) -> list[Any]:
    """Keys of the texts that hold a secret."""
    return [key for key, text in texts.items() if any(secret in text for secret in SECRETS)]


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT)
        yield server


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no list of processes in /proc")
class TestProcessList:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["models", "list", "--database", "postgresql://me:{password}@127.0.0.1:{port}/store"],
            ["models", "list", "--database", "postgresql://127.0.0.1:{port}/store?user=me&password={password}"],
            ["ui", "--tracking-uri", "postgresql://me:{password}@127.0.0.1:{port}/tracking"],
        ],
        ids=["before the host", "in the query", "tracking"],
    )
    def test_a_password_in_an_argument_is_replaced_and_named_in_a_warning(
        self, silent_server: socket.socket, arguments: list[str]
    ) -> None:
        port = silent_server.getsockname()[1]
        words = [word.format(password=PASSWORD, port=port) for word in arguments]
        with subprocess.Popen(
            [*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            connection, _ = silent_server.accept()  # the command runs
            line = list_processes()[process.pid]
            environments = {number: Path(f"/proc/{number}/environ").stat().st_mode & 0o077 for number in (process.pid,)}
            connection.close()
            silent_server.close()
            out, err = process.communicate(timeout=WAIT)
        assert "***" in line
        assert arguments[0] in line
        assert set(environments.values()) == {0}, "only the owner reads the environment"
        assert find_secrets({"line": line, "out": out, "err": err}) == []
        assert "A password in the command line is visible" in err
        assert "Error:" in err

    def test_arguments_without_a_password_do_not_start_a_second_process_and_warn_of_nothing(self) -> None:
        ended = subprocess.run(
            [*COMMAND, "config", "--database", "postgresql://me@localhost/store"],
            capture_output=True,
            text=True,
            check=True,
            timeout=WAIT,
        )
        assert "postgresql://me@localhost/store" in ended.stdout
        assert "Warning" not in ended.stderr

    def test_the_command_still_receives_the_password_and_its_input(self, tmp_path: Path) -> None:
        code = "import sys; from tracker.cli.values.command_line_secrets import read_arguments\n"
        code += "print(read_arguments()); print(sys.argv[1:]); print(input())"
        url = f"postgresql://me:{PASSWORD}@localhost/store"
        ended = subprocess.run(
            [sys.executable, "-c", code, "--database", url, "a b", "*", ""],
            input="typed",
            capture_output=True,
            text=True,
            check=True,
            timeout=WAIT,
        )
        hidden = "postgresql://me:***@localhost/store"
        expected = [["--database", url, "a b", "*", ""], ["--database", hidden, "a b", "*", ""]]
        assert ended.stdout == "".join(f"{words}\n" for words in expected) + "typed\n"

    def test_suffrage_ui_passes_the_address_of_mlflow_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        started: list[tuple[list[str], dict[str, str]]] = []

        def run_server(command: list[str], environment: dict[str, str]) -> int:
            started.append((command, environment))
            return 0

        monkeypatch.setattr("tracker.cli.process.child_server.run_server", run_server)
        monkeypatch.setattr("tracker.recording.mlflow.publishing.list_charts", lambda _: {})
        with pytest.raises(SystemExit):
            main(["ui", "--tracking-uri", f"postgresql://me:{PASSWORD}@localhost/tracking", "--port", "5986"])
        command, environment = started[0]
        assert find_secrets(dict(enumerate(command))) == []
        assert environment["MLFLOW_BACKEND_STORE_URI"].endswith(f"me:{PASSWORD}@localhost/tracking")


class TestTracebacks:
    def test_a_fault_of_the_program_is_printed_without_passwords(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = f"postgresql://me:{PASSWORD}@localhost/store"

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError(f"no such address: '{url}', nor http://{TOKEN}@localhost/?api_key={KEY}.")

        monkeypatch.setattr("tracker.database.connect", fail)
        with pytest.raises(SystemExit) as end:
            main(["models", "list", "--database", url])
        captured = capsys.readouterr()
        assert end.value.code == 1
        assert "Traceback" in captured.err
        assert "RuntimeError: no such address: 'postgresql://me:***@localhost/store'" in captured.err
        assert find_secrets({"out": captured.out, "err": captured.err}) == []


@pytest.fixture
def second_database(postgres_server: sa.URL, postgres_template: str) -> Iterator[str]:
    """URL of an empty database for MLflow."""
    name = f"tracking_{os.getpid()}"
    url = postgres_server.set(drivername="postgresql+psycopg")
    administrator = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgres_server.set(database=name).render_as_string(hide_password=False)
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def watched_processes() -> Iterator[dict[str, str]]:
    """The command lines of all processes while the block runs, each once."""
    lines: dict[str, str] = {}
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            lines.update({line: line for line in list_processes().values()})

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lines
    finally:
        is_over.set()
        watcher.join()


@contextmanager
def serving(arguments: list[str], address: str, environment: dict[str, str], folder: Path) -> Iterator[list[str]]:
    """A command that serves pages, once it answers; what it prints is added to the list at its end."""
    output: list[str] = []
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            deadline = time.monotonic() + WAIT
            while True:
                try:
                    with urlopen(address, timeout=WAIT) as answer:
                        output.append(answer.read().decode())
                    break
                except (URLError, ConnectionError):
                    assert time.monotonic() < deadline
                    assert process.poll() is None
                    time.sleep(0.2)
            yield output
        finally:
            os.killpg(process.pid, signal.SIGINT)
            output += filter(None, process.communicate(timeout=WAIT))


def free_port() -> int:
    """A port that no program uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def dump(url: str) -> dict[str, str]:
    """The rows of every table of a database, as text."""
    with closing(sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg")).connect()) as connection:
        names = sa.inspect(connection).get_table_names()
        return {name: repr(connection.exec_driver_sql(f'SELECT * FROM "{name}"').all()) for name in names}


def read_files(folder: Path) -> dict[str, str]:
    """The bytes of every file in a folder."""
    return {str(path): path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no list of processes in /proc")
def test_a_password_and_a_key_appear_nowhere(postgres_url: str, second_database: str, tmp_path: Path) -> None:
    """Every command that uses the store, MLflow or a model server, with secrets in the environment."""
    (tmp_path / "prompts.jsonl").write_text(
        "\n".join(json.dumps({"q": f"Number {n}?", "o": ["one", "two", "six"], "a": n % 3}) for n in range(12))
    )
    lines = [f"t{n % 2},q{n},{n % 2},{n % 3 // 2},{int(n > 4)}" for n in range(30)]
    (tmp_path / "scores.csv").write_text("\n".join(["task,prompt_id,a,b,c", *lines]) + "\n")
    with ProtocolServer() as server, watched_processes() as processes:
        environment = {
            **os.environ,
            "SUFFRAGE_DATABASE_URL": with_password(postgres_url),
            "MLFLOW_TRACKING_URI": with_password(second_database),
            "OPENAI_API_KEY": KEY,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        ports = [free_port(), free_port()]
        model = ["quiz", "--model", MODEL, "--api-base", server.url]
        commands = [
            ["ingest", "scores.csv", "--benchmark", "b", "--metric", "accuracy"],
            [
                "prompts",
                "import",
                "quiz",
                "prompts.jsonl",
                "--map",
                "text=q",
                "--map",
                "choices=o",
                "--map",
                "answer=a",
                "--answer-is",
                "index",
            ],
            ["evaluate", *model],
            ["analyze", "rank-intervals", "b"],
            ["publish"],
            ["report", "b", "--output", "report.html"],
            ["verdict", "b"],
            ["export", "scores", "b", "--output", "scores.parquet"],
            ["config"],
            ["doctor"],
            ["db", "status"],
            ["db", "check"],
            ["db", "copy", postgres_url, "copy.db"],
            ["sql", "SELECT * FROM pg_stat_activity"],
            ["leaderboard", "nothing"],
            ["evaluate", "again", *model[1:], "--api-base", "http://127.0.0.1:9", "--tries", "1"],
        ]
        outputs, codes = {}, {}
        for words in commands:
            ended = subprocess.run(
                [*COMMAND, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
                timeout=WAIT,
            )  # fmt: skip
            outputs[" ".join(words[:2])], codes[" ".join(words[:2])] = ended.stdout + ended.stderr, ended.returncode
        for command, port, path in (("serve", ports[0], "/"), ("ui", ports[1], "/health")):
            address = f"http://127.0.0.1:{port}{path}"
            with serving([command, "--port", str(port)], address, environment, tmp_path) as printed:
                time.sleep(0.1)
            outputs[command] = "".join(printed)
    assert {name: text for name, text in outputs.items() if "Traceback" in text} == {}
    assert {name: code for name, code in codes.items() if code not in (0, 2)} == {
        "leaderboard nothing": 1,
        "evaluate again": 1,
    }, outputs
    assert len(server.prompt_requests()) >= 12
    assert find_secrets(outputs) == []
    assert len(processes) > len(commands)
    assert find_secrets(processes) == []
    assert find_secrets(dump(postgres_url)) == []
    assert find_secrets(dump(second_database)) == []
    assert {"report.html", "scores.parquet", "copy.db", "mlartifacts"} <= {path.name for path in tmp_path.iterdir()}
    assert find_secrets(read_files(tmp_path)) == []
