"""Format numbers, times and names for reading."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tracker.exporting.document_tables import SUPERSCRIPTS

NOTHING = "–"


def format_number(value: float | None) -> str:
    """A number with four significant digits, whole ones with all of theirs; a dash where there is none.

    Examples:
        >>> format_number(12032.0), format_number(0.62804), format_number(-0.00001234), format_number(None)
        ('12,032', '0.628', '−1.234 × 10⁻⁵', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if float(value).is_integer() and size < 1e15:
        text = f"{int(size):,}"
    elif size >= 1e15 or size < 1e-3:
        digits, _, power = f"{size:.3e}".partition("e")
        text = f"{float(digits):g} × 10{str(int(power)).translate(SUPERSCRIPTS)}"
    else:
        text = f"{float(f'{size:.4g}'):,.10g}"
    return f"−{text}" if value < 0 else text


def format_score(value: float | None) -> str:
    """A score as in a column of scores: three decimals, more where it is small, none where it is large."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    text = f"{size:,.1f}" if size >= 100 else f"{size:.2f}" if size >= 10 else f"{size:.3f}"
    text = format_number(size) if 0 < size < 0.001 or size >= 1e9 else text
    return f"−{text}" if value < 0 and float(value) != 0 else text


def format_share(value: float) -> str:
    """A share in per cent, never rounded up to all or down to none.

    Examples:
        >>> format_share(1.0), format_share(0.99904), format_share(0.99999), format_share(0.5), format_share(0.0)
        ('100 %', '99.9 %', '> 99.9 %', '50 %', '0 %')
    """
    text = f"{round(100 * value, 1):g}"
    if value < 1 and text == "100":
        return "> 99.9 %"
    return "< 0.1 %" if value > 0 and text == "0" else f"{text} %"


def format_day(moment: datetime) -> str:
    """Return the day of a time, UTC."""
    return f"{moment:%Y-%m-%d}"


def format_minute(moment: datetime) -> str:
    """Return a time to the minute, UTC."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def format_value(value: Any) -> str:
    """Format an option for reading: lists with commas, names before their values."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return format_number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {format_value(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(format_value(part) for part in value)
    return NOTHING if value is None else str(value)


def format_count(count: int, noun: str) -> str:
    """Format a number with its noun: ``1 prompt``, ``12,032 prompts``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shorten(text: str, longest: int) -> str:
    """Shorten a text."""
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring, each on one line, without the marks around code."""
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [re.sub(r"`+([^`]*)`+", r"\1", part) for part in parts if part]


def format_code(text: str) -> str:
    """Return a text as HTML: escaped, with the parts between backquotes as code.

    Examples:
        >>> format_code("Run `a < b`")
        'Run <code>a &lt; b</code>'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
