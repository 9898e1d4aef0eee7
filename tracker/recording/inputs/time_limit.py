"""Analyses that would take days end early, with the time that they would take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracker.errors import TimeLimitError
from tracker.number_format import format_duration
from tracker.statistics.parallel.time_limits import LoopTimeError, TimeLimit, use_time_limit


@contextmanager
def limit_time(hours: float | None) -> Iterator[None]:
    """End what the block computes if one of its loops is expected to take longer.

    Args:
        hours: the limit; None for no limit.

    Raises:
        TimeLimitError: with the expected time.
    """
    try:
        with use_time_limit(None if hours is None else TimeLimit(hours=hours)):
            yield
    except LoopTimeError as error:
        expected, spent = format_duration(error.expected), format_duration(error.spent)
        n_repeats = error.limit.n_repeats
        repeats = f", and they are repeated {n_repeats:,} times" if n_repeats > 1 else ""
        raise TimeLimitError(
            f"This would take about {expected}: {error.n_done:,} of {error.n_blocks:,} parts took {spent}{repeats}. "
            f"The limit is {error.limit.hours:g} hours. Choose fewer prompts, models or draws, or more workers "
            f"(--workers), or raise the limit: --limit-hours {error.expected / 3_600 * 1.2:.3g}"
        ) from error
