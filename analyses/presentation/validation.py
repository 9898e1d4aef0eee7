"""Checks of options and scores that several analyses share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tracker.errors import SelectionError
from tracker.queries.ranking.leaderboard_intervals import MAX_TESTED_MODELS, explain_too_many

A = TypeVar("A")
B = TypeVar("B")
ValidationErrors = Mapping[str, bool]
"""Messages with the problem and its fix, each with whether the problem exists."""


def validate(problems: ValidationErrors) -> None:
    """Raise the first problem that exists.

    Raises:
        SelectionError: with the message of that problem.
    """
    for problem, is_so in problems.items():
        if is_so:
            raise SelectionError(problem)


def collect_errors(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Return the results of two functions; if both fail, raise one error with both messages.

    Raises:
        SelectionError: one or both of them fail.
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
        raise SelectionError("\n".join(f"{number}. {message}" for number, message in enumerate(errors, start=1)))
    return results[0], results[1]


def check_minimum(least: int, **options: int) -> ValidationErrors:
    """Check options that have a minimum."""
    return {f"{name} is {value}; it must be at least {least}.": value < least for name, value in options.items()}


def check_pairs(n_models: int) -> ValidationErrors:
    """Check that arrays of all pairs of models fit in memory."""
    return {explain_too_many(n_models): n_models > MAX_TESTED_MODELS}


def check_time_limit(time_limit: float) -> ValidationErrors:
    """Check that a time limit is a number of seconds."""
    return {
        f"time_limit is {time_limit:g}; it must be a number of seconds, 0 for no exact search.": not (
            0 <= time_limit < np.inf
        )
    }
