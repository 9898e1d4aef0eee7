"""What a run costs: seconds, and memory."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


def seconds(run: Callable[[], Any], times: int = 1) -> float:
    """Least wall-clock seconds of a few runs."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        spent.append(time.perf_counter() - started)
    return min(spent)


def peak() -> float:
    """High-water mark of this process's own memory in MB; `ru_maxrss` would include its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _measured(connection: Any, task: Callable[[], object]) -> None:
    before = peak()
    result = task()
    connection.send((result, peak() - before))


def in_own_process(task: Callable[[], Result]) -> tuple[Result, float]:
    """What a task returns, and by how many MB it raised the peak memory of a fresh process."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe()
    process = context.Process(target=_measured, args=(sender, task))
    process.start()
    sender.close()
    result: tuple[Result, float] = receiver.recv()
    process.join()
    return result
