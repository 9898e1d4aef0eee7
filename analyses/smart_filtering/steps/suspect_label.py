"""Prompts that all filter models answer wrong with confidence: their labels may be wrong. They are only reported.

Source: Gupta et al. 2024, appendix A.2.
"""

from __future__ import annotations

import numpy as np

from analyses.numerics.filtering.step_flags import make_flags
from analyses.smart_filtering.filter_data import FilterData, FilterModelOptions
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from tracker.name_lists import join_names


class SuspectLabelStep(FilterStep[FilterModelOptions]):
    """Needs the scores of the filter models, and their probabilities of their own answers."""

    name = "suspect-label"
    position = 60
    options = FilterModelOptions
    removes = False

    def skip_reason(self, data: FilterData, options: FilterModelOptions) -> str:
        """Filter models of which no probability of their own answers is stored."""
        probability = data.unanimity.answer_probability
        if probability is None:
            return ""
        unknown = [data.scores.models[j] for j in data.columns if np.isnan(probability[:, j]).all()]
        return f"how sure they were of their own answers is not stored of {join_names(unknown)}" if unknown else ""

    def apply(self, data: FilterData, options: FilterModelOptions) -> StepResult:
        """Flag what all filter models get wrong though sure of it, and remove nothing."""
        flagged = data.unanimity.find_suspect(data.columns)
        confident = " though sure of it" if data.kind else ""
        return StepResult(
            flags=make_flags(flagged, np.zeros_like(flagged)),
            label=f"Suspect labels, which {data.all_filter_models_get} wrong{confident}",
        )


STEP = SuspectLabelStep()
