"""Notation of reference answers in a data set: letter, text, or index from 0 or 1."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

from tracker.errors import SelectionError
from tracker.ingest.datasets.choices import Choices

NOTATIONS = {
    "letter": "the letter or label of the option",
    "text": "the text of the option",
    "index": "the index of the option, counted from 0",
    "index1": "the index of the option, counted from 1",
}


def parse_reference(notation: str, answer: Any, choices: Choices) -> int | None:
    """Return the index of the option that an answer means in a notation; None if there is none."""
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
    """Detects the notation of a data set's answers from all of them."""

    def __init__(self) -> None:
        self.n_answers = 0
        self.failed: dict[str, str] = {}
        """Place of the first answer that each notation cannot read."""
        self.differ: dict[tuple[str, str], str] = {}
        """Place of the first answer that two notations read differently."""

    def add(self, answer: Any, choices: Choices, where: str) -> None:
        """Add an answer."""
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
        """Return the only notation that reads all answers, or the first of several that agree.

        Raises:
            SelectionError: no notation reads all answers, or several do and disagree.
        """
        left = [notation for notation in NOTATIONS if notation not in self.failed]
        if not left:
            reasons = "; ".join(f"not {notation}: {place}" for notation, place in self.failed.items())
            raise SelectionError(f"No notation fits all answers ({reasons}). Correct the data.")
        unclear = [pair for pair in combinations(left, 2) if pair in self.differ]
        if unclear:
            first, second = unclear[0]
            raise SelectionError(
                f"The answers could be {first} ({NOTATIONS[first]}) or {second} ({NOTATIONS[second]}), which first "
                f"differ at {self.differ[first, second]}. Choose with --answer-is."
            )
        return left[0]
