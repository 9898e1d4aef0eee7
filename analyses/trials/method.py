"""Variance between and within prompts, pass@k and pass^k: the finding, and how it is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.queries.clusters import Clusters
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.recording.finding import Finding, Metric, finite_or_undefined
from tracker.statistics.grouping import Grouping
from tracker.statistics.intervals.means import Bounds, estimate_means, united_intervals
from tracker.statistics.planning.completions import largest_trial_variance, variance_range
from tracker.statistics.planning.trials import TrialVariance, pass_at_k, pass_hat_k, split_variance

MEASURES = ("pass@k", "pass^k")
BEYOND = "it is too large for a float64 number"
SINGLE = "no prompt has two trials"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanInterval:
    """A mean over prompts.

    Attributes:
        mean: in the unit of the scores.
        stderr: clustered, if prompts have clusters; NaN below two prompts or clusters.
        low, high: ends of the interval, within the bounds of the scores; NaN without one. United over all values of
            missing scores under ``bounds``.
    """

    mean: float
    stderr: float
    low: float
    high: float

    def scaled(self, exponent: int) -> MeanInterval:
        """Return the numbers in the unit of scores times 2**exponent; infinite beyond float64."""
        with np.errstate(over="ignore"):
            mean, stderr, low, high = np.ldexp([self.mean, self.stderr, self.low, self.high], exponent).tolist()
        return MeanInterval(mean=mean, stderr=stderr, low=low, high=high)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelTrials:
    """One model's trials.

    Attributes:
        model: its name.
        fewest, most: trials of a prompt.
        n_trials: mean number of trials of a prompt.
        mean: its mean, with the interval.
        variance: its parts.
        sufficient: trials whose error is within the tolerance of that of infinitely many; NaN if unknown.
        within, between: smallest and largest value of the parts of the variance that missing scores allow, in squared
            units of the scores; equal without missing scores.
    """

    model: str
    fewest: int
    most: int
    n_trials: float
    mean: MeanInterval
    variance: TrialVariance
    sufficient: float
    within: tuple[float, float]
    between: tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class PassRate:
    """pass@k or pass^k of one model.

    Attributes:
        model: its name.
        measure: one of `MEASURES`.
        k: trials drawn.
        n: prompts with at least k trials.
        estimate: its mean over these prompts, with the interval.
    """

    model: str
    measure: str
    k: int
    n: int
    estimate: MeanInterval


@dataclass(frozen=True, kw_only=True)
class Trials(Finding):
    """What several trials of the prompts show.

    Attributes:
        models: each model's trials, the best mean first.
        rates: pass@k and pass^k, by measure, k and model, the best first; empty if scores do not pass or fail.
        n_prompts: prompts with a score.
        tolerance: of the number of trials that suffices.
        level: of the intervals.
    """

    models: tuple[ModelTrials, ...]
    rates: tuple[PassRate, ...]
    n_prompts: int
    tolerance: float
    level: float

    @property
    def repeated(self) -> tuple[ModelTrials, ...]:
        """The models with several trials of a prompt."""
        return tuple(item for item in self.models if item.most > 1)

    def median(self, values: Sequence[float]) -> float:
        """Return the median of the known values; NaN without any."""
        known = [value for value in values if not math.isnan(value)]
        return float(np.median(known)) if known else math.nan

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then medians over the models with several trials."""
        variances = [item.variance for item in self.repeated]
        flat = "no score varies" if self.repeated else SINGLE
        sufficient = self.median([item.sufficient for item in self.repeated])
        return {
            "n_models": float(len(self.models)),
            "n_repeated": float(len(self.repeated)),
            "n_prompts": float(self.n_prompts),
            "max_trials": float(max(item.most for item in self.models)),
            "variance.within": self._median_variance([part.in_units(part.within, 2) for part in variances], SINGLE),
            "variance.between": self._median_variance([part.in_units(part.between, 2) for part in variances], flat),
            "trial_share": finite_or_undefined(self.median([part.trial_share for part in variances]), flat),
            "sufficient_trials": finite_or_undefined(
                sufficient, "prompts do not differ beyond their trials" if math.isinf(sufficient) else flat
            ),
        }

    def _median_variance(self, values: Sequence[float], reason: str) -> Metric:
        median = self.median(values)
        return finite_or_undefined(median, BEYOND if math.isinf(median) else reason)

    def list_k(self) -> list[int]:
        """Return each k with a rate."""
        return sorted({rate.k for rate in self.rates})

    @property
    def shared_k(self) -> int:
        """Return the largest k above 1 that all models with several trials have rates for; 0 without any."""
        for k in reversed(self.list_k()):
            if k > 1 and len({rate.model for rate in self.rates if rate.k == k}) == len(self.repeated):
                return k
        return 0

    def leaders(self, measure: str, k: int) -> list[str]:
        """Return the models with the best pass@k or pass^k; empty without any."""
        rates = [rate for rate in self.rates if rate.measure == measure and rate.k == k]
        best = max((rate.estimate.mean for rate in rates), default=math.nan)
        return [rate.model for rate in rates if rate.estimate.mean == best]


def analyze_trials(
    trials: TrialScores, clusters: Clusters, *, k: Sequence[int], tolerance: float, level: float
) -> Trials:
    """Split the variance of each model's scores, and estimate pass@k and pass^k.

    Args:
        trials: the scores.
        clusters: which prompts depend on each other.
        k: numbers of trials of pass@k; empty for the powers of two up to the most trials.
        tolerance: of the number of trials that suffices.
        level: of the intervals.
    """
    exponent, trials = trials.exponent, trials.scaled()
    scores = trials.scores
    groups = clusters.group(scores.prompt_ids)
    ends = [scores.worst, scores.best] if scores.higher_is_better else [scores.best, scores.worst]
    low, high = (None if end is None else math.ldexp(end, -exponent) for end in ends)
    bounds: Bounds = (low, high)
    sign = 1.0 if scores.higher_is_better else -1.0
    models, rates = [], []
    most = int(trials.count.max())
    chosen = sorted(set(k)) or [2**power for power in range(most.bit_length())]
    is_open = scores.missing == "bounds"
    for column, name in enumerate(scores.models):
        count = trials.count[:, column]
        seen = count > 0
        measured = _estimate(scores.Q[seen, column], groups.rows(seen), bounds, level)
        variance = split_variance(scores.Q[seen, column], trials.squares[seen, column], count[seen], measured.stderr)
        variance = replace(variance, exponent=exponent)
        mean = measured if seen.all() else _estimate(scores.for_errors[:, column], groups, bounds, level)
        within, between = _variance_ranges(trials, column, variance, bounds if is_open else None)
        models.append(
            ModelTrials(
                model=name,
                fewest=int(count[seen].min()),
                most=int(count.max()),
                n_trials=float(count[seen].mean()),
                mean=mean.scaled(exponent),
                variance=variance,
                sufficient=variance.sufficient_trials(tolerance),
                within=within,
                between=between,
            )
        )
        if trials.is_unit and scores.higher_is_better and count.max() > 1:
            rates += _rates(name, trials.passed[:, column], count, groups, chosen, level, is_open=is_open)
    order = {measure: place for place, measure in enumerate(MEASURES)}
    return Trials(
        models=tuple(sorted(models, key=lambda item: -sign * item.mean.mean)),
        rates=tuple(sorted(rates, key=lambda rate: (order[rate.measure], rate.k, -rate.estimate.mean))),
        n_prompts=scores.n_prompts,
        tolerance=tolerance,
        level=level,
    )


def _variance_ranges(
    trials: TrialScores, column: int, variance: TrialVariance, bounds: Bounds | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the smallest and the largest part of the variance within prompts, and between them.

    Args:
        trials: the scores, over 2**exponent.
        column: of the model.
        variance: of the measured prompts.
        bounds: of the scores; None if missing scores have no range.
    """
    count, units = trials.count[:, column], variance.in_units
    seen, known = count > 0, (variance.within, variance.between)
    n_missing, most = int((~seen).sum()), int(count.max())
    low, high = bounds or (None, None)
    if not n_missing or low is None or high is None or not variance.within >= 0:
        return ((units(known[0], 2),) * 2, (units(known[1], 2),) * 2)
    n_repeated = int((count >= 2).sum())
    total = variance.within * n_repeated
    within = [
        (total + n_missing * extreme) / (n_repeated + n_missing)
        for extreme in (0.0, largest_trial_variance(most, (low, high)))
    ]
    per_trial = (variance.per_trial * seen.sum() + n_missing / most) / len(count)
    smallest, largest = variance_range(trials.scores.Q[seen, column], n_missing, (low, high))
    between = max(smallest - within[1] * per_trial, 0.0), max(largest - within[0] * per_trial, 0.0)
    return (units(within[0], 2), units(within[1], 2)), (units(between[0], 2), units(between[1], 2))


def _rates(
    name: str,
    passed: NDArray[np.int64],
    count: NDArray[np.int64],
    groups: Grouping,
    chosen: Sequence[int],
    level: float,
    *,
    is_open: bool,
) -> list[PassRate]:
    """Return the rates of one model.

    Args:
        name: of the model.
        passed, count: ``(n,)`` trials that pass, and trials; 0 for a prompt without a score.
        groups: clusters of the prompts.
        chosen: numbers of trials.
        level: of the intervals.
        is_open: whether a missing prompt can have any rate.
    """
    rates = []
    for k in chosen:
        kept = count >= k
        if not kept.any():
            continue
        rows = kept | (count == 0) if is_open else kept
        for measure, formula in zip(MEASURES, (pass_at_k, pass_hat_k), strict=True):
            estimate = _estimate(formula(passed[rows], count[rows], k), groups.rows(rows), (0.0, 1.0), level)
            rates.append(PassRate(model=name, measure=measure, k=k, n=int(kept.sum()), estimate=estimate))
    return rates


def _estimate(values: NDArray[np.float64], groups: Grouping, bounds: Bounds, level: float) -> MeanInterval:
    """Return the mean of some values; the interval unites all values within the bounds in place of NaN."""
    units = groups.without_clusters() if groups.problem else groups
    result = estimate_means(values[:, None], units, None, bounds, level)
    low, high = result.low, result.high
    if np.isnan(values).any():
        low, high = united_intervals(values[:, None], units, None, bounds, level)
    return MeanInterval(
        mean=float(result.mean[0]), stderr=float(result.stderr_design[0]), low=float(low[0]), high=float(high[0])
    )
