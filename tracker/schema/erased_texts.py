"""How an erased response is stored: a mark with the day and the hash of its text, in place of the text."""

from __future__ import annotations

import hashlib
import re
from datetime import date

PREFIX = "response erased on "
MARK = re.compile(re.escape(PREFIX) + r"(\d{4}-\d\d-\d\d) \(sha256:([0-9a-f]{64})\)")


def make_mark(text: str, day: date) -> str:
    """Return the mark that replaces a text."""
    return f"{PREFIX}{day.isoformat()} (sha256:{_hash(text)})"


def is_mark(text: str | None) -> bool:
    """Return whether a stored text is the mark of an erased one."""
    return text is not None and text.startswith(PREFIX) and MARK.fullmatch(text) is not None


def is_same_response(first: str | None, second: str | None) -> bool:
    """Return whether two texts are equal, or one is the mark of the other."""
    if first == second:
        return True
    if first is None or second is None:
        return False
    hashes = [match.group(2) if (match := MARK.fullmatch(text)) else _hash(text) for text in (first, second)]
    return hashes[0] == hashes[1] and (is_mark(first) or is_mark(second))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
