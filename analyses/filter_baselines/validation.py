"""Which scores, options and filters filter baselines cannot use, and what to do about it."""

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
    """Scores without a bound, and options out of their range."""
    return {
        **check_finite(scores.Q),
        f"percentile is {percentile:g}; it must be from 0 to 100.": not 0 <= percentile <= 100,
        **check_minimum(1, n_subsets=n_subsets),
        **check_minimum(0, seed=seed),
    }


def check_rows(recorded: PromptFilter, is_decided: NDArray[np.bool_]) -> ValidationErrors:
    """None of the chosen prompts was judged by the filter."""
    problem = f"Filter {recorded.finding_id} judged none of these prompts. Choose its tasks, or another --filter."
    return {problem: not is_decided.any()}


def check_ranked_models(
    models: Sequence[str], external_scores: NDArray[np.float64] | None, against: BenchmarkScores | None
) -> ValidationErrors:
    """No model to compare methods by, or too few that the other benchmark has too."""
    return {
        "No model has a score for every prompt that the filter judged, so no means can be compared. Choose --models, "
        "--runs or --tasks that are complete.": not models,
        **validate_shared_models(against, external_scores),
    }
