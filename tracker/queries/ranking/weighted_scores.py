"""Select the prompts of a performance matrix that have a weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.weights import PromptWeights
from tracker.statistics.standard_errors import effective_sample_size, scale_to_mean_one

NEGLIGIBLE = 1e-100
"""A weight below this share of the largest is treated as 0, because its square is too small for a float64."""


@dataclass(frozen=True, kw_only=True)
class WeightedScores:
    """The prompts with a positive weight, and their weights.

    Attributes:
        scores: their scores; every prompt has a positive weight.
        weights: ``(n_prompts,)`` float64, positive, mean 1; all exactly 1 without selected weights.
        weights_name: such as ``12:distance``; '' without selected weights.
        warnings: what was left out.
    """

    scores: PerformanceMatrix
    weights: NDArray[np.float64]
    weights_name: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_weighted(self) -> bool:
        """Whether weights differ."""
        return bool((self.weights != self.weights[0]).any())

    @property
    def n_effective(self) -> float:
        """Kish's effective number of prompts, (Σw)² / Σw²; the number of prompts with equal weights."""
        return effective_sample_size(self.weights)


def select_weighted(scores: PerformanceMatrix, weights: PromptWeights | None = None) -> WeightedScores:
    """Select the prompts of a matrix that have a weight; missing scores stay missing.

    A prompt without a stored weight, or with weight 0 or near 0 (`NEGLIGIBLE`), is left out with a warning.

    Args:
        scores: the matrix.
        weights: selected weights; None for equal weights.

    Raises:
        SelectionError: no prompt is left.
    """
    if weights is None:
        return WeightedScores(scores=scores, weights=np.ones(scores.n_prompts))
    w = weights.align(scores.prompt_ids, scores.tasks)
    unknown = np.isnan(w)
    nothing = w <= NEGLIGIBLE * w.max(initial=0.0, where=~unknown)
    kept = ~(unknown | nothing)
    if not kept.any():
        raise SelectionError(
            f"The weights {weights.name} give no weight to any selected prompt. Select the tasks for which they were "
            "computed."
        )
    warnings = [f"Prompts are weighted by {weights.name}."]
    if weights.stale:
        warnings.append(f"The weights are stale ({weights.stale}). Compute them again.")
    if unknown.any():
        warnings.append(
            f"{unknown.sum():,} of {scores.n_prompts:,} prompts have no weight in {weights.name} and are left out."
        )
    if nothing.any():
        least = "0" if not w[nothing].any() else "0, or near 0 beside the largest,"
        warnings.append(f"{nothing.sum():,} of {scores.n_prompts:,} prompts have weight {least} and are left out.")
    return WeightedScores(
        scores=scores.rows(kept),
        weights=scale_to_mean_one(w[kept]),
        weights_name=weights.name,
        warnings=tuple(warnings),
    )
