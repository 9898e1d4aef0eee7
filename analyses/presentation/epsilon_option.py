"""The least weight of a task as a user writes it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from tracker.errors import SelectionError

MIN_EPSILON = Decimal("1e-9")
"""Smaller weights are none beside those of 1."""


def parse_epsilon(text: str) -> Decimal | None:
    """Parse an exact number from `MIN_EPSILON` to 1; None where the text is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and MIN_EPSILON <= number <= 1 else None


def parse_epsilon_option(text: str) -> Fraction | None:
    """The number behind ``--epsilon``, None for auto.

    Raises:
        SelectionError: it is neither.
    """
    if text.strip() == "auto":
        return None
    number = parse_epsilon(text)
    if number is None:
        raise SelectionError(f"epsilon is {text!r}; it must be a decimal number from 1e-9 to 1, such as 0.01, or auto.")
    return Fraction(number)
