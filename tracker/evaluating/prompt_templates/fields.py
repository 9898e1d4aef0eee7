"""What a template can say of a prompt, with and without its question."""

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
    """An option as a template sees it; printed, it is its text."""

    label: str
    text: str

    def __str__(self) -> str:
        return self.text


class Details:
    """Further fields of a prompt, each to be had by its name only: their names are not told, and none is a method."""

    __slots__ = ("_blank", "_fields")

    def __init__(self, fields: Mapping[str, Any], blank: str | None = None) -> None:
        self._fields, self._blank = fields, blank

    def __getitem__(self, name: str) -> Any:
        return _withhold(self._fields[name], self._blank)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __iter__(self) -> Iterator[str]:
        raise TypeError("fields are had by their names, such as details.source")


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplateFields:
    """What a template can say of a prompt.

    Attributes:
        name: what the prompt is called, for messages.
        task: its task; '' where there is none.
        question: its text.
        choices: its options in their order.
        details: its further fields, by name.
        blank: what stands for the question and for every further field; None where they are shown.
    """

    name: str
    task: str
    question: str
    choices: Sequence[str]
    details: Mapping[str, Any]
    blank: str | None = None

    def withhold_question(self, blank: str) -> TemplateFields:
        """The same prompt with its question withheld: options, their order and the task stay."""
        return replace(self, question=blank, blank=blank)

    def values(self, labels: Sequence[str]) -> dict[str, Any]:
        """What the names in a question stand for.

        Args:
            labels: of the options.
        """
        return {
            "task": self.task,
            "task_words": self.task.replace("_", " "),
            "question": self.question,
            "choices": tuple(map(Choice, labels, self.choices)),
            "details": Details(self.details, self.blank),
        }


def option_labels(kind: str, choices: Sequence[str]) -> tuple[str, ...]:
    """How options are called: A, B, ... or 1, 2, ... or, in words, by their texts.

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
    """A field as a template sees it; withheld, nothing of it is left but how it is built."""
    if isinstance(value, Mapping):
        return Details(value, blank)
    if isinstance(value, (list, tuple)):
        return tuple(_withhold(part, blank) for part in value)
    return value if blank is None else blank
