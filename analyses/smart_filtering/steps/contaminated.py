"""Prompts that all filter models answer right with confidence although they did not see the question.

Source: Gupta et al. 2024, section 3.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.step_flags import StepFlags, make_flags
from analyses.presentation.filter_model_tables import list_answer_only_scores
from analyses.smart_filtering.filter_data import FilterData, FilterModelOptions
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from tracker.name_lists import join_names


class ContaminatedStep(FilterStep[FilterModelOptions]):
    """Needs answer-only runs of the filter models, and their probabilities of the reference answer."""

    name = "contaminated"
    position = 40
    options = FilterModelOptions
    needs_answer_only = True

    def skip_reason(self, data: FilterData, options: FilterModelOptions) -> str:
        """Runs without the question that are missing or lack probabilities."""
        return data.evidence.unblinded(data.columns, data.scores.models, data.kind or None)

    def apply(self, data: FilterData, options: FilterModelOptions) -> StepResult:
        """Flag and remove what all filter models are sure of without the question."""

        def flag_by_models(columns: NDArray[np.intp]) -> StepFlags:
            return make_flags(data.unanimity.find_contaminated(columns))

        return StepResult(
            flags=flag_by_models(data.columns),
            label="Contaminated, likewise right without the question",
            flag_by_models=flag_by_models,
            warnings=_describe_power(data),
        )


def _describe_power(data: FilterData) -> list[str]:
    """Whether models that filter do better without the question than by guessing."""
    table = list_answer_only_scores(data.scores, data.evidence, data.choices, data.filter_models)
    rows = [row for row in table.to_pylist() if row["filters"]]
    if not rows:
        return []
    accuracies = [row["accuracy"] for row in rows]
    span = f"{min(accuracies):.1%} to {max(accuracies):.1%}" if len(rows) > 1 else f"{accuracies[0]:.1%}"
    chance = sum(row["chance"] for row in rows) / len(rows)
    guessing = [row["model"] for row in rows if row["above_chance"] <= 2 * row["stderr_of_chance"]]
    verdict = (
        f" {join_names(guessing)} can hardly be told from that, so that the step has little power." if guessing else ""
    )
    return [
        f"Without the question, filter models are right on {span} of the prompts; guessing is on {chance:.1%}.{verdict}"
    ]


STEP = ContaminatedStep()
