"""The least weight of a task as a user writes it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

LEAST_EPSILON = Decimal("1e-9")
"""Smaller weights are none beside those of 1."""


def epsilon_of(said: str) -> Decimal | None:
    """The number from `LEAST_EPSILON` to 1 that was written, exactly; None where none was."""
    try:
        number = Decimal(said)
    except InvalidOperation:
        return None
    return number if number.is_finite() and LEAST_EPSILON <= number <= 1 else None
