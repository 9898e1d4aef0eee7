"""The fields of a prompt that a template can use, with and without the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tracker.option_labels import option_letter

HEADER_NAMES = ("task", "task_words")
QUESTION_NAMES = (*HEADER_NAMES, "question", "choices", "details")
ANSWER_NAMES = (*QUESTION_NAMES, "label", "answer")


@dataclass(frozen=True, slots=True)
class Choice:
    """An option in a template; it prints as its text."""

    label: str
    text: str

    def __str__(self) -> str:
        return self.text


class Details:
    """Further fields of a prompt, accessible by name only; they cannot be listed, and none is a method."""

    __slots__ = ("_blank", "_fields")

    def __init__(self, fields: Mapping[str, Any], blank: str | None = None) -> None:
        self._fields, self._blank = fields, blank

    def __getitem__(self, name: str) -> Any:
        return _withhold(self._fields[name], self._blank)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        raise TypeError("further fields are accessible by name only, such as details.source")


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateFields:
    """The fields of a prompt that a template can use.

    Attributes:
        name: name of the prompt, for messages.
        task: its task; '' without one.
        question: its text.
        choices: its options in order.
        details: its further fields, by name.
        blank: replacement of the question and of every further field; None if they are shown.
    """

    name: str
    task: str
    question: str
    choices: Sequence[str]
    details: Mapping[str, Any]
    blank: str | None = None

    def withhold_question(self, blank: str) -> TemplateFields:
        """Return the same prompt with its question withheld; the options, their order and the task stay."""
        return replace(self, question=blank, blank=blank)

    def values(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the variables of the block ``question``.

        Args:
            labels: labels of the options.
        """
        return {
            "task": self.task,
            "task_words": self.task.replace("_", " "),
            "question": self.question,
            "choices": tuple(map(Choice, labels, self.choices)),
            "details": Details(self.details, self.blank),
        }


def option_labels(kind: str, choices: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of options: A, B, ... or 1, 2, ... or the texts of the options.

    Options beyond the alphabet have numbers.

    Args:
        kind: one of `tracker.evaluating.option_values.LABELS`.
        choices: texts of the options.
    """
    if kind == "words":
        return tuple(choice.strip() for choice in choices)
    return _list_labels(len(choices), kind == "letters")


@lru_cache
def _list_labels(n: int, lettered: bool) -> tuple[str, ...]:
    return tuple(option_letter(place) if lettered else str(place + 1) for place in range(n))


def _withhold(value: Any, blank: str | None) -> Any:
    """Return a field as a template sees it; if withheld, only its structure remains."""
    if isinstance(value, Mapping):
        return Details(value, blank)
    if isinstance(value, (list, tuple)):
        return tuple(_withhold(part, blank) for part in value)
    return value if blank is None else blank
