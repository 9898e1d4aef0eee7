"""Loops that would take too long end early, with the time that they would take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

PATIENCE = 60.0
"""Seconds of a loop before its time is estimated."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """How long a loop may take.

    Attributes:
        hours: the limit of all runs of the loop together.
        n_repeats: how many times the loop runs, one run after another.
    """

    hours: float
    n_repeats: int = 1


LIMIT: ContextVar[TimeLimit | None] = ContextVar("time limit", default=None)


class LoopTimeError(Exception):
    """A loop is expected to take longer than the limit.

    Args:
        n_done: blocks that are done.
        n_blocks: all blocks.
        spent: seconds so far.
        limit: the limit.
    """

    def __init__(self, n_done: int, n_blocks: int, spent: float, limit: TimeLimit) -> None:
        super().__init__(f"{n_done} of {n_blocks} blocks took {spent:.0f} s; the limit is {limit.hours:g} hours")
        self.n_done, self.n_blocks, self.spent, self.limit = n_done, n_blocks, spent, limit

    def __reduce__(self) -> tuple[type[LoopTimeError], tuple[int, int, float, TimeLimit]]:
        return type(self), (self.n_done, self.n_blocks, self.spent, self.limit)

    @property
    def expected(self) -> float:
        """Seconds that all runs of the loop are expected to take."""
        return self.spent / self.n_done * self.n_blocks * self.limit.n_repeats


@contextmanager
def use_time_limit(limit: TimeLimit | None) -> Iterator[None]:
    """Limit the expected time of each loop of `map_blocks` and `LoopTimer` in the context; None for no limit."""
    token = LIMIT.set(limit)
    try:
        yield
    finally:
        LIMIT.reset(token)


@contextmanager
def count_repeats(n: int) -> Iterator[None]:
    """Count the loops in the context ``n`` times in estimates, because the caller repeats them as often."""
    limit = LIMIT.get()
    with use_time_limit(limit and replace(limit, n_repeats=limit.n_repeats * n)):
        yield


class LoopTimer:
    """Estimates the time of a loop from its first blocks.

    Args:
        n_blocks: number of blocks of the loop.
    """

    def __init__(self, n_blocks: int) -> None:
        self._n_blocks, self._n_done, self._begun = n_blocks, 0, time.monotonic()
        self._limit = LIMIT.get()

    def count(self, n: int = 1) -> None:
        """Count blocks that are done.

        Raises:
            LoopTimeError: all blocks are expected to take longer than the limit.
        """
        self._n_done += n
        check_time(self._n_done, max(self._n_blocks, self._n_done), time.monotonic() - self._begun, self._limit)


def check_time(n_done: int, n_blocks: int, spent: float, limit: TimeLimit | None) -> None:
    """Check the expected time of a loop, if its blocks have taken long enough for an estimate.

    Args:
        n_done: blocks that are done.
        n_blocks: all blocks.
        spent: seconds so far.
        limit: the limit; None for no limit.

    Raises:
        LoopTimeError: all blocks are expected to take longer than the limit.
    """
    if limit is not None and spent >= PATIENCE:
        error = LoopTimeError(n_done, n_blocks, spent, limit)
        if error.expected > limit.hours * 3_600:
            raise error
