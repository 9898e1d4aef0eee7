"""Processes that are forked from the tests, which have imported what a new interpreter takes a second to import."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WAIT = 300
"""Seconds after which a process that hangs is killed."""


@dataclass
class ForkedProcess:
    """A process and what it prints.

    Attributes:
        pid: its number.
        output_file: holds its stdout and stderr.
        returncode: as `subprocess` has it; None while it runs.
    """

    pid: int
    output_file: Path
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return its return code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float = WAIT) -> str:
        """Wait until it has ended, and kill it if it hangs for so many seconds; return what it printed."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
            time.sleep(0.005)
        return self.output_file.read_text(encoding="utf-8")


def fork(work: Callable[[], object], output_file: Path) -> ForkedProcess:
    """Call a function in a process of its own.

    The caller closes its SQLite connections first: SQLite forbids to carry them into another process.
    """
    output_file.touch()
    if pid := os.fork():
        return ForkedProcess(pid, output_file)
    code = 1
    try:
        sys.stdout = sys.stderr = output_file.open("w", encoding="utf-8", buffering=1)
        sys.dont_write_bytecode = True
        for stream in (1, 2):
            os.dup2(sys.stdout.fileno(), stream)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - nothing may return into the caller's frames, which are pytest's
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
