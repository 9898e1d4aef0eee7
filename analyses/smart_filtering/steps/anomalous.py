"""Prompts of tasks that the user excludes; a warning names anomalous tasks.

Source: Gupta et al. 2024, section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from analyses.numerics.filtering.anomalous_tasks import AnomalousTask, find_anomalous_tasks
from analyses.numerics.filtering.step_flags import make_flags
from analyses.presentation.validation import ValidationErrors
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from tracker.name_lists import join_names
from tracker.queries.performance import PerformanceMatrix

MAX_NAMED = 5
"""Tasks that the warning names."""


@dataclass(frozen=True, kw_only=True)
class AnomalousOptions:
    """Which tasks are removed whole."""

    exclude_task: Annotated[tuple[str, ...], "Names of anomalous tasks to remove completely, separated by commas."] = ()


class AnomalousStep(FilterStep[AnomalousOptions]):
    """Needs the tasks; reads texts, options and vectors to suggest what to exclude."""

    name = "anomalous"
    position = 20
    options = AnomalousOptions

    def check_options(self, options: AnomalousOptions, scores: PerformanceMatrix) -> ValidationErrors:
        """Check that the excluded tasks exist."""
        tasks = sorted(set(scores.tasks.tolist()))
        unknown = [task for task in options.exclude_task if task not in tasks]
        problem = f"No task {unknown[0] if unknown else ''!r} to exclude. Known: {join_names(tasks, MAX_NAMED)}."
        return {problem: bool(unknown)}

    def apply(self, data: FilterData, options: AnomalousOptions) -> StepResult:
        """Flag and remove the prompts of the excluded tasks."""
        flags = make_flags(np.isin(data.scores.tasks, options.exclude_task))
        anomalous = [task for task in _find_anomalous(data) if task.task not in options.exclude_task]
        return StepResult(
            flags=flags,
            warnings=_warn_of_tasks(anomalous) if anomalous else [],
        )


def _find_anomalous(data: FilterData) -> tuple[AnomalousTask, ...]:
    lengths = [np.nan if text is None else len(text) for text in data.texts]
    n_choices = [
        np.nan if text is None else len(choices or ()) for text, choices in zip(data.texts, data.choices, strict=True)
    ]
    return find_anomalous_tasks(
        data.scores.tasks, np.array(lengths, dtype=np.float64), np.array(n_choices, dtype=np.float64), data.vectors
    )


def _warn_of_tasks(tasks: Sequence[AnomalousTask]) -> list[str]:
    names = "; ".join(f"{task.task} ({_describe(task)})" for task in tasks[:MAX_NAMED])
    return [f"Anomalous tasks: {names}. They are not removed; `--exclude-task` removes one."]


def _describe(task: AnomalousTask) -> str:
    descriptions = {
        "length": f"{task.value:,.0f} characters a prompt, against {task.median:,.0f}",
        "n_choices": f"{task.value:.1f} options, against {task.median:.1f}",
        "distance": f"{task.value:.2f} from the other prompts in meaning, against {task.median:.2f}",
    }
    return descriptions[task.measure]


STEP = AnomalousStep()
