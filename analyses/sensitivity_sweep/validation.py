"""Checks of the options of sensitivity-sweep."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyses.presentation.epsilon_option import parse_epsilon
from analyses.presentation.validation import ValidationErrors, check_time_limit
from tracker.errors import SelectionError

MAX_EPSILONS = 100
"""More of them are a line already."""


def parse_epsilons(texts: Sequence[str]) -> list[tuple[str, Fraction]]:
    """The numbers behind ``--epsilons`` in ascending order, each with its shortest decimal form.

    Raises:
        SelectionError: a text is no number in the range, there are none, or too many.
    """
    labels: dict[Fraction, str] = {}
    for text in texts:
        number = parse_epsilon(text)
        if number is None:
            raise SelectionError(f"epsilons has {text!r}; each must be a decimal number from 1e-9 to 1, such as 0.01.")
        labels[Fraction(number)] = f"{number.normalize():f}"
    if not 1 <= len(labels) <= MAX_EPSILONS:
        raise SelectionError(f"epsilons are {len(labels)} numbers; give 1 to {MAX_EPSILONS}, such as 0.01,0.1,1.")
    return [(labels[epsilon], epsilon) for epsilon in sorted(labels)]


def check_options(*, columns: str, time_limit: float) -> ValidationErrors:
    """Reasons why these options are invalid, each with what to do."""
    return {
        f"No columns {columns!r}. Known: raw, standardised.": columns not in ("raw", "standardised"),
        **check_time_limit(time_limit),
    }


def check_complete_tasks(n_tasks: int) -> ValidationErrors:
    """The error where no task has a score from every model."""
    return {
        f"None of the {n_tasks} tasks has a score from every model, so there is nothing to weigh. Choose --models that "
        "share a task.": True
    }
