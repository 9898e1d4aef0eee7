"""Texts on what a filter does to ranks, agreement and correlations of models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analyses.numerics.filtering.effects.correlation_change import CorrelationChange
from analyses.numerics.filtering.effects.filter_effects import FilterEffects
from analyses.numerics.filtering.effects.ranking_change import RankingChange
from analyses.numerics.filtering.effects.spread import summarize_spread
from analyses.numerics.filtering.effects.subset_error import SubsetError
from tracker.statistics.ranking import TIE_TOLERANCE

SAME = {"answers": "give the same answer", "right or wrong": "are both right or both wrong"}
"""What two models do that agree, by what is compared."""


def describe_effects(effects: FilterEffects, *, agreement_of: str, against: str) -> list[str]:
    """Describe the effects of a filter on models, the most important first; undefined ones are left out.

    Args:
        effects: of a filter.
        agreement_of: ``answers``, or ``right or wrong``.
        against: the other benchmark; '' without one.
    """
    if np.isnan(effects.ranking.score_after).any():
        return []
    return [
        _describe_ranks(effects.ranking),
        *_describe_agreement(effects, agreement_of),
        *_describe_correlations(effects.changes, against),
        *_describe_error(effects.error),
    ]


def _describe_ranks(ranking: RankingChange) -> str:
    if len(ranking.rank_before) < 2:
        return "Only one model has a score for every prompt, so there is no ranking."
    if np.isnan(ranking.tau):
        return "All ranked models are tied, before or after."
    without = (
        ""
        if np.isnan(ranking.tau_without_filter_models)
        else f", {ranking.tau_without_filter_models:.3f} without the filter models"
    )
    return f"Tau-b of the rankings before and after: {ranking.tau:.3f}{without}."


def _describe_agreement(effects: FilterEffects, agreement_of: str) -> list[str]:
    before, after, drawn = effects.before, effects.after, summarize_spread(effects.random.share)
    if np.isnan(before.mean_share) or np.isnan(after.mean_share):
        return []
    chance = f"; on random subsets {drawn.mean:.1%}" if drawn.n else ""
    kappas = [f"{agreement.mean_kappa:.3f}" for agreement in (before, after) if not np.isnan(agreement.mean_kappa)]
    kappa = f" (kappa {' and '.join(kappas)})" if len(kappas) == 2 else ""
    return [
        f"Two models {SAME[agreement_of]} on {before.mean_share:.1%} of all prompts and {after.mean_share:.1%} of "
        f"those kept{kappa}{chance}."
    ]


def _describe_correlations(changes: Mapping[str, CorrelationChange], against: str) -> list[str]:
    if not changes:
        return []
    n_models = next(iter(changes.values())).n_models
    texts = " ".join(f"{name.capitalize()}: {_describe_change(change)}." for name, change in changes.items())
    return [f"Correlation with {against} over {n_models} models. {texts}"]


def _describe_change(change: CorrelationChange) -> str:
    if np.isnan(change.change):
        return "undefined"
    values = f"{change.before:.3f} before, {change.after:.3f} after"
    if max(abs(number) for number in (change.change, change.low, change.high)) <= TIE_TOLERANCE:
        return f"{values} (no change in 95% of draws of the models)"
    has_both = change.low <= TIE_TOLERANCE and change.high >= -TIE_TOLERANCE
    verdict = "may be noise" if has_both else "does not depend on a few models"
    return (
        f"{values} ({_signed(change.change)}; 95% of draws of the models {_signed(change.low)} to "
        f"{_signed(change.high)}: {verdict})"
    )


def _signed(value: float) -> str:
    """Format with a sign, unless the rounded value is 0."""
    return f"{value:+.3f}" if round(value, 3) else "0"


def _describe_error(error: SubsetError) -> list[str]:
    if error.reason:
        return []
    chosen, random = summarize_spread(error.chosen.fitted), summarize_spread(error.random.fitted)
    tau, random_tau = summarize_spread(error.chosen.tau), summarize_spread(error.random.tau)
    if not (chosen.n and random.n and tau.n):
        return []
    return [
        f"A filter by half of the models estimates the full scores of the other half with a mean error of "
        f"{chosen.mean:.4f} (random subsets: {random.mean:.4f}). Tau-b of their rankings: {tau.mean:.3f} "
        f"({random_tau.mean:.3f}); {error.n_kept.mean():,.0f} prompts kept on average."
    ]
