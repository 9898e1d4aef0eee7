"""Content keys of prompts, and random draws that depend on content alone.

Rows and keys differ between stores, but draws must not. Draws are therefore computed from the SHA-256 of the seed and
the prompts' content, not from a generator in the order of rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from unicodedata import normalize

import orjson

from tracker.queries.prompts import PromptTexts


def sha256_digest(*values: object) -> str:
    """Return the SHA-256, in hexadecimal, of texts, numbers, and lists of them."""
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def content_key(text: str | None, choices: Sequence[str] | None) -> str:
    """Return a key that is equal for prompts of equal content: the same question, and the same options in any order.

    White space and Unicode normalization make no difference. Further fields, the task and the reference answer are
    ignored, so that a prompt is never preceded by the same question with another answer.
    """
    return sha256_digest(_normalize(text or ""), sorted(map(_normalize, choices or ())))


def draw_rows(prompts: PromptTexts, rows: Sequence[int], n: int, seed: int) -> list[int]:
    """Draw at most ``n`` of the rows at random; return them in their order.

    The rows of a smaller ``n`` are a subset of those of a larger one. The draw depends only on the seed and the
    prompts' content.

    Args:
        prompts: all prompts.
        rows: rows to draw from, ascending.
        n: maximum number of rows.
        seed: any integer.
    """
    n_before: Counter[tuple[str, str]] = Counter()
    order: dict[int, str] = {}
    for row in rows:
        content = (prompts.tasks[row], content_key(prompts.texts[row], prompts.choices[row]))
        order[row] = sha256_digest("limit", str(seed), *content, n_before[content])
        n_before[content] += 1
    return sorted(sorted(rows, key=order.__getitem__)[:n])


def draw_places(n: int, k: int, *name_parts: object) -> list[int]:
    """Draw ``k`` distinct integers below ``n``, in random order.

    Args:
        n: at least ``k``.
        k: number of draws.
        name_parts: key of the draw; the same key gives the same numbers.

    Source: Fisher-Yates, stopped after ``k`` steps. Words are 64 bits of SHA-256, so the probabilities of two numbers
    differ by at most ``n / 2**64``.
    """
    name, moved = sha256_digest(*name_parts), dict[int, int]()
    places = []
    for i in range(k):
        word = int.from_bytes(hashlib.sha256(f"{name}/{i}".encode()).digest()[:8])
        j = i + word % (n - i)
        places.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return places


def _normalize(text: str) -> str:
    return " ".join(normalize("NFC", text).split())
