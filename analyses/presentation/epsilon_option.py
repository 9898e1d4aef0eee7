"""The least weight of a task as a user writes it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from tracker.errors import SelectionError

MIN_EPSILON = Decimal("1e-9")
"""Smaller weights are none beside those of 1."""


def parse_epsilon(said: str) -> Decimal | None:
    """The number from `MIN_EPSILON` to 1 that was written, exactly; None where none was."""
    try:
        number = Decimal(said)
    except InvalidOperation:
        return None
    return number if number.is_finite() and MIN_EPSILON <= number <= 1 else None


def parse_epsilon_option(said: str) -> Fraction | None:
    """The number behind ``--epsilon``, None for auto.

    Raises:
        SelectionError: it is neither.
    """
    if said.strip() == "auto":
        return None
    number = parse_epsilon(said)
    if number is None:
        raise SelectionError(f"epsilon is {said!r}; it must be a decimal number from 1e-9 to 1, such as 0.01, or auto.")
    return Fraction(number)
