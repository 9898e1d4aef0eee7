"""Prompts that all filter models answer right with confidence; a random share of them is kept.

Source: Gupta et al. 2024, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.removal import draw_retained
from analyses.numerics.filtering.step_flags import StepFlags, make_flags
from analyses.presentation.validation import ValidationErrors, check_minimum
from analyses.smart_filtering.filter_data import FilterData, FilterModelOptions
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from analyses.smart_filtering.validation import check_confidence, check_shares
from tracker.queries.performance import PerformanceMatrix


@dataclass(frozen=True, kw_only=True)
class EasyOptions(FilterModelOptions):
    """Which models filter, and how many of the easy prompts stay."""

    retain: Annotated[float, "Share of the easy prompts to keep, drawn at random."] = 0.1


class EasyStep(FilterStep[EasyOptions]):
    """Needs the scores of the filter models, and their probabilities of the reference answer."""

    name = "easy"
    position = 30
    options = EasyOptions

    def check_options(self, options: EasyOptions, scores: PerformanceMatrix) -> ValidationErrors:
        """Check the options of the filter models, and the share that is kept."""
        return {
            **check_shares(retain=options.retain),
            **check_confidence(options.confidence),
            **check_minimum(1, n_models=options.n_models),
        }

    def apply(self, data: FilterData, options: EasyOptions) -> StepResult:
        """Flag prompts that all filter models answer with confidence, and remove all but a share of them."""

        def flag_by_models(columns: NDArray[np.intp]) -> StepFlags:
            easy = data.unanimity.find_easy(columns)
            return make_flags(easy, easy & ~draw_retained(easy, options.retain, seed=data.seed))

        confident = f" with a probability above {options.confidence:g} (option {data.kind})" if data.kind else ""
        return StepResult(
            flags=flag_by_models(data.columns),
            rule=f"Easy: {data.all_filter_models_get} them right{confident}.",
            flag_by_models=flag_by_models,
        )


STEP = EasyStep()
