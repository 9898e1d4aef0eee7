"""How well a kept subset predicts the scores of models that did not take part in its choice.

A filter that looks at models' answers fits these models. So the models are split in two at random, many times: the one
half chooses the prompts and fits a line of the full score on the subset's score; both are evaluated on the other half.
Every split also has a random subset of the same size, with a line from the same models.

Splits share their models: quantiles over splits say how much the split matters, and are no confidence intervals. The
line is fitted on the very models whose answers chose the subset. They lose just the prompts that they got right, the
others only part of these, so the line can be worse than none; that shows in the error of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.ranking_change import mean_scores
from tracker.statistics.ranking import kendall_tau_b, mean_ranks
from tracker.statistics.rng_streams import SPLITS, generator

Floats = NDArray[np.float64]

MIN_MODELS = 8
"""Four models choose and have a line with two degrees of freedom to spare, four are scored; fewer are not split."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsetErrors:
    """How far the held-out models' scores on a subset are from those on all prompts, split by split.

    Attributes:
        raw: ``(n_splits,)`` mean absolute difference of the two scores, in units of the score.
        fitted: ``(n_splits,)`` mean absolute difference of the full score from what the other half's line makes of the
            subset's score; NaN where that half's scores on the subset are all tied, so that there is no line.
        tau: ``(n_splits,)`` Kendall's tau-b of the two rankings; NaN where either ties all models.

    All are NaN where the subset is empty.
    """

    raw: Floats
    fitted: Floats
    tau: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsetError:
    """The filter's subset and a random one of the same size, evaluated on the models that did not choose.

    Attributes:
        n_models: of all.
        n_choosing: models of the half that chooses, n_models // 2; the rest are scored.
        n_kept: ``(n_splits,)`` int64, prompts of the subset.
        chosen, random: the two subsets' errors; empty if there is a reason.
        reason: why there are none; empty if there are.
    """

    n_models: int
    n_choosing: int
    n_kept: NDArray[np.int64]
    chosen: SubsetErrors
    random: SubsetErrors
    reason: str = ""


def measure_subset_error(
    Q: Floats,
    choose: Callable[[NDArray[np.intp]], NDArray[np.bool_]],
    *,
    n_splits: int = 100,
    seed: int,
    higher_is_better: bool = True,
) -> SubsetError:
    """Split the models, have one half choose, and judge the subset by the other.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores, none missing.
        choose: from ascending columns of Q, the models that may be looked at, to ``(n_prompts,)`` whether the prompt is
            kept.
        n_splits: random halves.
        seed: the same seed gives the same splits and subsets.
        higher_is_better: whether the largest score is the best.
    """
    n, m = Q.shape
    if m < MIN_MODELS:
        nothing = SubsetErrors(raw=np.empty(0), fitted=np.empty(0), tau=np.empty(0))
        reason = f"models are split in two from {MIN_MODELS} on; here are {m}"
        return SubsetError(
            n_models=m,
            n_choosing=m // 2,
            n_kept=np.empty(0, np.int64),
            chosen=nothing,
            random=nothing,
            reason=reason,
        )
    full = mean_scores(Q, np.ones(n, np.bool_))
    n_kept, errors = np.empty(n_splits, np.int64), np.empty((2, 3, n_splits))
    for split in range(n_splits):
        choosing = np.zeros(m, np.bool_)
        choosing[generator(seed, SPLITS, split).permutation(m)[: m // 2]] = True
        kept = choose(np.flatnonzero(choosing))
        n_kept[split] = kept.sum()
        drawn = np.zeros(n, np.bool_)
        drawn[generator(seed, SPLITS, split, 1).choice(n, int(n_kept[split]), replace=False)] = True
        for place, subset in enumerate((kept, drawn)):
            errors[place, :, split] = _errors(full, mean_scores(Q, subset), choosing, higher_is_better)
    chosen, random = (SubsetErrors(raw=raw, fitted=fitted, tau=tau) for raw, fitted, tau in errors)
    return SubsetError(n_models=m, n_choosing=m // 2, n_kept=n_kept, chosen=chosen, random=random)


def _errors(
    full: Floats, some: Floats, choosing: NDArray[np.bool_], higher_is_better: bool
) -> tuple[float, float, float]:
    """Raw error, fitted error and tau-b of the models that did not choose."""
    scored = ~choosing
    if np.isnan(some).any():
        return (float("nan"),) * 3
    raw = float(np.abs(full[scored] - some[scored]).mean())
    fitted = float(np.abs(full[scored] - _line(some[choosing], full[choosing], some[scored])).mean())
    ranks = (mean_ranks(scores[scored], higher_is_better=higher_is_better) for scores in (some, full))
    return raw, fitted, kendall_tau_b(*ranks)


def _line(x: Floats, y: Floats, at: Floats) -> Floats:
    """What the least-squares line of ``y`` on ``x`` gives elsewhere; NaN if all ``x`` are tied."""
    if np.ptp(mean_ranks(x)) == 0:
        return np.full(len(at), np.nan)
    centred = x - x.mean()
    slope = (centred * y).sum() / (centred * centred).sum()
    return np.asarray(y.mean() + slope * (at - x.mean()))
