"""Warnings about missing and tied scores, and about bounds that are not met."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.sensitivity_results import CardinalResult
from analyses.social_choice.method import SocialChoice
from tracker.name_lists import MAX_NAMES, join_names
from tracker.queries.task_matrix import TaskMatrix

DESCENT_WARNING = (
    "Algorithms 1 and 2 of the paper find lower bounds. The upper bounds beside them hold for any ranking."
)
"""What --method paper leaves open."""
BOUNDS_WARNING = (
    "With missing scores, a win rate averaged per task does not add up over rivals. The largest change lies between "
    "the value found and the bound; more time does not narrow this range."
)
"""What --win-rate per-task leaves open where scores are missing."""


def collect_warnings(finding: SocialChoice, table: TaskMatrix, scores: ExactScores, time_limit: float) -> list[str]:
    """Warnings on missing and tied scores, on ties at the boundary, and on what is not proven.

    Args:
        finding: the result.
        table: the scores as they were loaded.
        scores: the same as exact numbers.
        time_limit: seconds of each search.
    """
    messages = _score_warnings(scores, table.tasks, finding.diversities.n_complete_tasks)
    cardinal, ordinal = finding.cardinal, finding.ordinal
    if ordinal and not ordinal.is_explicit:
        messages += _boundary_warnings(ordinal.rates, ordinal.sensitivity.leading, table.models)
    if finding.method == "paper":
        return [*messages, DESCENT_WARNING]
    if isinstance(cardinal, CardinalResult):
        messages += _unproven_warnings(cardinal.sensitivity, "Cardinal", time_limit)
    if ordinal:
        has_only_bounds = ordinal.rule == "per_task" and finding.n_missing > 0 and not ordinal.sensitivity.is_exact
        unproven = _unproven_warnings(ordinal.sensitivity, "Ordinal", time_limit)
        messages += [BOUNDS_WARNING] if has_only_bounds else unproven
    return messages


def _score_warnings(scores: ExactScores, tasks: Sequence[str], n_complete: int) -> list[str]:
    """List warnings about missing scores, constant tasks and identical tasks.

    Args:
        scores: as they were ranked.
        tasks: name of each row.
        n_complete: tasks that have a score from every model.
    """
    messages = []
    missing = int((~scores.present).sum())
    if missing:
        messages.append(
            f"{missing:,} of {scores.T.size:,} scores are missing. Diversity imputes them from the nearest models; "
            "compare `diversity.complete_tasks` and `diversity.complete_models`. Cardinal sensitivity and "
            f"`diversity.tie_corrected` use the {n_complete} of {scores.n_tasks} complete tasks."
        )
    constant: list[str] = []
    duplicates: dict[tuple[tuple[int, ...], bytes], list[str]] = {}
    for name, row, present in zip(tasks, scores.numerators.tolist(), scores.present, strict=True):
        if len({value for value, has_score in zip(row, present.tolist(), strict=True) if has_score}) == 1:
            constant.append(name)
        else:
            duplicates.setdefault((tuple(row), present.tobytes()), []).append(name)
    if len(constant) == scores.n_tasks:
        messages.append(
            "Every task ties all models. Diversity counts ties as disagreement and is 1 by its formula. The "
            "tie-corrected diversity is undefined, and no change moves any model."
            if scores.n_tasks > 1
            else "The task ties all models: there is no ranking."
        )
    elif constant:
        messages.append(
            f"Tasks without weight, because all models tie: {join_names(constant)}. Diversity counts these ties as "
            "disagreement; `diversity.tie_corrected` does not."
        )
    if copies := [" = ".join(names) for names in duplicates.values() if len(names) > 1]:
        messages.append(f"Tasks with identical scores, each of which counts: {'; '.join(copies[:MAX_NAMES])}.")
    return messages


def _boundary_warnings(rates: Sequence[Fraction], leading: NDArray[np.int64], models: Sequence[str]) -> list[str]:
    """Warn that the last of the leading models is tied with one outside.

    Args:
        rates: win rate of every model over the whole field.
        leading: columns, best first.
        models: name of each column.
    """
    last, inside = int(leading[-1]), set(leading.tolist())
    tied = [name for model, name in enumerate(models) if model not in inside and rates[model] == rates[last]]
    if not tied:
        return []
    return [
        f"The last of the leading models, {models[last]}, has the same win rate as {join_names(tied)}; their names "
        "decide which one is included. Choose another --top to avoid the tie."
    ]


def _unproven_warnings(
    sensitivity: CardinalSensitivity | OrdinalSensitivity, system: str, time_limit: float
) -> list[str]:
    """Warn that the largest change is not proven."""
    if sensitivity.is_exact:
        return []
    after = f"after {time_limit:g} second{'s' * (time_limit != 1)}"
    searched = after if time_limit else "without an exact search (--time-limit 0)"
    return [
        f"{system} sensitivity is not proven {searched}: it lies between the value found and the upper bound. "
        "A larger --time-limit narrows this range."
    ]
