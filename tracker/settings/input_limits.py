"""Limits on files from elsewhere: what one may expand to, and how long and deep its parts may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace

from tracker.errors import SettingsError
from tracker.settings.resolution import resolve_setting
from tracker.suggestions import find_similar, format_guess

FREE_BYTES = 8 << 20
"""Size up to which a packed file may expand by any factor."""
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "kb": 10**3, "mb": 10**6, "gb": 10**9}


@dataclass(frozen=True, kw_only=True)
class InputLimits:
    """Largest file that is read.

    Attributes:
        bytes: bytes of a file after unpacking.
        expansion: bytes after unpacking for each byte of the file, beyond 8 MB.
        value: bytes of one value: a cell, a line of JSON Lines, or an element of a JSON list.
        name: characters of the name of a model, benchmark, task or metric; the name of a prompt may have 50 times as
            many.
        columns: columns of a table.
        nesting: depth of lists and objects in JSON or YAML.
        members: files in an archive, and nodes of a YAML file.
        runs: runs of a file, and so models of a table.
    """

    bytes: int = 64_000_000_000
    expansion: int = 100
    value: int = 64_000_000
    name: int = 2_000
    columns: int = 100_000
    nesting: int = 200
    members: int = 300_000
    runs: int = 20_000

    def allow(self, packed: int) -> int:
        """Return the number of bytes that a file of this size may expand to."""
        return min(self.bytes, max(FREE_BYTES, self.expansion * packed))


_LIMITS: ContextVar[InputLimits | None] = ContextVar("limits", default=None)
_DEFAULT = InputLimits()


def current_limits() -> InputLimits:
    """Return the limits of the context, else those of the settings."""
    if limits := _LIMITS.get():
        return limits
    setting = resolve_setting("limits")
    return _DEFAULT if setting is None else parse_limits(str(setting.value), setting.origin)


@contextmanager
def use_limits(limits: InputLimits | None) -> Iterator[None]:
    """Apply limits to all files that are read in the context; None for those of the settings."""
    token = _LIMITS.set(limits)
    try:
        yield
    finally:
        _LIMITS.reset(token)


def parse_limits(text: str, place: str, base: InputLimits = _DEFAULT) -> InputLimits:
    """Return limits of which some are replaced.

    Args:
        text: such as ``columns=200000, value=200MB``.
        place: where the text is from, for the error.
        base: the limits that are replaced.

    Raises:
        SettingsError: a name or number is not valid.
    """
    names = [limit.name for limit in fields(InputLimits)]
    changed = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\w+)\s*=\s*([1-9]\d{0,17})\s*([kmg]?b?)", part, re.IGNORECASE)
        if match is None or match[3].lower() not in UNITS or match[1] not in names:
            guess = format_guess(find_similar(part.partition("=")[0].strip(), names))
            raise SettingsError(
                f"The limit {part[:80]!r} in {place} is not valid. {guess or 'Limits: ' + ', '.join(names) + '.'} "
                "Example: value=200MB"
            )
        changed[match[1]] = int(match[2]) * UNITS[match[3].lower()]
    return replace(base, **changed)


def explain_limit(name: str, text: str) -> str:
    """Return the problem of a file beyond a limit, with the option that raises it.

    Args:
        name: of the limit.
        text: what is too large, as the start of a sentence.
    """
    limit = getattr(current_limits(), name)
    return f"{text}; the limit is {limit:,}. If you trust the file, raise it: --limits {name}={2 * limit}"
