"""Notations of numbers in cells: percent signs, thousands separators, standard errors after ±, footnote marks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

BOOLEANS = {"true": 1.0, "false": 0.0}
MEDALS = "🥇🥈🥉🏅🏆⭐👑"
NUMBER = r"[+\-−]?(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*(?:[eE][+\-]?\d+)?|\.\d+(?:[eE][+\-]?\d+)?)"
CELL = re.compile(
    rf"(?P<number>{NUMBER})\s*(?P<percent>%)?"
    rf"(?:\s*\(?\s*(?:±|\+/-|\+-)\s*(?P<stderr>{NUMBER})\s*(?P<percent_of_stderr>%)?\s*\)?\s*(?P<percent_after>%)?)?"
)
TAG = r"</?(?:b|i|u|em|ins|mark|strong)>"
MARKS = re.compile(rf"^(?:[\s*_{MEDALS}\ufe0f]|{TAG})+|(?:[\s*†‡§_{MEDALS}\ufe0f↑↓▲▼]|{TAG})+$", re.I)
MAYBE_NUMBER = re.compile(rf"^(?:[\s*_{MEDALS}\ufe0f†‡§↑↓▲▼]|{TAG})*(?:[+\-−.\d]|true|false|nan|inf)", re.I)
"""Matches the beginning of each cell that is a number or a boolean."""
DECIMAL_COMMA = re.compile(r"^\s*[+\-−]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))\s*%?\s*$")


@dataclass(frozen=True)
class NumberCell:
    """A number in a cell, as written.

    Attributes:
        value: the number; 71.2 for ``71.2%``.
        stderr: the number after ±; NaN if there is none.
        is_percent: whether a percent sign follows the number.
    """

    value: float
    stderr: float = math.nan
    is_percent: bool = False


@lru_cache(maxsize=1 << 16)
def parse_number_cell(cell: str) -> NumberCell | None:
    """Return the number in a cell; None if it holds no number, or more than one.

    Understands ``71.2%``, ``1,234.5``, ``12.3 ± 0.4``, ``true``, and the marks of footnotes, medals and bold print.
    """
    text = cell.strip()
    if text.lower() in BOOLEANS:
        return NumberCell(BOOLEANS[text.lower()])
    match = CELL.fullmatch(text) or CELL.fullmatch(MARKS.sub("", text))
    if match is None:
        return None
    value = _to_float(match["number"])
    stderr = math.nan if match["stderr"] is None else _to_float(match["stderr"])
    is_percent = bool(match["percent"] or match["percent_of_stderr"] or match["percent_after"])
    return NumberCell(value, stderr, is_percent) if math.isfinite(value) else None


def has_decimal_comma(cell: str) -> bool:
    """Return whether a cell can only be a number with a decimal comma, such as ``0,71``."""
    return DECIMAL_COMMA.match(cell) is not None


def _to_float(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))
