"""Labels of a prompt's options, as used to read, store and show answers."""

from __future__ import annotations

import string
from collections.abc import Sequence

LETTERS = string.ascii_uppercase


def option_letter(place: int) -> str:
    """A for the first option; beyond Z its number, counted from 1."""
    return LETTERS[place] if place < len(LETTERS) else str(place + 1)


def option_letters(n: int) -> list[str]:
    """Return the letters of the first of ``n`` options, as far as the alphabet goes."""
    return list(LETTERS[:n])


def option_name(place: int, choices: Sequence[str]) -> str:
    """Return the answer that the store uses for an option: its letter.

    It is its text if letters would be ambiguous, because the text of an option is itself a letter, and beyond the 26th
    option.

    Args:
        place: index of the option, from 0.
        choices: texts of all options.
    """
    texts = [choice.strip() for choice in choices]
    letters = option_letters(len(texts))
    return letters[place] if place < len(letters) and not set(letters) & set(texts) else texts[place]
