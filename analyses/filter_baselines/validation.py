"""Checks of scores, options and filters of filter baselines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.correlation_warnings import validate_shared_models
from analyses.presentation.validation import ValidationErrors, check_minimum
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.score_validation import check_finite


def check_options(scores: PerformanceMatrix, *, n_subsets: int, percentile: float, seed: int) -> ValidationErrors:
    """Check that scores are finite and options in range."""
    return {
        **check_finite(scores.Q),
        f"percentile is {percentile:g}; it must be from 0 to 100.": not 0 <= percentile <= 100,
        **check_minimum(1, n_subsets=n_subsets),
        **check_minimum(0, seed=seed),
    }


def check_rows(recorded: PromptFilter, is_decided: NDArray[np.bool_]) -> ValidationErrors:
    """Check that the filter has a decision on some selected prompt."""
    problem = (
        f"Filter {recorded.finding_id} has no decision on the selected prompts. Select its tasks, or another --filter."
    )
    return {problem: not is_decided.any()}


def check_ranked_models(
    models: Sequence[str], external_scores: NDArray[np.float64] | None, against: BenchmarkScores | None
) -> ValidationErrors:
    """Check that models can be ranked and compared with another benchmark."""
    return {
        "No model has a score for every prompt of the filter, so none can be ranked. Select complete runs with "
        "`--models`, `--runs` or `--tasks`.": not models,
        **validate_shared_models(against, external_scores),
    }
