"""Keys of prompts by their content, and draws that rest on nothing else.

Rows and keys differ from store to store; what is drawn must not. So draws are made of SHA-256 of the seed and of what
prompts say, not of a generator's numbers in the order of rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from unicodedata import normalize

import orjson

from tracker.queries.prompts import PromptTexts


def sha256_digest(*values: object) -> str:
    """SHA-256, in hexadecimal, of texts, numbers, and lists of them."""
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


def content_key(text: str | None, choices: Sequence[str] | None) -> str:
    """Equal for prompts of equal content: the same question, and the same options in any order.

    White space, and the Unicode form, make no difference. Further fields, the task and the gold answer are not looked
    at, so that a prompt is never explained by the same question with another answer.
    """
    return sha256_digest(_normalize(text or ""), sorted(map(_normalize, choices or ())))


def draw_rows(prompts: PromptTexts, rows: Sequence[int], n: int, seed: int) -> list[int]:
    """At most ``n`` of the rows, at random, in their order.

    Of fewer, all are among those of more; which ones they are rests on the seed and on what the prompts say alone.

    Args:
        prompts: whose rows.
        rows: to draw from, ascending.
        n: how many.
        seed: any whole number.
    """
    n_before: Counter[tuple[str, str]] = Counter()
    order: dict[int, str] = {}
    for row in rows:
        content = (prompts.tasks[row], content_key(prompts.texts[row], prompts.choices[row]))
        order[row] = sha256_digest("limit", str(seed), *content, n_before[content])
        n_before[content] += 1
    return sorted(sorted(rows, key=order.__getitem__)[:n])


def draw_places(n: int, k: int, *name_parts: object) -> list[int]:
    """``k`` different whole numbers below ``n``, in a random order.

    Args:
        n: at least ``k``.
        k: how many.
        name_parts: what names the draw; the same numbers for the same name.

    Source: Fisher-Yates, stopped after ``k`` steps; words are 64 bits of SHA-256, so that no number is likelier than
    another by more than ``n / 2**64``.
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
