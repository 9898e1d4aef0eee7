"""The prompts of a performance matrix that have a weight, with their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.weights import PromptWeights
from tracker.statistics.standard_errors import effective_sample_size, scale_to_mean_one

NEGLIGIBLE = 1e-100
"""A weight below this share of the largest counts as 0: its square, and soon itself, is none a number can hold."""


@dataclass(frozen=True, kw_only=True)
class WeightedScores:
    """The prompts that count, with their weights.

    Attributes:
        scores: their scores; every prompt has a positive weight.
        weights: ``(n_prompts,)`` float64, positive, mean 1; all exactly 1 where none were chosen.
        weights_name: such as ``12:distance``; '' where none were chosen.
        warnings: who was left out, in words.
    """

    scores: PerformanceMatrix
    weights: NDArray[np.float64]
    weights_name: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_weighted(self) -> bool:
        """Whether prompts do not all count the same."""
        return bool((self.weights != self.weights[0]).any())

    @property
    def n_effective(self) -> float:
        """Kish's effective number of prompts, (Σw)² / Σw²; the number of prompts where all count the same."""
        return effective_sample_size(self.weights)


def select_weighted(scores: PerformanceMatrix, weights: PromptWeights | None = None) -> WeightedScores:
    """The prompts of a matrix that have a weight; missing scores stay missing.

    A prompt without a stored weight, or with weight 0 or next to 0 (`NEGLIGIBLE`), is left out, with a note.

    Args:
        scores: the matrix.
        weights: as chosen; None weighs all the same.

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
            f"The weights {weights.name} give no weight to any prompt chosen here. Choose the tasks they were made of."
        )
    warnings = [f"Prompts are weighted by {weights.name}."]
    if weights.stale:
        warnings.append(f"They were made of scores that are no longer the latest ({weights.stale}): make them anew.")
    if unknown.any():
        warnings.append(
            f"{unknown.sum():,} of {scores.n_prompts:,} prompts have no weight in {weights.name} and are left out."
        )
    if nothing.any():
        least = "0" if not w[nothing].any() else "0, or next to 0 beside the largest,"
        warnings.append(f"{nothing.sum():,} of {scores.n_prompts:,} prompts have weight {least} and are left out.")
    return WeightedScores(
        scores=scores.rows(kept),
        weights=scale_to_mean_one(w[kept]),
        weights_name=weights.name,
        warnings=tuple(warnings),
    )


def select_complete_weighted(scores: PerformanceMatrix, weights: PromptWeights | None = None) -> WeightedScores:
    """The prompts that have a weight and a score from every model that has any; the rest is left out, with a note.

    Args:
        scores: the matrix.
        weights: as chosen; None weighs all the same.

    Raises:
        SelectionError: no prompt is left; says which models to leave out.
    """
    is_measured = ~np.isnan(scores.Q)
    has_scores, answered = np.asarray(is_measured.any(axis=1)), np.asarray(is_measured.any(axis=0))
    warnings = []
    if not answered.all():
        without = [name for name, has in zip(scores.models, answered.tolist(), strict=True) if not has]
        warnings.append(f"Left out, having no score here: {', '.join(without[:5])}{' …' if len(without) > 5 else ''}.")
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
    """How many prompts some model lacks, and the model without which most of them would be complete."""
    n, complete = len(is_measured), int(is_measured.all(axis=1).sum())
    lacks = (~is_measured).sum(axis=1)
    alone = (~is_measured[lacks == 1]).sum(axis=0)
    text = f"{n - complete:,} of {n:,} prompts lack a score from some model"
    text += ", so that none is left" if complete == 0 else " and are left out"
    if scores.n_models > 1 and alone.max(initial=0) > 0.05 * n:
        worst = int(alone.argmax())
        return f"{text}; {scores.models[worst]} alone is behind {alone[worst]:,}: choose --models without it."
    few = sorted(zip((~is_measured).sum(axis=0).tolist(), scores.models, strict=True), reverse=True)[:3]
    missing = ", ".join(f"{name} {count:,}" for count, name in few if count)
    return f"{text}. Most are missing from: {missing}. To keep more prompts, choose --models without these."
