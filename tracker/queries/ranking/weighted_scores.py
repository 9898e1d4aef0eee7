"""Select the prompts of a performance matrix that have a weight."""

from __future__ import annotations

from dataclasses import dataclass, replace

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


def select_complete_weighted(scores: PerformanceMatrix, weights: PromptWeights | None = None) -> WeightedScores:
    """Select the prompts that have a weight and a score from every model that has any, with a warning about the others.

    Args:
        scores: the matrix.
        weights: selected weights; None for equal weights.

    Raises:
        SelectionError: no prompt is left; the message names models to leave out.
    """
    is_measured = ~np.isnan(scores.Q)
    has_scores, answered = np.asarray(is_measured.any(axis=1)), np.asarray(is_measured.any(axis=0))
    warnings = []
    if not answered.all():
        without = [name for name, has in zip(scores.models, answered.tolist(), strict=True) if not has]
        warnings.append(
            f"Models without a score here are left out: {', '.join(without[:5])}{' …' if len(without) > 5 else ''}."
        )
        scores = replace(
            scores,
            Q=scores.Q[:, answered],
            models=tuple(name for name, has in zip(scores.models, answered.tolist(), strict=True) if has),
            run_ids=scores.run_ids[answered],
        )
        is_measured = is_measured[:, answered]
    if not is_measured[has_scores].all():
        warnings.append(_incomplete(scores, is_measured[has_scores]))
        if not is_measured.all(axis=1).any():
            raise SelectionError(warnings[-1])
    chosen = select_weighted(scores.complete(), weights)
    kept = replace(chosen.scores, Q=np.ascontiguousarray(chosen.scores.Q))
    return replace(chosen, scores=kept, warnings=(*warnings, *chosen.warnings))


def _incomplete(scores: PerformanceMatrix, is_measured: NDArray[np.bool_]) -> str:
    """Count the prompts that some model lacks, and name the model with the most of them."""
    n, complete = len(is_measured), int(is_measured.all(axis=1).sum())
    lacks = (~is_measured).sum(axis=1)
    alone = (~is_measured[lacks == 1]).sum(axis=0)
    text = f"{n - complete:,} of {n:,} prompts lack a score from some model"
    text += ", so that none is left" if complete == 0 else " and are left out"
    if scores.n_models > 1 and alone.max(initial=0) > 0.05 * n:
        worst = int(alone.argmax())
        return f"{text}; {alone[worst]:,} of them only from {scores.models[worst]}: choose --models without it."
    few = sorted(zip((~is_measured).sum(axis=0).tolist(), scores.models, strict=True), reverse=True)[:3]
    missing = ", ".join(f"{name} {count:,}" for count, name in few if count)
    return f"{text}. Most are missing from: {missing}. To keep more prompts, choose --models without these."
