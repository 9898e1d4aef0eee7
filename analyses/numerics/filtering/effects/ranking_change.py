"""What a filter does to every model's score and rank.

The models whose right answers decided what is easy lose exactly those answers; so the agreement of the two rankings is
given with and without them.

Source: Gupta et al. 2024, tables 2, 3 and 10 to 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import kendall_tau_b, mean_ranks

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankingChange:
    """Scores and ranks on all prompts, and on those that a filter keeps.

    Attributes:
        score_before, score_after: ``(n_models,)`` means; NaN after if no prompt is kept.
        rank_before, rank_after: ``(n_models,)`` as of `mean_ranks`, 1 is best; NaN where the scores are.
        tau: Kendall's tau-b of the two rankings of all models; NaN with fewer than 2, and where either ties them all.
        tau_without_filter_models: the same of the models that are not filter models.
        n_without_filter_models: how many these are.
    """

    score_before: Floats
    score_after: Floats
    rank_before: Floats
    rank_after: Floats
    tau: float
    tau_without_filter_models: float
    n_without_filter_models: int


def compare_rankings(
    Q: Floats,
    kept: NDArray[np.bool_],
    is_filter_model: NDArray[np.bool_],
    *,
    higher_is_better: bool = True,
) -> RankingChange:
    """Scores and ranks before and after a filter.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores, none missing: means over different prompts would not be comparable.
        kept: ``(n_prompts,)`` whether the filter keeps the prompt.
        is_filter_model: ``(n_models,)`` whether the filter looked at the model's answers.
        higher_is_better: whether the largest score is the best.
    """
    before, after = mean_scores(Q, np.ones(len(Q), np.bool_)), mean_scores(Q, kept)
    first, second = (_ranks(scores, higher_is_better) for scores in (before, after))
    did_not_filter = ~is_filter_model
    return RankingChange(
        score_before=before,
        score_after=after,
        rank_before=first,
        rank_after=second,
        tau=_tau(first, second),
        tau_without_filter_models=_tau(first[did_not_filter], second[did_not_filter]),
        n_without_filter_models=int(did_not_filter.sum()),
    )


def mean_scores(Q: Floats, kept: NDArray[np.bool_]) -> Floats:
    """``(n_models,)`` each model's mean over the kept prompts; NaN if there is none.

    Args:
        Q: ``(n_prompts, n_models)`` finite.
        kept: ``(n_prompts,)``.
    """
    return Q[kept].mean(axis=0) if kept.any() else np.full(Q.shape[1], np.nan)


def _ranks(scores: Floats, higher_is_better: bool) -> Floats:
    return scores if np.isnan(scores).any() else mean_ranks(scores, higher_is_better=higher_is_better)


def _tau(a: Floats, b: Floats) -> float:
    return float("nan") if np.isnan(a).any() or np.isnan(b).any() else kendall_tau_b(a, b)
