"""The server that `suffrage ui` starts ends with the command, quietly and with the processes that it started."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = (
    "import os, sys; from tracker.cli.process.child_server import run_server; sys.exit(run_server({!r}, os.environ))"
)
SERVER = """
import subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(worker.pid, flush=True)
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no list of processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_its_workers_without_a_traceback(number: signal.Signals) -> None:
    command = COMMAND.format([sys.executable, "-c", SERVER])
    with subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        assert is_running(worker)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    deadline = time.monotonic() + 60
    while is_running(worker):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_exit_code_of_a_server_that_ends_is_that_of_the_command() -> None:
    command = COMMAND.format([sys.executable, "-c", "raise SystemExit(3)"])
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 3
