"""Checks and warnings of correlations with another benchmark."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.correlation_change import MIN_MODELS
from analyses.presentation.validation import ValidationErrors
from tracker.queries.benchmark_scores import BenchmarkScores

MIN_SHARED_MODELS = 10
"""Shared models below which a warning calls a correlation unreliable."""
MIN_MODELS_FOR_DRAWS = 16
"""Models from which on intervals of draws cover the change of a correlation about as often as they should.

With 5 to 10 models, those of Spearman's correlation cover it in 26% to 90% of simulations."""


def validate_shared_models(
    against: BenchmarkScores | None, external_scores: NDArray[np.float64] | None
) -> ValidationErrors:
    """Check that the other benchmark has scores of enough ranked models.

    Args:
        against: the other benchmark; None without one.
        external_scores: ``(n_models,)`` its scores of the ranked models, NaN = missing; None without another benchmark.
    """
    if against is None or external_scores is None:
        return {}
    n_shared = int((~np.isnan(external_scores)).sum())
    problem = (
        f"{against.benchmark} has scores of {n_shared} of the {len(external_scores)} ranked models; at least "
        f"{MIN_MODELS} are needed. If model names differ, import a file with a column alias: "
        "`suffrage models import FILE`."
    )
    return {problem: n_shared < MIN_MODELS}


def warn_of_few_models(n_models: int) -> list[str]:
    """Warn about a correlation over too few models."""
    return [f"A correlation over {n_models} models is unreliable."] if n_models < MIN_SHARED_MODELS else []


def warn_of_narrow_draws(n_models: int) -> list[str]:
    """Warn about an interval from draws of too few models."""
    if n_models >= MIN_MODELS_FOR_DRAWS:
        return []
    return [
        f"The intervals of the correlation changes are too narrow, that of Spearman's most: they come from draws of "
        f"only {n_models} models."
    ]
