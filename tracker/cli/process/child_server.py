"""A server of another program, which runs in a child process until this command is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

SECONDS_TO_STOP = 10.0


class _Stop(BaseException):
    """A signal to end the command."""


def run_server(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a server until it ends, or until Ctrl-C or another signal ends this command; return the exit code.

    The server is in a separate session: the terminal sends Ctrl-C to this process alone, which ends the server and
    the processes that it started. They end quietly then, where Ctrl-C makes MLflow print a traceback.

    Args:
        arguments: the program and its arguments.
        environment: all its environment variables.
    """

    def stop(number: int, _: FrameType | None) -> None:
        raise _Stop(number)

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    earlier = {number: signal.signal(number, stop) for number in signals}
    process = subprocess.Popen(arguments, env=environment, start_new_session=True)
    try:
        return process.wait()
    except _Stop:
        return 0
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        _end(process)
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started, which are its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(SECONDS_TO_STOP)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
