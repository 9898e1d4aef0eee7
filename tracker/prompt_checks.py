"""Checks of the content of prompts: options, reference answers, and equal prompts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from tracker.option_labels import option_letters

NOT_AN_OPTION = "reference answer is none of the options"
EQUAL_OPTIONS = "options with equal text"
SEVERAL_REFERENCES = "equal prompts with different reference answers"
PROBLEMS = (NOT_AN_OPTION, EQUAL_OPTIONS, SEVERAL_REFERENCES)

Label = TypeVar("Label", bound=Hashable)


class PromptChecks(Generic[Label]):
    """Collects the problems of prompts that are added one by one.

    Attributes:
        found_by_problem: labels of the prompts with each of `PROBLEMS`, in the order in which they were found.
    """

    def __init__(self) -> None:
        self.found_by_problem: dict[str, list[Label]] = {problem: [] for problem in PROBLEMS}
        self._first: dict[str, tuple[Label, str]] = {}
        self._contradicted: set[str] = set()

    def add(self, label: Label, content_hash: str | None, choices: Sequence[str] | None, answer: str | None) -> None:
        """Check a prompt.

        Args:
            label: what identifies it in the result.
            content_hash: hash of its text and options; None without a text.
            choices: its options; None without options.
            answer: its reference answer; None if unknown.
        """
        options = [str(choice).strip() for choice in choices] if choices else []
        if len(set(options)) < len(options):
            self.found_by_problem[EQUAL_OPTIONS].append(label)
        if answer is None or not answer.strip():
            return
        if options and not _is_among(answer.strip(), options):
            self.found_by_problem[NOT_AN_OPTION].append(label)
        if content_hash is None:
            return
        reference = _as_option(answer.strip(), options)
        first, known = self._first.setdefault(content_hash, (label, reference))
        if reference != known:
            if content_hash not in self._contradicted:
                self._contradicted.add(content_hash)
                self.found_by_problem[SEVERAL_REFERENCES].append(first)
            self.found_by_problem[SEVERAL_REFERENCES].append(label)


def _is_among(answer: str, options: Sequence[str]) -> bool:
    """Return whether an answer is the letter or text of an option, or several of them with commas between."""
    known = {*options, *option_letters(len(options))}
    return answer in known or all(part.strip() in known for part in answer.split(","))


def _as_option(answer: str, options: Sequence[str]) -> str:
    """Return the text of the option that an answer names by its letter, else the answer."""
    letters = option_letters(len(options))
    return options[letters.index(answer)] if answer in letters and answer not in options else answer
