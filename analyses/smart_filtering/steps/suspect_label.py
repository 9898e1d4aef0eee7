"""Prompts that all filter models answer wrong with confidence: possibly wrong labels. They are not removed.

Source: Gupta et al. 2024, appendix A.2.
"""

from __future__ import annotations

import numpy as np

from analyses.numerics.filtering.step_flags import make_flags
from analyses.smart_filtering.filter_data import FilterData, FilterModelOptions
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from tracker.name_lists import join_names


class SuspectLabelStep(FilterStep[FilterModelOptions]):
    """Needs the scores of the filter models, and the probability of each answer."""

    name = "suspect-label"
    position = 60
    options = FilterModelOptions
    removes = False

    def skip_reason(self, data: FilterData, options: FilterModelOptions) -> str:
        """Return which filter models have no stored probability of their answers."""
        probability = data.unanimity.answer_probability
        if probability is None:
            return ""
        unknown = [data.scores.models[j] for j in data.columns if np.isnan(probability[:, j]).all()]
        return f"no probability of the answers is stored for {join_names(unknown)}" if unknown else ""

    def apply(self, data: FilterData, options: FilterModelOptions) -> StepResult:
        """Flag prompts that all filter models answer wrong with confidence, and remove nothing."""
        flagged = data.unanimity.find_suspect(data.columns)
        confident = " with confidence" if data.kind else ""
        return StepResult(
            flags=make_flags(flagged, np.zeros_like(flagged)),
            rule=f"Suspect label: {data.all_filter_models_get} them wrong{confident}.",
        )


STEP = SuspectLabelStep()
