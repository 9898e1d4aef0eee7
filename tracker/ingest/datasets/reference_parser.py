"""How a data set writes which option is right: its letter, its text, or its place counted from 0 or from 1."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

from tracker.errors import SelectionError
from tracker.ingest.datasets.choices import Choices

WAYS = {
    "letter": "the letter or label of the option",
    "text": "the text of the option",
    "index": "the place of the option, counted from 0",
    "index1": "the place of the option, counted from 1",
}


def place_of(way: str, answer: Any, choices: Choices) -> int | None:
    """Place of the option that an answer means, read in one of the ways; None where it means none."""
    said = str(answer).strip()
    if way == "letter":
        return choices.place(said)
    if way == "text":
        return choices.texts.index(said) if choices.texts.count(said) == 1 else None
    number = re.fullmatch(r"(\d{1,9})(?:\.0)?", said)
    if number is None or isinstance(answer, bool):
        return None
    place = int(number[1]) - (way == "index1")
    return place if 0 <= place < len(choices.texts) else None


class Guess:
    """Which of the ways reads every answer of a data set; it is told of all of them, one after the other."""

    def __init__(self) -> None:
        self.n_answers = 0
        self.failed: dict[str, str] = {}
        """Place of the first answer that each way cannot read."""
        self.differ: dict[tuple[str, str], str] = {}
        """Place of the first answer that two ways read differently."""

    def add(self, answer: Any, choices: Choices, where: str) -> None:
        """One more answer."""
        self.n_answers += 1
        places = {way: place_of(way, answer, choices) for way in WAYS if way not in self.failed}
        self.failed |= {way: f"{answer!r} at {where}" for way, place in places.items() if place is None}
        for pair in combinations(places, 2):
            if places[pair[0]] != places[pair[1]]:
                self.differ.setdefault(pair, where)

    def way(self) -> str:
        """The only way that reads them all, or the first of several that read them all alike.

        Raises:
            SelectionError: no way does, or several do and do not agree.
        """
        left = [way for way in WAYS if way not in self.failed]
        if not left:
            reasons = "; ".join(f"not {way}: {place}" for way, place in self.failed.items())
            raise SelectionError(f"The answers cannot be read in one way throughout ({reasons}). Correct the data.")
        unclear = [pair for pair in combinations(left, 2) if pair in self.differ]
        if unclear:
            one, other = unclear[0]
            raise SelectionError(
                f"The answers could be {one} ({WAYS[one]}) or {other} ({WAYS[other]}), which differ first at "
                f"{self.differ[one, other]}. Say which with --answer-is."
            )
        return left[0]
