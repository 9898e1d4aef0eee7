"""Prompts that all filter models answer right with confidence without the question.

Source: Gupta et al. 2024, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.step_flags import StepFlags, make_flags
from analyses.presentation.filter_model_tables import list_answer_only_scores
from analyses.presentation.validation import ValidationErrors
from analyses.smart_filtering.filter_data import FilterData, FilterModelOptions
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from tracker.name_lists import join_names
from tracker.queries.performance import PerformanceMatrix


@dataclass(frozen=True, kw_only=True)
class ContaminatedOptions(FilterModelOptions):
    """Which models filter, and which of all models this step goes by."""

    contaminated_models: Annotated[
        tuple[str, ...],
        "Models of the step contaminated, separated by commas. Default: the filter models.",
    ] = ()


class ContaminatedStep(FilterStep[ContaminatedOptions]):
    """Needs answer-only runs of the filter models, or of the models listed for it, and their probabilities of the
    reference answer.
    """

    name = "contaminated"
    position = 40
    options = ContaminatedOptions
    needs_answer_only = True

    def check_options(self, options: ContaminatedOptions, scores: PerformanceMatrix) -> ValidationErrors:
        """Check that the listed models have scores."""
        unknown = [name for name in options.contaminated_models if name not in scores.models]
        return {f"contaminated_models: no scores of {join_names(unknown, 3)} here.": bool(unknown)}

    def skip_reason(self, data: FilterData, options: ContaminatedOptions) -> str:
        """Return which answer-only runs are missing or lack probabilities."""
        return data.evidence.unblinded(_columns(data, options), data.scores.models, data.kind or None)

    def apply(self, data: FilterData, options: ContaminatedOptions) -> StepResult:
        """Flag and remove prompts that all of its models answer with confidence without the question."""
        columns = _columns(data, options)

        def flag_by_models(columns: NDArray[np.intp]) -> StepFlags:
            return make_flags(data.unanimity.find_contaminated(columns))

        names = options.contaminated_models
        rule = f"{data.all_filter_models_get} them right without the question too"
        if names:
            rule = f"{join_names(names)} {'gets' if len(names) == 1 else 'all get'} them right without the question"
        return StepResult(
            flags=flag_by_models(columns),
            rule=f"Contaminated: {rule}.",
            flag_by_models=None if names else flag_by_models,
            warnings=_describe_power(data, columns),
        )


def _columns(data: FilterData, options: ContaminatedOptions) -> NDArray[np.intp]:
    """Return the columns of the models that the step goes by."""
    if not options.contaminated_models:
        return data.columns
    return np.flatnonzero(np.isin(data.scores.models, options.contaminated_models))


def _describe_power(data: FilterData, columns: NDArray[np.intp]) -> list[str]:
    """Warn of models that are no better than guessing without the question."""
    names = tuple(data.scores.models[column] for column in columns)
    table = list_answer_only_scores(data.scores, data.evidence, data.choices, names)
    rows = [row for row in table.to_pylist() if row["filters"]]
    if not rows:
        return []
    accuracies = [row["accuracy"] for row in rows]
    span = f"{min(accuracies):.1%} to {max(accuracies):.1%}" if len(rows) > 1 else f"{accuracies[0]:.1%}"
    chance = sum(row["chance"] for row in rows) / len(rows)
    guessing = [row["model"] for row in rows if row["above_chance"] <= 2 * row["stderr_of_chance"]]
    subject = "filter models are" if names == data.filter_models else "these models are"
    if guessing:
        return [
            f"The step `contaminated` has little power: without the question, {join_names(guessing)} "
            f"{'is' if len(guessing) == 1 else 'are'} no better than guessing ({chance:.1%} right)."
        ]
    return [f"Without the question, {subject} right on {span} of the prompts (guessing: {chance:.1%})."]


STEP = ContaminatedStep()
