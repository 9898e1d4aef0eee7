"""Which scores, options and vectors smart filtering cannot use, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.correlation_warnings import validate_shared_models
from analyses.presentation.validation import ValidationErrors
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.embeddings import StoredEmbeddings
from tracker.queries.performance import PerformanceMatrix


def check_scores(scores: PerformanceMatrix) -> ValidationErrors:
    """Scores other than right and wrong."""
    return {
        "Filtering asks which prompts were answered right and which wrong, that is for scores of 1 and 0; these are "
        "others. Choose a metric that says so with --metric.": not scores.is_binary,
        f"Under {scores.metric} smaller scores are better; filtering takes 1 as right. Choose another metric.": (
            not scores.higher_is_better
        ),
        "The scores are of runs without the question; filtering starts from full ones and looks at those beside them. "
        "Leave --condition out.": scores.condition != "full",
        "Filtering compares prompts; here is only one.": scores.n_prompts < 2,
    }


def check_shares(**shares: float) -> ValidationErrors:
    """Options that are no shares."""
    return {f"{name} is {share:g}; it must be from 0 to 1.": not 0 <= share <= 1 for name, share in shares.items()}


def check_confidence(confidence: float) -> ValidationErrors:
    """A bound that no probability can exceed."""
    return {
        f"confidence is {confidence:g}; it must be from 0 to below 1: a probability cannot exceed more.": (
            not 0 <= confidence < 1
        )
    }


def check_vectors(vectors: StoredEmbeddings) -> ValidationErrors:
    """There are no vectors to compare, and what to do without them."""
    return {f"{vectors.problem} Or leave that step out: --without-similar.": vectors.vectors is None}


def check_directions(E: NDArray[np.float32]) -> ValidationErrors:
    """Vectors that have no direction."""
    broken, zero = int((~np.isfinite(E).all(axis=1)).sum()), int((~E.any(axis=1)).sum())
    return {
        f"{broken:,} prompts have a vector that is not finite. Make the vectors again.": broken > 0,
        f"{zero:,} prompts have a vector of zeros, which has no direction and so no cosine. Make them again from text "
        "that is not empty, or choose tasks without them.": zero > 0,
    }


def check_ranked_models(
    models: Sequence[str], external_scores: NDArray[np.float64] | None, against: BenchmarkScores | None
) -> ValidationErrors:
    """No model to rank before and after, or too few to compare with another benchmark."""
    return {
        "No model has a score for every prompt, so none can be ranked before and after. Choose --tasks or --runs that "
        "are complete.": not models,
        **validate_shared_models(against, external_scores),
    }
