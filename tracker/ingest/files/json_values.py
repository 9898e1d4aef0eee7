"""Typed values of harness JSON: numbers, texts and times, without rounding or guessing."""

from __future__ import annotations

import contextlib
import json
import math
import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracker.ingest.files.file_contents import GZIP

EXACT = 2**53
"""Integers up to here are exact as floats."""
MAX_SETTING_LENGTH = 2000
"""Maximal length of a setting as JSON."""
MAX_BRACKETS = 50
"""Maximal number of opening brackets of a setting, which keeps it within the nesting limit of JSON readers."""


def score(value: Any) -> float:
    """Return a score; NaN if it is null or NaN. True is 1, False is 0.

    Raises:
        ValueError: the value is not a number, or too large for a float.
    """
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, (int, float)):
        raise ValueError(f"{_describe(value)}, not a number")
    if value != value:
        return math.nan
    if abs(value) > EXACT:
        raise ValueError(f"{_describe(value)}, too large to be a score")
    return float(value)


def optional_score(value: Any) -> float | None:
    """Return a score as `score` does; None if the value is not a number."""
    try:
        return score(value)
    except ValueError:
        return None


def number(value: Any) -> float | None:
    """Return a finite number that a float holds exactly; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= EXACT or (isinstance(value, float) and math.isfinite(value)) else None


def parsed_number(value: Any) -> float | None:
    """Return a number, also one written as text; None for anything else, NaN included."""
    if not isinstance(value, str):
        return number(value)
    try:
        return number(float(value) if "." in value or "e" in value.lower() else int(value))
    except ValueError:
        return None


def count(value: Any) -> int | None:
    """Return an integer from 0 to 2³¹ − 1; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def text(value: Any) -> str | None:
    """Return a non-empty text; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def mapping(value: Any) -> dict[str, Any]:
    """Return an object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """Return the texts of a list, with numbers as texts; empty if it is not a list."""
    return [item for element in value if (item := words(element)) is not None] if isinstance(value, list) else []


def words(value: Any) -> str | None:
    """Return a text, number or boolean as text, and nested values as JSON; None if it is null or too deep."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (RecursionError, ValueError):
        return None


def setting(value: Any) -> Any:
    """Return a setting that is short and not deeply nested; None for anything else."""
    serialized = words(value)
    if serialized is None or len(serialized) > MAX_SETTING_LENGTH:
        return None
    if serialized.count("[") + serialized.count("{") >= MAX_BRACKETS:
        return None
    return value


def identity(value: Any) -> str | None:
    """Return a name: a text or an integer as text; None for anything else, such as rounded numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) <= EXACT else None
    return text(value)


def instant(value: Any) -> datetime | None:
    """Parse a time as text or in seconds since 1970, UTC by default; None if it is not a time."""
    seconds = number(value)
    if seconds is None and isinstance(value, str):
        with contextlib.suppress(ValueError):
            seconds = float(value)
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC)
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
        return None if moment is None else (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (OverflowError, OSError, ValueError):
        return None


def printed_decimals(value: float, at_least: int) -> int | None:
    """Return the number of decimals to which a number may be rounded; None if it has no decimal notation."""
    _, _, decimals = f"{value!r}".partition(".")
    return max(at_least, len(decimals)) if decimals.isdigit() else None


def version_warning(name: str, version: Any, known: Sequence[Any]) -> str | None:
    """Return the warning about an unknown version of a format; None for a known one, or none.

    Args:
        name: the field that holds it.
        version: its value.
        known: versions that the format reads; a text matches versions that begin with it.
    """
    if version is None or version in known:
        return None
    if any(isinstance(prefix, str) and re.match(rf"{re.escape(prefix)}(?!\d)", str(version)) for prefix in known):
        return None
    return f"unknown {name} {str(version)[:40]}; read as {known[-1]}"


def first_bytes(path: Path, n: int = 1 << 16) -> bytes | str:
    """Return the first bytes of a file after decompression and without byte order mark, or why there are none."""
    try:
        if not path.is_file():
            return "is not a file"
        with path.open("rb") as file:
            data = file.read(n)
        if data.startswith(GZIP):
            data = zlib.decompressobj(wbits=31).decompress(data, n)
    except (OSError, zlib.error) as error:
        return f"cannot be read ({error})"
    return data.removeprefix(b"\xef\xbb\xbf")


def _describe(value: Any) -> str:
    description = repr(value) if not isinstance(value, (list, dict)) else f"a {type(value).__name__}"
    return description if len(description) <= 40 else f"{description[:40]}…"
