"""Prompts that all filter models answer right with confidence without the question.

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
        """Return which answer-only runs are missing or lack probabilities."""
        return data.evidence.unblinded(data.columns, data.scores.models, data.kind or None)

    def apply(self, data: FilterData, options: FilterModelOptions) -> StepResult:
        """Flag and remove prompts that all filter models answer with confidence without the question."""

        def flag_by_models(columns: NDArray[np.intp]) -> StepFlags:
            return make_flags(data.unanimity.find_contaminated(columns))

        return StepResult(
            flags=flag_by_models(data.columns),
            rule=f"Contaminated: {data.all_filter_models_get} them right without the question too.",
            flag_by_models=flag_by_models,
            warnings=_describe_power(data),
        )


def _describe_power(data: FilterData) -> list[str]:
    """Warn of filter models that are no better than guessing without the question."""
    table = list_answer_only_scores(data.scores, data.evidence, data.choices, data.filter_models)
    rows = [row for row in table.to_pylist() if row["filters"]]
    if not rows:
        return []
    accuracies = [row["accuracy"] for row in rows]
    span = f"{min(accuracies):.1%} to {max(accuracies):.1%}" if len(rows) > 1 else f"{accuracies[0]:.1%}"
    chance = sum(row["chance"] for row in rows) / len(rows)
    guessing = [row["model"] for row in rows if row["above_chance"] <= 2 * row["stderr_of_chance"]]
    if guessing:
        return [
            f"The step `contaminated` has little power: without the question, {join_names(guessing)} "
            f"{'is' if len(guessing) == 1 else 'are'} no better than guessing ({chance:.1%} right)."
        ]
    return [f"Without the question, filter models are right on {span} of the prompts (guessing: {chance:.1%})."]


STEP = ContaminatedStep()
