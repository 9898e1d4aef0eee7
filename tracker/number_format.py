"""Format differences of scores, and durations, for people."""

from __future__ import annotations

UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
"""Seconds and names of units of time, the largest first."""
LARGE, SMALL = 1e6, 1e-6
"""Sizes from which, and below which, four decimals say too much or nothing."""


def format_difference(value: float, sign: str = "") -> str:
    """Return a number with four decimals, or with four significant digits if it is very large or very small.

    Args:
        value: the number.
        sign: ``+`` for a sign before positive numbers too.

    Examples:
        >>> format_difference(0.05123, "+"), format_difference(0.0), format_difference(-3.14159e200)
        ('+0.0512', '0.0000', '-3.142e+200')
    """
    is_plain = value == 0 or SMALL <= abs(value) < LARGE
    return format(value, f"{sign}.4{'f' if is_plain else 'g'}")


def format_duration(seconds: float) -> str:
    """Return a time in the largest unit of which there are two, with two digits.

    Examples:
        >>> format_duration(0.4), format_duration(119), format_duration(150), format_duration(2e6)
        ('1 second', '119 seconds', '2.5 minutes', '23 days')
    """
    for size, name in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:{'.0f' if seconds >= 10 * size else '.2g'}} {name}"
    n_seconds = max(1, round(seconds))
    return f"{n_seconds} second{'s' * (n_seconds != 1)}"
