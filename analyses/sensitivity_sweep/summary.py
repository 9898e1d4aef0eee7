"""The sweep over least weights in plain words: what it is refused for, what it found, what is to be noted."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from analyses.numerics.elections.cardinal.pair_limits import PairLimits
from analyses.numerics.elections.largest_change import CardinalSensitivity
from analyses.presentation.epsilon_option import parse_epsilon
from analyses.presentation.name_lists import join_names
from analyses.presentation.validation import ValidationErrors, check_time_limit
from tracker.errors import SelectionError

MOST_EPSILONS = 100
"""More of them are a line already."""
UPWARDS = Context(prec=4, rounding=ROUND_CEILING)
"""How an epsilon is rounded from which on nothing happens: what is said must hold for the number that is printed."""
SHORT = 12
"""Digits up to which a quotient is written as one."""
LAST = (
    "These are the worst cases over all weights, not likely ones: they say what could be argued, not what will happen. "
    "Nothing here is a test."
)


def least_weights(said: Sequence[str]) -> list[tuple[str, Fraction]]:
    """The numbers behind ``--epsilons`` in ascending order, each with its shortest decimal form.

    Raises:
        SelectionError: one is no number in the range, there are none, or too many.
    """
    found: dict[Fraction, str] = {}
    for one in said:
        number = parse_epsilon(one)
        if number is None:
            raise SelectionError(f"epsilons has {one!r}; each must be a decimal number from 1e-9 to 1, such as 0.01.")
        found[Fraction(number)] = f"{number.normalize():f}"
    if not 1 <= len(found) <= MOST_EPSILONS:
        raise SelectionError(f"epsilons are {len(found)} numbers; give 1 to {MOST_EPSILONS}, such as 0.01,0.1,1.")
    return [(found[epsilon], epsilon) for epsilon in sorted(found)]


def problems(*, columns: str, time_limit: float) -> ValidationErrors:
    """Why the sweep cannot be made with these options, and what to do about it."""
    return {
        f"No columns {columns!r}. Known: raw, standardised.": columns not in ("raw", "standardised"),
        **check_time_limit(time_limit),
    }


def no_complete_task(n_tasks: int) -> ValidationErrors:
    """That there is nothing to weigh."""
    return {
        f"None of the {n_tasks} tasks has a score from every model, so there is nothing to weigh. Choose --models that "
        "share a task.": True
    }


def moves(path: Sequence[CardinalSensitivity], labels: Sequence[str], *, is_raw: bool) -> str:
    """What weights can do at the smallest epsilon, in the middle and at the largest."""
    m = len(path[0].before)
    shown = sorted({0, int(np.argmin([abs(float(one.epsilon) - 0.1) for one in path])), len(path) - 1})
    said = [f"at {labels[place]}, {_change(path[place], m)}" for place in shown]
    what = "task" if is_raw else "standardised task"
    return (
        f"If every {what} may weigh anything from epsilon to 1, the largest share of the {m * (m - 1) // 2:,} pairs of "
        f"models that can be reversed, and the farthest that a model can move, are at epsilon {'; '.join(said)[3:]}."
    )


def safety(limits: PairLimits, leading: Sequence[str], *, is_raw: bool) -> list[str]:
    """From which epsilon on nothing is reversed.

    Args:
        limits: of all pairs.
        leading: names of those first by the mean.
        is_raw: whether scores are weighed as they are.
    """
    if not len(limits.limit):
        return ["The mean ties all models, so there is no order to reverse."]
    largest = limits.max_limit()
    if largest == 0:
        return ["No weights reverse any two models: on no task is the model that is behind by the mean ahead."]
    first = limits.max_limit(limits.involves_leader)
    if largest > 1:
        said = "Equal weights of standardised tasks already reverse some pairs that the mean of the scores orders"
    else:
        said = f"From epsilon {_quotient(largest, is_raw)} on no pair can be reversed, whatever the weights"
    who = join_names(leading)
    if first > 1:
        return [f"{said}; they put another model ahead of {who}."]
    if first == 0:
        return [f"{said}; {who} {'are' if len(leading) > 1 else 'is'} passed under no weights at all."]
    none = "none" if len(leading) == 1 else "no other model"
    return [f"{said}; from {_quotient(first, is_raw)} on {none} gets ahead of {who}."]


def warnings(
    path: Sequence[CardinalSensitivity],
    n_excluded: int,
    constant: Sequence[str],
    n_weights: int,
    *,
    is_raw: bool,
    time_limit: float,
) -> list[str]:
    """What the reader should know of the tasks behind the numbers, and of what is not proven.

    Args:
        path: what was found.
        n_left_out: tasks that lack a score.
        constant: tasks that tie all models.
        n_weights: weights that make a difference.
        is_raw: whether scores are weighed as they are.
        time_limit: seconds that were given.
    """
    said = []
    if n_excluded:
        lack, are = ("task lacks", "is") if n_excluded == 1 else ("tasks lack", "are")
        said.append(
            f"{n_excluded:,} {lack} the score of some model and {are} left out; the mean is over the tasks that remain."
        )
    if constant:
        said.append(f"The same score for all models, so without weight: {join_names(constant)}.")
    if n_weights == 1 and len(path[0].scale) > 1:
        said.append("All tasks that tell models apart order them in the same proportions, so weights change nothing.")
    if not is_raw and path[-1].epsilon == 1 and path[-1].mrc.value > 0:
        said.append(
            "At epsilon 1 the mean of the scores is compared with the mean of standardised tasks, which is a change "
            "already. For curves that end at zero choose --columns raw."
        )
    n_open = sum(not one.is_exact for one in path)
    if n_open:
        limit = "without exact search" if time_limit == 0 else f"in {time_limit:g} s"
        said.append(
            f"At {n_open} of {len(path)} epsilons the largest change is not proven {limit}: it lies between the value "
            "and its upper bound. A larger --time-limit narrows that; how much depends on the machine."
        )
    return said


def _change(found: CardinalSensitivity, m: int) -> str:
    tau, mrc = found.tau, found.mrc
    if found.is_exact and tau.value == 0 and mrc.value == 0:
        return "none and nowhere"
    pairs = (
        (f"{tau.value:.2%}" if tau.value else "none") if tau.is_exact else f"{tau.value:.2%} to {tau.upper_bound:.2%}"
    )
    places, most = _places(mrc.value, m), _places(mrc.upper_bound, m)
    return f"{pairs} and {places if mrc.is_exact else f'{places} to {most}'} of {m - 1} places"


def _places(share: float, m: int) -> str:
    return f"{round(2 * share * (m - 1)) / 2:g}"


def _quotient(limit: Fraction, is_raw: bool) -> str:
    exact = f"{limit.numerator}/{limit.denominator}"
    if is_raw and len(exact) <= SHORT:
        return f"{float(limit):.4g} ({exact})"
    return f"{float(UPWARDS.divide(Decimal(limit.numerator), Decimal(limit.denominator))):g}"
