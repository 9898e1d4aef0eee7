"""Checks and warnings of a correlation with another benchmark, shared by every analysis that makes one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.correlation_change import MIN_MODELS
from analyses.presentation.validation import ValidationErrors
from tracker.queries.benchmark_scores import BenchmarkScores

MIN_SHARED_MODELS = 10
"""Models in common below which a correlation is next to nothing, which is said."""
MIN_MODELS_FOR_DRAWS = 16
"""Models from which on draws of them cover the change of a correlation about as often as they should, in simulations;
Spearman's in 26 to 90 of a hundred cases with 5 to 10."""


def validate_shared_models(
    against: BenchmarkScores | None, external_scores: NDArray[np.float64] | None
) -> ValidationErrors:
    """The other benchmark knows too few of the models for any correlation to mean something.

    Args:
        against: the other benchmark; None where none was named.
        external_scores: ``(n_models,)`` its scores of the ranked models, NaN = none; None where none was named.
    """
    if against is None or external_scores is None:
        return {}
    n_shared = int((~np.isnan(external_scores)).sum())
    return {
        f"{against.benchmark} has scores of {n_shared} of the {len(external_scores)} models that are ranked here; at "
        f"least {MIN_MODELS} are needed. If it calls them by other names, say so in a file with a column alias: "
        "suffrage models import FILE.": n_shared < MIN_MODELS
    }


def warn_of_few_models(n_models: int) -> list[str]:
    """What to think of a correlation over so many models; nothing where they are enough."""
    return [f"A correlation over {n_models} models says next to nothing."] if n_models < MIN_SHARED_MODELS else []


def warn_of_narrow_draws(n_models: int) -> list[str]:
    """What to think of draws of so many models; nothing where they are enough."""
    if n_models >= MIN_MODELS_FOR_DRAWS:
        return []
    return [
        f"Draws of {n_models} models vary less than other models would: the range of a change is too narrow, "
        "that of Spearman's most of all."
    ]
