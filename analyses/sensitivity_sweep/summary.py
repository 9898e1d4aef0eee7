"""The sweep over least weights in plain words: summary and warnings."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from analyses.numerics.elections.largest_change import CardinalSensitivity
from analyses.presentation.name_lists import join_names, list_leaders
from analyses.sensitivity_sweep.method import SensitivitySweep
from tracker.queries.findings.summary import Summary

ROUND_UP = Context(prec=4, rounding=ROUND_CEILING)
"""How an epsilon is rounded from which on nothing happens: what is said must hold for the number that is printed."""
MAX_QUOTIENT_DIGITS = 12
"""Digits up to which a quotient is written as one."""
LIMITS = (
    "These are the worst cases over all weights, not likely ones: they say what could be argued, not what will happen. "
    "Nothing here is a test."
)


def summarize(finding: SensitivitySweep) -> Summary:
    """The result in one paragraph."""
    return Summary.from_sentences([_describe_changes(finding), *_describe_safe_epsilons(finding), LIMITS])


def _describe_changes(finding: SensitivitySweep) -> str:
    """What weights can do at the smallest epsilon, in the middle and at the largest."""
    path = finding.path.sensitivities
    n_models = len(finding.models)
    middle = int(np.argmin([abs(float(sensitivity.epsilon) - 0.1) for sensitivity in path]))
    clauses = [
        f"at {finding.labels[index]}, {_describe_change(path[index], n_models)}"
        for index in sorted({0, middle, len(path) - 1})
    ]
    noun = "task" if finding.is_raw else "standardised task"
    return (
        f"If every {noun} may weigh anything from epsilon to 1, the largest share of the "
        f"{n_models * (n_models - 1) // 2:,} pairs of models that can be reversed, and the farthest that a model can "
        f"move, are at epsilon {'; '.join(clauses)[3:]}."
    )


def _describe_safe_epsilons(finding: SensitivitySweep) -> list[str]:
    """From which epsilon on nothing is reversed."""
    limits, is_raw = finding.path.limits, finding.is_raw
    if not len(limits.limit):
        return ["The mean ties all models, so there is no order to reverse."]
    limit = limits.max_limit()
    if limit == 0:
        return ["No weights reverse any two models: on no task is the model that is behind by the mean ahead."]
    leader_limit = limits.max_limit(limits.involves_leader)
    if limit > 1:
        sentence = "Equal weights of standardised tasks already reverse some pairs that the mean of the scores orders"
    else:
        sentence = f"From epsilon {_format_limit(limit, is_raw)} on no pair can be reversed, whatever the weights"
    leaders = list_leaders(finding.path.sensitivities[0].before, finding.models)
    names = join_names(leaders)
    if leader_limit > 1:
        return [f"{sentence}; they put another model ahead of {names}."]
    if leader_limit == 0:
        return [f"{sentence}; {names} {'are' if len(leaders) > 1 else 'is'} passed under no weights at all."]
    none = "none" if len(leaders) == 1 else "no other model"
    return [f"{sentence}; from {_format_limit(leader_limit, is_raw)} on {none} gets ahead of {names}."]


def collect_warnings(finding: SensitivitySweep, n_excluded: int, *, time_limit: float) -> list[str]:
    """Warnings on the tasks behind the numbers, and on what is not proven.

    Args:
        finding: the result.
        n_excluded: tasks that lack a score.
        time_limit: seconds of the search.
    """
    path, sums = finding.path.sensitivities, finding.path.limits.sums
    constant = [task for task, group in zip(finding.tasks, sums.group.tolist(), strict=True) if group < 0]
    messages = []
    if n_excluded:
        lack, are = ("task lacks", "is") if n_excluded == 1 else ("tasks lack", "are")
        messages.append(
            f"{n_excluded:,} {lack} the score of some model and {are} left out; the mean is over the tasks that remain."
        )
    if constant:
        messages.append(f"The same score for all models, so without weight: {join_names(constant)}.")
    if sums.n_weights == 1 and len(path[0].scale) > 1:
        messages.append(
            "All tasks that tell models apart order them in the same proportions, so weights change nothing."
        )
    if not finding.is_raw and path[-1].epsilon == 1 and path[-1].mrc.value > 0:
        messages.append(
            "At epsilon 1 the mean of the scores is compared with the mean of standardised tasks, which is a change "
            "already. For curves that end at zero choose --columns raw."
        )
    n_open = sum(not sensitivity.is_exact for sensitivity in path)
    if n_open:
        limit = "without exact search" if time_limit == 0 else f"in {time_limit:g} s"
        messages.append(
            f"At {n_open} of {len(path)} epsilons the largest change is not proven {limit}: it lies between the value "
            "and its upper bound. A larger --time-limit narrows that; how much depends on the machine."
        )
    return messages


def _describe_change(sensitivity: CardinalSensitivity, n_models: int) -> str:
    tau, mrc = sensitivity.tau, sensitivity.mrc
    if sensitivity.is_exact and tau.value == 0 and mrc.value == 0:
        return "none and nowhere"
    if tau.is_exact:
        pairs = f"{tau.value:.2%}" if tau.value else "none"
    else:
        pairs = f"{tau.value:.2%} to {tau.upper_bound:.2%}"
    places, bound = _format_places(mrc.value, n_models), _format_places(mrc.upper_bound, n_models)
    return f"{pairs} and {places if mrc.is_exact else f'{places} to {bound}'} of {n_models - 1} places"


def _format_places(share: float, n_models: int) -> str:
    return f"{round(2 * share * (n_models - 1)) / 2:g}"


def _format_limit(limit: Fraction, is_raw: bool) -> str:
    quotient = f"{limit.numerator}/{limit.denominator}"
    if is_raw and len(quotient) <= MAX_QUOTIENT_DIGITS:
        return f"{float(limit):.4g} ({quotient})"
    return f"{float(ROUND_UP.divide(Decimal(limit.numerator), Decimal(limit.denominator))):g}"
