"""Names that a mistyped name may mean."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from difflib import get_close_matches

MIN_PART = 3
"""Letters that a part of a name must have to stand for the name."""


def find_similar(name: str, known: Collection[str], n: int = 3, *, cutoff: float = 0.6) -> list[str]:
    """Return the names most similar to a mistyped one, the nearest first.

    Letter case, spaces, zero-width characters, and ``-`` in place of ``_`` do not count as differences.

    Args:
        name: as the user typed it.
        known: names that exist.
        n: names to return at most.
        cutoff: least similarity, in (0, 1), as in `difflib.get_close_matches`.
    """
    typed = _normalize(name)
    if typed.lstrip("-").isdecimal():
        return []  # numbers with common digits are not similar
    names: dict[str, list[str]] = {}
    for candidate in known:
        names.setdefault(_normalize(candidate), []).append(candidate)
    if typed in names:
        return names[typed][:n]
    near = get_close_matches(typed, names, n=n, cutoff=cutoff)
    near += [key for key in names if len(typed) >= MIN_PART and typed in key and key not in near]
    return [candidate for key in near for candidate in names[key]][:n]


def format_guess(names: Collection[str]) -> str:
    """Return ``Did you mean 'a' or 'b'?``; '' for no names."""
    return f"Did you mean {' or '.join(map(repr, names))}?" if names else ""


def _normalize(name: str) -> str:
    letters = (letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf")
    return "".join(letters).strip().casefold().replace("_", "-").replace(" ", "-")
