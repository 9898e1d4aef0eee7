"""The summary of a sensitivity sweep, and its warnings."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from analyses.numerics.elections.largest_change import CardinalSensitivity
from analyses.presentation.name_lists import list_leaders
from analyses.sensitivity_sweep.method import SensitivitySweep
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary

ROUND_UP = Context(prec=4, rounding=ROUND_CEILING)
"""Rounds up the epsilon from which on nothing happens, so that the printed number is safe itself."""
MAX_QUOTIENT_DIGITS = 12
"""Digits up to which a quotient is written as one."""
LIMITS = "Worst cases over all weights, not likely ones; no number here is a significance test."


def summarize(finding: SensitivitySweep) -> Summary:
    """Summarize from which smallest weight on nothing is reversed, and what smaller weights can do."""
    return Summary(_headline(finding), tuple(_list_changes(finding)), (LIMITS,))


def _list_changes(finding: SensitivitySweep) -> Iterator[str]:
    """Describe what weights can do at the smallest epsilon, in the middle and at the largest."""
    path, n_models = finding.path.sensitivities, len(finding.models)
    noun = "task" if finding.is_raw else "standardized task"
    yield f"Weights of each {noun} range from epsilon to 1; {n_models} models, {len(finding.tasks)} tasks."
    middle = int(np.argmin([abs(float(sensitivity.epsilon) - 0.1) for sensitivity in path]))
    for index in sorted({0, middle, len(path) - 1}):
        yield f"Epsilon {finding.labels[index]}: {_describe_change(path[index], n_models)}."


def _headline(finding: SensitivitySweep) -> str:
    limits, is_raw = finding.path.limits, finding.is_raw
    if not len(limits.limit):
        return "The mean ties all models, so there is no order to reverse."
    limit = limits.max_limit()
    if limit == 0:
        return "No task weights reverse any two models: on no task is the model behind by the mean ahead."
    leader_limit = limits.max_limit(limits.involves_leader)
    leaders = join_names(list_leaders(finding.path.sensitivities[0].before, finding.models))
    if leader_limit > 1:
        lead = f"Equal weights of standardized tasks already put another model ahead of {leaders}"
    elif leader_limit == 0:
        lead = f"No task weights put another model ahead of {leaders}"
    else:
        smallest = _format_limit(leader_limit, is_raw)
        if limit == leader_limit:
            return (
                f"No other model gets ahead of {leaders}, and no pair of models reverses, if every task weight is at "
                f"least {smallest} of the largest."
            )
        lead = f"No other model gets ahead of {leaders} if every task weight is at least {smallest} of the largest"
    if limit > 1:
        return f"{lead}; equal weights of standardized tasks already reverse some pairs."
    return f"{lead}; no pair reverses from {_format_limit(limit, is_raw)} on."


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
        noun = "task" if n_excluded == 1 else "tasks"
        messages.append(
            f"Excluded: {n_excluded:,} {noun} without a score of every model. The mean is over the other tasks."
        )
    if constant:
        messages.append(f"Tasks without weight, because all models tie: {join_names(constant)}.")
    if sums.n_weights == 1 and len(path[0].scale) > 1:
        messages.append("All tasks that separate models order them in the same proportions, so weights change nothing.")
    if not finding.is_raw and path[-1].epsilon == 1 and path[-1].mrc.value > 0:
        messages.append(
            "At epsilon 1 the mean of the scores is compared with the mean of standardized tasks, which differ. "
            "For curves that end at zero choose --columns raw."
        )
    n_open = sum(not sensitivity.is_exact for sensitivity in path)
    if n_open:
        limit = "without exact search" if time_limit == 0 else f"in {time_limit:g} s"
        messages.append(
            f"At {n_open} of {len(path)} epsilons the largest change is not proven {limit}: it lies between the value "
            "and its upper bound. A larger --time-limit narrows this range."
        )
    return messages


def _describe_change(sensitivity: CardinalSensitivity, n_models: int) -> str:
    tau, mrc = sensitivity.tau, sensitivity.mrc
    if sensitivity.is_exact and tau.value == 0 and mrc.value == 0:
        return "no pair reversed, no model moved"
    if tau.is_exact:
        pairs = f"{tau.value:.2%}" if tau.value else "none"
    else:
        pairs = f"{tau.value:.2%} to {tau.upper_bound:.2%}"
    places, bound = _format_places(mrc.value, n_models), _format_places(mrc.upper_bound, n_models)
    moved = places if mrc.is_exact else f"{places} to {bound}"
    return f"up to {pairs} of the pairs reversed, a model moved by up to {moved} of {n_models - 1} places"


def _format_places(share: float, n_models: int) -> str:
    return f"{round(2 * share * (n_models - 1)) / 2:g}"


def _format_limit(limit: Fraction, is_raw: bool) -> str:
    quotient = f"{limit.numerator}/{limit.denominator}"
    if is_raw and len(quotient) <= MAX_QUOTIENT_DIGITS:
        return f"{float(limit):.4g} ({quotient})"
    return f"{float(ROUND_UP.divide(Decimal(limit.numerator), Decimal(limit.denominator))):g}"
