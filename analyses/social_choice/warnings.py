"""What the reader should know of the scores behind diversity and sensitivity, and of what is not proven."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.sensitivity_results import CardinalResult
from analyses.presentation.name_lists import MAX_NAMES, join_names
from analyses.social_choice.method import SocialChoice
from tracker.queries.task_matrix import TaskMatrix

DESCENT_WARNING = (
    "Algorithms 1 and 2 of the paper find lower bounds; the upper bounds beside them are the largest of any ranking."
)
"""What --method paper leaves open."""
BOUNDS_WARNING = (
    "With missing scores, a win rate averaged per task does not add up over rivals: the largest change lies between "
    "the witness found and the bound, and more time does not bring them closer."
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
    """What the reader of the numbers should know of the tasks behind them.

    Args:
        scores: as they were ranked.
        tasks: name of each row.
        n_complete: tasks that have a score from every model.
    """
    messages = []
    missing = int((~scores.present).sum())
    if missing:
        messages.append(
            f"{missing:,} of {scores.T.size:,} scores are missing. Diversity has them filled in, which makes models "
            "resemble their neighbours; read it beside diversity.complete_tasks and diversity.complete_models. "
            f"Cardinal sensitivity and diversity.tie_corrected are of the {n_complete} of {scores.n_tasks} tasks "
            "without gaps. Win rates need no filling in."
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
            "Every task ties all models. No two tasks disagree, but diversity counts ties as disagreement and is 1 by "
            "its formula; the tie-corrected one is not defined, and no change moves any model."
            if scores.n_tasks > 1
            else "The task ties all models: there is no ranking."
        )
    elif constant:
        messages.append(
            f"The same score for all models, so without weight: {join_names(constant)}. Diversity counts their ties as "
            "disagreement; diversity.tie_corrected does not."
        )
    if copies := [" = ".join(names) for names in duplicates.values() if len(names) > 1]:
        messages.append(
            f"Tasks with the same scores, which count as often as they come: {'; '.join(copies[:MAX_NAMES])}."
        )
    return messages


def _boundary_warnings(rates: Sequence[Fraction], leading: NDArray[np.int64], models: Sequence[str]) -> list[str]:
    """That the last of the leading models owes its place to its name.

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
        f"The last of the leading models, {models[last]}, has the same win rate as {join_names(tied)}; names decide "
        "who leads. Another --top may draw the line where there is none."
    ]


def _unproven_warnings(
    sensitivity: CardinalSensitivity | OrdinalSensitivity, system: str, time_limit: float
) -> list[str]:
    """That an upper bound is not the largest change, and what makes it smaller."""
    if sensitivity.is_exact:
        return []
    after = f"after {time_limit:g} second{'s' * (time_limit != 1)}"
    searched = after if time_limit else "without an exact search (--time-limit 0)"
    return [
        f"{system} sensitivity is not proven {searched}: it lies between the witness found and the bound. How close "
        "the two come depends on the machine; a larger --time-limit brings them closer."
    ]
