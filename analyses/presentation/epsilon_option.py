"""The option ``--epsilon``: the smallest weight of a task."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from tracker.errors import SelectionError

MIN_EPSILON = Decimal("1e-9")
"""Smaller weights have no effect beside those of 1."""


def parse_epsilon(text: str) -> Decimal | None:
    """Parse an exact number from `MIN_EPSILON` to 1; None for any other text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and MIN_EPSILON <= number <= 1 else None


def parse_epsilon_option(text: str) -> Fraction | None:
    """Parse ``--epsilon``; None for ``auto``.

    Raises:
        SelectionError: the text is neither a number in range nor ``auto``.
    """
    if text.strip() == "auto":
        return None
    number = parse_epsilon(text)
    if number is None:
        raise SelectionError(f"epsilon is {text!r}; it must be a decimal number from 1e-9 to 1, such as 0.01, or auto.")
    return Fraction(number)
