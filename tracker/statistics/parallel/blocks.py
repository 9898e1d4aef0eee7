"""Run the blocks of a loop on several workers."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from tracker.statistics.parallel.time_limits import (
    LIMIT,
    LoopTimer,
    TimeLimit,
    check_time,
    count_repeats,
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
            than `use_time_limit` allows; not on a cluster.
    """
    timer = timer or LoopTimer(n_blocks)
    if n_blocks < 2 or "joblib" not in sys.modules:  # nothing to distribute, or joblib is not configured
        with count_repeats(n_blocks):
            return _collect((task(block) for block in range(n_blocks)), timer)
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    backend, n_workers = get_active_backend(prefer="threads")
    prepare, limit = getattr(backend, "prepare", None), LIMIT.get()
    if limit is not None and prepare is None:
        n_repeats = limit.n_repeats * _count_rounds(n_blocks, backend, n_workers)
        task = _LimitedTask(task, replace(limit, n_repeats=n_repeats))
    # Processes get large arrays as files. Read-only ones would make every kernel compile again, for their type.
    form = "generator" if limit is not None and backend.supports_return_generator else "list"
    parallel = Parallel(prefer="threads", mmap_mode="c", return_as=form)
    call = delayed(task) if prepare is None else prepare(task, n_blocks)
    results = parallel(call(block) for block in range(n_blocks))
    return results if isinstance(results, list) else _collect(results, timer)


def expect_blocks(seconds: float, n_blocks: int) -> None:
    """Check the time of a loop before it begins, by a block that was computed beforehand.

    Args:
        seconds: that the block took.
        n_blocks: of the loop, on the workers of `map_blocks`.

    Raises:
        LoopTimeError: the loop is expected to take longer than `use_time_limit` allows; not on a cluster.
    """
    n_rounds = n_blocks
    if "joblib" in sys.modules:
        from joblib.parallel import get_active_backend

        backend, n_workers = get_active_backend(prefer="threads")
        if getattr(backend, "prepare", None) is not None:
            return
        n_rounds = _count_rounds(n_blocks, backend, n_workers)
    check_time(1, n_rounds, seconds, LIMIT.get())


def split_blocks(n: int, size: int) -> list[range]:
    """Split ``0 .. n - 1`` into ranges of ``size``; the last may be shorter."""
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


@dataclass(frozen=True, slots=True)
class _LimitedTask(Generic[T]):
    """A task whose own loops are limited, on whatever worker it runs."""

    task: Callable[[int], T]
    limit: TimeLimit

    def __call__(self, block: int) -> T:
        with use_time_limit(self.limit):
            return self.task(block)


def _count_rounds(n_blocks: int, backend: Any, n_workers: int) -> int:
    """Number of blocks that each worker computes one after another."""
    return -(-n_blocks // max(int(backend.effective_n_jobs(n_workers)), 1))


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
