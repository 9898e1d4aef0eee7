"""Numbers of files that a float keeps as they are."""

from __future__ import annotations

import math
from typing import Any

BEYOND = 2**64
"""Whole numbers from here on are floats already when a fast reader of JSON has read them."""


def to_exact_float(value: Any) -> float:
    """A number as a float.

    Raises:
        ValueError: it is no finite number, or a whole number of more digits than a float keeps; says which.
    """
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or int(number) != value:
            raise ValueError(f"{_describe(value)}, which has more digits than a score can keep")
        return number
    if not isinstance(value, float):
        raise ValueError(f"{str(value)[:40]!r}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"{value}, not a finite number")
    return value


def _describe(value: int) -> str:
    size = value.bit_length()
    return str(value) if size < 200 else f"a whole number of about {int(size * math.log10(2)) + 1} digits"
