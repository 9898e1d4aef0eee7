"""Checks of scores, options and vectors of smart filtering."""

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
    """Check that the scores are right and wrong, of runs with the question."""
    return {
        "Filtering needs scores of 0 and 1; these are others. Select another metric with `--metric`.": (
            not scores.is_binary
        ),
        f"Filtering needs 1 for right answers, but lower {scores.metric} is better. Select another metric.": (
            not scores.higher_is_better
        ),
        "These are scores of answer-only runs; filtering needs full runs. Leave out `--condition`.": scores.condition
        != "full",
        "Filtering needs at least 2 prompts, here: 1. Select more tasks.": scores.n_prompts < 2,
    }


def check_shares(**shares: float) -> ValidationErrors:
    """Check that options are shares."""
    return {f"{name} is {share:g}; it must be from 0 to 1.": not 0 <= share <= 1 for name, share in shares.items()}


def check_confidence(confidence: float) -> ValidationErrors:
    """Check that probabilities can exceed the option."""
    return {f"confidence is {confidence:g}; it must be at least 0 and below 1.": (not 0 <= confidence < 1)}


def check_vectors(vectors: StoredEmbeddings) -> ValidationErrors:
    """Check that there are vectors to compare."""
    return {f"{vectors.problem} Or skip the step: --without-similar.": vectors.vectors is None}


def check_directions(E: NDArray[np.float32]) -> ValidationErrors:
    """Check that all vectors have a direction."""
    broken, zero = int((~np.isfinite(E).all(axis=1)).sum()), int((~E.any(axis=1)).sum())
    return {
        f"{broken:,} prompts have a vector that is not finite. Run `suffrage embed` again.": broken > 0,
        f"{zero:,} prompts have a vector of zeros, which has no cosine. Embed texts that are not empty, or select "
        "tasks without them.": zero > 0,
    }


def check_ranked_models(
    models: Sequence[str], external_scores: NDArray[np.float64] | None, against: BenchmarkScores | None
) -> ValidationErrors:
    """Check that models can be ranked before and after, and compared with another benchmark."""
    return {
        "No model has a score for every prompt, so none can be ranked. Select complete runs with `--tasks` or "
        "`--runs`.": not models,
        **validate_shared_models(against, external_scores),
    }
