"""Run the blocks of a loop on several workers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tracker.statistics.parallel.time_limits import (
    LIMIT,
    LoopTimer,
    TimeLimit,
    check_time,
    use_time_limit,
)

T = TypeVar("T")


def map_blocks(task: Callable[[int], T], n_blocks: int, *, timer: LoopTimer | None = None) -> list[T]:
    """Return ``[task(0), task(1), ...]``; the only place that distributes work over workers.

    ``joblib.parallel_config(n_jobs=..., backend=...)`` around the caller sets the number and kind of workers; without
    it the blocks run sequentially. With a `ClusterBackend` they run on other machines. A task must depend only on its
    block number, so that the results are the same bytes for any setting.

    Args:
        task: computes a block.
        n_blocks: their number.
        timer: of a loop of several calls; None if this call is the loop.

    Raises:
        LoopTimeError: the first blocks, or the first rounds of a loop in one of them, show that all would take longer
            than `use_time_limit` allows.
    """
    timer, limit = timer or LoopTimer(n_blocks), LIMIT.get()
    if n_blocks < 2 or "joblib" not in sys.modules:  # nothing to distribute, or joblib is not configured
        if limit is not None:
            task = _LimitedTask(task, limit, n_blocks, 1)
        return _collect((task(block) for block in range(n_blocks)), timer)
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend = get_active_backend(prefer="threads")[0]
    prepare = getattr(backend, "prepare", None)
    # Processes get large arrays as files. Read-only ones would make every kernel compile again, for their type.
    form = "generator" if limit is not None and backend.supports_return_generator else "list"
    parallel = Parallel(prefer="threads", mmap_mode="c", return_as=form)
    if limit is not None:
        task = _LimitedTask(task, limit, n_blocks, _count_workers())
    call = delayed(task) if prepare is None else prepare(task, n_blocks)
    results = parallel(call(block) for block in range(n_blocks))
    return results if isinstance(results, list) else _collect(results, timer)


def expect_blocks(seconds: float, n_blocks: int) -> None:
    """Check the time of a loop before it begins, by a block that was computed beforehand.

    Args:
        seconds: that the block took.
        n_blocks: of the loop, on the workers of `map_blocks`.

    Raises:
        LoopTimeError: the loop is expected to take longer than `use_time_limit` allows.
    """
    n_workers = _count_workers() if "joblib" in sys.modules else 1
    check_time(1, -(-n_blocks // n_workers), seconds, LIMIT.get())


def split_blocks(n: int, size: int) -> list[range]:
    """Split ``0 .. n - 1`` into ranges of ``size``; the last may be shorter."""
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


@dataclass(frozen=True, slots=True)
class _LimitedTask(Generic[T]):
    """A task whose own loops are limited, on whatever worker it runs.

    Only the first block of each worker estimates the time of all blocks by its loops: later ones are timed as blocks.

    Attributes:
        task: computes a block.
        limit: of the loop.
        n_blocks: number of blocks.
        n_workers: how many compute blocks at once.
    """

    task: Callable[[int], T]
    limit: TimeLimit
    n_blocks: int
    n_workers: int

    def __call__(self, block: int) -> T:
        n_repeats = self.limit.n_repeats * -(-self.n_blocks // self.n_workers)
        with use_time_limit(replace(self.limit, n_repeats=n_repeats) if block < self.n_workers else None):
            return self.task(block)


def _count_workers() -> int:
    from joblib.parallel import get_active_backend

    backend, n_workers = get_active_backend(prefer="threads")
    return max(int(backend.effective_n_jobs(n_workers)), 1)


def _collect(results: Generator[T], timer: LoopTimer) -> list[T]:
    collected = []
    try:
        for result in results:
            collected.append(result)
            timer.count()
    except BaseException:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of joblib: some blocks are not used
            results.close()
        raise
    return collected
