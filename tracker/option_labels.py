"""What the options of a prompt are called, where answers are read, stored and shown."""

from __future__ import annotations

from collections.abc import Sequence

N_LETTERS = 26


def option_letter(place: int) -> str:
    """A for the first option; beyond Z its number, counted from 1."""
    return chr(ord("A") + place) if place < N_LETTERS else str(place + 1)


def option_letters(n: int) -> list[str]:
    """Letters of the first of ``n`` options, as far as there are any."""
    return [option_letter(place) for place in range(min(n, N_LETTERS))]


def option_name(place: int, choices: Sequence[str]) -> str:
    """What an option is called as an answer in the store: its letter.

    Its text where letters would mislead, because the text of an option is itself one of them, and beyond the 26th.

    Args:
        place: of the option, from 0.
        choices: texts of all options.
    """
    texts = [choice.strip() for choice in choices]
    letters = option_letters(len(texts))
    return letters[place] if place < len(letters) and not set(letters) & set(texts) else texts[place]
