"""Format differences of scores for summaries."""

from __future__ import annotations

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
