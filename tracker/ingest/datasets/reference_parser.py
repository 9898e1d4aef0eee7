"""How a data set writes which option is right: its letter, its text, or its place counted from 0 or from 1."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

from tracker.errors import SelectionError
from tracker.ingest.datasets.choices import Choices

NOTATIONS = {
    "letter": "the letter or label of the option",
    "text": "the text of the option",
    "index": "the place of the option, counted from 0",
    "index1": "the place of the option, counted from 1",
}


def parse_reference(notation: str, answer: Any, choices: Choices) -> int | None:
    """Place of the option that an answer means, read in one of the ways; None where it means none."""
    answer_text = str(answer).strip()
    if notation == "letter":
        return choices.place(answer_text)
    if notation == "text":
        return choices.texts.index(answer_text) if choices.texts.count(answer_text) == 1 else None
    number = re.fullmatch(r"(\d{1,9})(?:\.0)?", answer_text)
    if number is None or isinstance(answer, bool):
        return None
    place = int(number[1]) - (notation == "index1")
    return place if 0 <= place < len(choices.texts) else None


class Guess:
    """Which of the ways reads every answer of a data set; it is told of all of them, one after the other."""

    def __init__(self) -> None:
        self.n_answers = 0
        self.failed: dict[str, str] = {}
        """Place of the first answer that each notation cannot read."""
        self.differ: dict[tuple[str, str], str] = {}
        """Place of the first answer that two ways read differently."""

    def add(self, answer: Any, choices: Choices, where: str) -> None:
        """One more answer."""
        self.n_answers += 1
        places = {
            notation: parse_reference(notation, answer, choices)
            for notation in NOTATIONS
            if notation not in self.failed
        }
        self.failed |= {notation: f"{answer!r} at {where}" for notation, place in places.items() if place is None}
        for pair in combinations(places, 2):
            if places[pair[0]] != places[pair[1]]:
                self.differ.setdefault(pair, where)

    def notation(self) -> str:
        """The only notation that reads them all, or the first of several that read them all alike.

        Raises:
            SelectionError: no notation does, or several do and do not agree.
        """
        left = [notation for notation in NOTATIONS if notation not in self.failed]
        if not left:
            reasons = "; ".join(f"not {notation}: {place}" for notation, place in self.failed.items())
            raise SelectionError(f"The answers cannot be read in one way throughout ({reasons}). Correct the data.")
        unclear = [pair for pair in combinations(left, 2) if pair in self.differ]
        if unclear:
            first, second = unclear[0]
            raise SelectionError(
                f"The answers could be {first} ({NOTATIONS[first]}) or {second} ({NOTATIONS[second]}), which differ "
                f"first at {self.differ[first, second]}. Say which with --answer-is."
            )
        return left[0]
