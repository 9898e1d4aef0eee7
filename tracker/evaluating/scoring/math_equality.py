"""Equality of numbers and formulas, by the package math-verify."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from tracker.errors import MissingExtraError

SECONDS = 5
"""Time limit of one comparison. It needs the main thread of the process; elsewhere there is none."""
_FORMULA = re.compile(r"[\d\\^=+*/(){}<>-]|^\s*\w\s*$")
"""A text that can be a formula; words alone are compared as texts."""
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}\s|\n")
MAX_FORMULA = 200


def math_verify(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
    """Return 1 if the answer equals a reference as text, number or formula, else 0.

    The text may be LaTeX or plain: ``\\frac{1}{2}``, ``1/2`` and ``0.5`` are equal. Differences to ignore have no
    effect.

    Source: the package math-verify, ``verify(parse(reference), parse(answer))``.
    """
    if answer.strip() in {reference.strip() for reference in references}:
        return 1.0
    verify = _load()[1]
    limit = _limit()
    parsed = _parse(answer, limit)
    return float(any(bool(verify(_parse(ref, limit), parsed, timeout_seconds=limit)) for ref in references))


def check_installed() -> None:
    """Raise MissingExtraError if the package math-verify is not installed."""
    _load()


@lru_cache(maxsize=64)
def _parse(text: str, limit: int | None) -> Any:
    """Return the formula that the text is, or the last one in prose; the text itself without any."""
    parse = _load()[0]
    bare = text.strip().strip("$")
    if not _FORMULA.search(bare):
        return [bare]
    is_formula = len(bare) <= MAX_FORMULA and not _PROSE.search(bare)
    return parse(f"${bare}$" if is_formula else text, parsing_timeout=limit) or [bare]


def _limit() -> int | None:
    is_main = threading.current_thread() is threading.main_thread()
    return SECONDS if is_main and hasattr(signal, "SIGALRM") else None


@lru_cache(maxsize=1)
def _load() -> tuple[Any, Any]:
    try:
        from math_verify import parse, verify
    except ImportError as error:
        raise MissingExtraError("The metric math_verify", "math") from error
    return parse, verify
