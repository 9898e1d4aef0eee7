"""What questions say, in the same words, of options and scores that they cannot use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tracker.errors import SelectionError

A = TypeVar("A")
B = TypeVar("B")
ValidationErrors = Mapping[str, bool]
"""What would be wrong, in a sentence that says what to do, and whether it is so."""


def validate(problems: ValidationErrors) -> None:
    """Stop at the first problem there is.

    Raises:
        SelectionError: says it.
    """
    for problem, is_so in problems.items():
        if is_so:
            raise SelectionError(problem)


def collect_errors(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """What two functions return; where both refuse, what both say, so that nobody is told one thing after the other.

    Raises:
        SelectionError: one or both of them refuse.
    """
    results: list[Any] = []
    errors: list[str] = []
    for function in (first, second):
        try:
            results.append(function())
        except SelectionError as error:
            errors.append(str(error))
    if len(errors) == 1:
        raise SelectionError(errors[0])
    if errors:
        raise SelectionError("\n".join(f"{number}. {words}" for number, words in enumerate(errors, start=1)))
    return results[0], results[1]


def check_minimum(least: int, **options: int) -> ValidationErrors:
    """Options that must be at least so large."""
    return {f"{name} is {value}; it must be at least {least}.": value < least for name, value in options.items()}


def check_time_limit(time_limit: float) -> ValidationErrors:
    """A time limit that is none."""
    return {
        f"time_limit is {time_limit:g}; it must be a number of seconds, 0 for no exact search.": not (
            0 <= time_limit < np.inf
        )
    }
