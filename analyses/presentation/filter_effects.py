"""What leaving prompts out does to ranks, agreement and correlations of models, in plain words."""

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
"""What two models do that agree, by what it is that they agree in."""


def describe_effects(effects: FilterEffects, *, agreement_of: str, against: str) -> list[str]:
    """A sentence or two of each effect; what is not defined is left out or said to be so.

    Args:
        effects: of a filter.
        agreement_of: ``answers``, or ``right or wrong``.
        against: the other benchmark; '' where there is none.
    """
    if np.isnan(effects.ranking.score_after).any():
        return ["Nothing is left to rank models by."]
    return [
        _ranks(effects.ranking),
        _agreement(effects, agreement_of),
        *_correlations(effects.changes, against),
        *_error(effects.error),
    ]


def _ranks(ranking: RankingChange) -> str:
    n = len(ranking.rank_before)
    if n < 2:
        return "Only one model has a score for every prompt, so there is no ranking."
    moved = int((ranking.rank_before != ranking.rank_after).sum())
    changed = (
        f"{moved} of {n} ranked models change their rank" if moved else f"None of {n} ranked models changes its rank"
    )
    if np.isnan(ranking.tau):
        return f"{changed}; before or after, all are tied."
    without = (
        ""
        if np.isnan(ranking.tau_without_filter_models)
        else f", and {ranking.tau_without_filter_models:.3f} of those that did not filter"
    )
    return f"{changed}: tau-b of the rankings before and after is {ranking.tau:.3f}{without}."


def _agreement(effects: FilterEffects, of: str) -> str:
    before, after, drawn = effects.before, effects.after, summarize_spread(effects.random.share)
    if np.isnan(before.mean_share) or np.isnan(after.mean_share):
        return "Agreement between models is not defined."
    chance = f"; on random subsets of that size {drawn.mean:.1%}" if drawn.n else ""
    kappas = [f"{measured.mean_kappa:.3f}" for measured in (before, after) if not np.isnan(measured.mean_kappa)]
    kappa = f" (kappa {' and '.join(kappas)})" if len(kappas) == 2 else ""
    return (
        f"Two models {SAME[of]} on {before.mean_share:.1%} of all prompts and on {after.mean_share:.1%} of those that "
        f"stay{chance}{kappa}."
    )


def _correlations(changes: Mapping[str, CorrelationChange], against: str) -> list[str]:
    if not changes:
        return []
    n_models = next(iter(changes.values())).n_models
    texts = "; ".join(f"{name.capitalize()}'s {_change(change)}" for name, change in changes.items())
    return [f"Correlation with {against} over {n_models} models, before and after: {texts}."]


def _change(change: CorrelationChange) -> str:
    if np.isnan(change.change):
        return "is not defined"
    values = f"{change.before:.3f} and {change.after:.3f}"
    if max(abs(number) for number in (change.change, change.low, change.high)) <= TIE_TOLERANCE:
        return f"{values}, no change, nor any in 95 % of draws of the models"
    has_both = change.low <= TIE_TOLERANCE and change.high >= -TIE_TOLERANCE
    verdict = "may be noise" if has_both else "does not hang on a few of these models"
    return (
        f"{values}, a change of {_signed(change.change)} (in 95 % of draws of the models from {_signed(change.low)} to "
        f"{_signed(change.high)}, so it {verdict})"
    )


def _signed(value: float) -> str:
    """With its sign, unless it is rounded to nothing."""
    return f"{value:+.3f}" if round(value, 3) else "0"


def _error(error: SubsetError) -> list[str]:
    if error.reason:
        return []
    chosen, random = summarize_spread(error.chosen.fitted), summarize_spread(error.random.fitted)
    tau, random_tau = summarize_spread(error.chosen.tau), summarize_spread(error.random.tau)
    if not (chosen.n and random.n and tau.n):
        return []
    return [
        f"If one half of the models filters and the other half is judged, what stays ({error.n_kept.mean():,.0f} "
        f"prompts on average) foretells the full score to {chosen.mean:.4f} on average, and the ranking with a tau-b "
        f"of {tau.mean:.3f}; a random subset of that size to {random.mean:.4f}, and with {random_tau.mean:.3f}."
    ]
