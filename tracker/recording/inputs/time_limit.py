"""Analyses that would take days end early, with the time that they would take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracker.errors import TimeLimitError
from tracker.statistics.resampling import LoopTimeError, use_time_limit

UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))


@contextmanager
def limit_time(hours: float | None) -> Iterator[None]:
    """End what the block computes if one of its loops is expected to take longer.

    Args:
        hours: the limit; None for no limit.

    Raises:
        TimeLimitError: with the expected time.
    """
    try:
        with use_time_limit(hours):
            yield
    except LoopTimeError as error:
        expected, spent = describe_time(error.expected), describe_time(error.spent)
        raise TimeLimitError(
            f"This would take about {expected}: {error.n_done:,} of {error.n_blocks:,} parts took {spent}. The limit "
            f"is {error.limit:g} hours. Choose fewer prompts, models or draws, or more workers (--workers), or raise "
            f"the limit: --limit-hours {error.expected / 3_600 * 1.2:.3g}"
        ) from error


def describe_time(seconds: float) -> str:
    """Return a time in the largest unit of which it has two."""
    for size, name in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
