"""A limit on the time of computations that would take days: they end early, with the time that they would take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tracker.errors import TimeLimitError

PATIENCE = 60.0
"""Seconds of a loop before its time is estimated."""
UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))

_LIMIT: ContextVar[float | None] = ContextVar("time limit", default=None)


@contextmanager
def use_time_limit(hours: float | None) -> Iterator[None]:
    """Limit the expected time of each loop of `map_blocks` in the context.

    Args:
        hours: the limit; None for no limit.
    """
    token = _LIMIT.set(hours)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def has_limit() -> bool:
    """Return whether the time is limited."""
    return _LIMIT.get() is not None


class LoopClock:
    """Estimates the time of a loop from its first blocks.

    Args:
        n_blocks: how many blocks the loop has.
    """

    def __init__(self, n_blocks: int) -> None:
        self._n_blocks, self._n_done, self._begun = n_blocks, 0, time.monotonic()

    def count_block(self) -> None:
        """Count a block that is done.

        Raises:
            TimeLimitError: the blocks are expected to take longer than the limit.
        """
        self._n_done += 1
        limit, spent = _LIMIT.get(), time.monotonic() - self._begun
        if limit is None or spent < PATIENCE:
            return
        expected = spent / self._n_done * self._n_blocks
        if expected <= limit * 3_600:
            return
        raise TimeLimitError(
            f"This would take about {_describe(expected)}: {self._n_done:,} of {self._n_blocks:,} parts took "
            f"{_describe(spent)}. The limit is {limit:g} hours. Choose fewer prompts, models or draws, or more workers "
            f"(--workers), or raise the limit: --limit-hours {expected / 3_600 * 1.2:.3g}"
        )


def _describe(seconds: float) -> str:
    for size, name in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
