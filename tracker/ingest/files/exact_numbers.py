"""Conversion of numbers to floats without loss."""

from __future__ import annotations

import math
from typing import Any

BEYOND = 2**64
"""Fast JSON readers return integers from here on as floats."""


def to_exact_float(value: Any) -> float:
    """Return a number as a float.

    Raises:
        ValueError: the number is not finite, or an integer too large for a float.
    """
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or int(number) != value:
            raise ValueError(f"{_describe(value)}, which has too many digits for a 64-bit float")
        return number
    if not isinstance(value, float):
        raise ValueError(f"{str(value)[:40]!r}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"{value}, not a finite number")
    return value


def _describe(value: int) -> str:
    size = value.bit_length()
    return str(value) if size < 200 else f"a whole number of about {int(size * math.log10(2)) + 1} digits"
