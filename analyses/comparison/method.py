"""Two models compared on the prompts both were measured on: the finding, and how it is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.comparison.shared_scores import SharedScores
from analyses.numerics.comparing.completions import ComparedCompletions, compare_completions, unite_equivalence
from analyses.numerics.comparing.equivalence import Equivalence, score_equivalence, t_equivalence
from analyses.numerics.comparing.paired_comparison import PairedComparison, compare_models
from analyses.numerics.comparing.task_differences import TaskDifference, task_differences
from tracker.queries.clusters import NONE, SPLIT, TASK
from tracker.queries.ranking.interval_warnings import explain_unclustered
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined
from tracker.statistics.ranking import overflow_exponent
from tracker.statistics.rng_streams import SHOWN_PROMPTS, generator

FEW_SHARED = "fewer than two prompts are shared"
CONSTANT = "the difference is the same on all prompts"
UNBOUNDED = "the difference is the same on all prompts, and the metric has no bounds"
CONSTANT_MODEL = "one of the two has the same score on all prompts"
UNSTRATIFIED = "tasks are not strata, or prompts are in clusters"
BEYOND = "it is too large for a float64 number"
ESTIMATES = ("stderr", "low", "high", "pvalue")


@dataclass(frozen=True, kw_only=True)
class ModelComparison(Finding):
    """The first model less the second; positive means that the first is better, whatever the metric's direction.

    Attributes:
        models: the two names.
        comparison: over all shared prompts.
        tasks: in each task.
        cluster: what makes a cluster.
        n_clusters: clusters of the shared prompts.
        unclustered_reason: why errors are not clustered; '' where they are.
        n_only: prompts that only the first, or only the second, was measured on.
        equivalence: whether the difference is within a margin; None without a margin.
        completions: the comparison for every value of the missing scores; None if none is missing, or if a policy
            replaced them.
        imputed: the comparison on all prompts, if missing scores are imputed; else None.
        n_imputed: scores that are imputed.
    """

    models: tuple[str, str]
    comparison: PairedComparison
    tasks: tuple[TaskDifference, ...]
    cluster: str
    n_clusters: int
    unclustered_reason: str
    n_only: tuple[int, int]
    equivalence: Equivalence | None = None
    completions: ComparedCompletions | None = None
    imputed: PairedComparison | None = None
    n_imputed: int = 0

    @property
    def decisive(self) -> PairedComparison:
        """The comparison that the verdict follows: of all prompts if scores are imputed, else of the shared ones."""
        return self.imputed or self.comparison

    @property
    def leaders(self) -> tuple[str, ...]:
        """The model that is ahead; both if their means are equal."""
        mean = self.decisive.best.mean
        return self.models if mean == 0 else self.models[:1] if mean > 0 else self.models[1:]

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference, for every value of the missing scores."""
        best = self.decisive.best
        return (best.low, best.high) if self.completions is None else self.completions.interval

    @property
    def pvalue(self) -> float:
        """The test of the difference, for every value of the missing scores."""
        return self.decisive.pvalue if self.completions is None else self.completions.pvalue

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, the difference, then errors, tests, power and what pairing gains."""
        comparison = self.comparison
        d, best = comparison.advantage, self.decisive.best
        no_interval = CONSTANT if comparison.n > 1 else FEW_SHARED
        no_power = FEW_SHARED if np.isnan(best.stderr) else CONSTANT
        no_ends = FEW_SHARED if np.isnan(best.stderr) else UNBOUNDED
        return {
            "n_prompts": float(comparison.n),
            "n_left_out": float(sum(self.n_only)),
            "n_tasks": float(len(self.tasks)),
            "n_clusters": Undefined(self.unclustered_reason) if self.unclustered_reason else float(self.n_clusters),
            "mean_a": finite_or_undefined(comparison.mean_a, BEYOND),
            "mean_b": finite_or_undefined(comparison.mean_b, BEYOND),
            "difference": finite_or_undefined(best.mean, BEYOND),
            "stderr": finite_or_undefined(best.stderr, FEW_SHARED),
            "low": finite_or_undefined(self.interval[0], no_ends),
            "high": finite_or_undefined(self.interval[1], no_ends),
            "pvalue": finite_or_undefined(self.pvalue, FEW_SHARED),
            **{
                f"naive.{name}": finite_or_undefined(float(getattr(comparison.naive, name)), no_ends)
                for name in ESTIMATES
            },
            **self._clustered_metrics(),
            **self._equivalence_metrics(),
            **self._completion_metrics(),
            **self._task_metrics(),
            "mcnemar.pvalue": finite_or_undefined(comparison.mcnemar, "scores are not all 0 and 1"),
            "flips.pvalue": comparison.flips.pvalue,
            "flips.n_drawn": float(comparison.flips.n_drawn),
            "bca.low": finite_or_undefined(comparison.bca[0], no_interval),
            "bca.high": finite_or_undefined(comparison.bca[1], no_interval),
            "detectable": finite_or_undefined(comparison.detectable, no_power),
            "n_a_better": float((d > 0).sum()),
            "n_b_better": float((d < 0).sum()),
            "n_equal": float((d == 0).sum()),
            "correlation": finite_or_undefined(comparison.correlation, CONSTANT_MODEL),
            "unpaired.stderr": finite_or_undefined(comparison.unpaired_stderr, FEW_SHARED),
            "pairing_gain": finite_or_undefined(comparison.pairing_gain, no_interval),
        }

    def _equivalence_metrics(self) -> dict[str, Metric]:
        """The margin, its interval and its test; empty without a margin."""
        if self.equivalence is None:
            return {}
        no_interval = FEW_SHARED if np.isnan(self.comparison.best.stderr) else UNBOUNDED
        no_test = Undefined(no_interval)
        return {
            "equivalence.margin": self.equivalence.margin,
            "equivalence.low": finite_or_undefined(self.equivalence.low, no_interval),
            "equivalence.high": finite_or_undefined(self.equivalence.high, no_interval),
            "equivalence.pvalue": no_test if np.isnan(self.equivalence.low) else self.equivalence.pvalue,
        }

    def _completion_metrics(self) -> dict[str, Metric]:
        """The extremes of the difference on all prompts, or what imputation changes; empty if no score is missing."""
        if self.imputed is not None:
            return {
                "all.n_prompts": float(self.imputed.n),
                "all.n_missing": float(self.n_imputed),
                "shared.difference": finite_or_undefined(self.comparison.best.mean, BEYOND),
                "shared.pvalue": finite_or_undefined(self.comparison.pvalue, FEW_SHARED),
            }
        if self.completions is None:
            return {}
        metrics: dict[str, Metric] = {
            "all.n_prompts": float(self.completions.n),
            "all.n_missing": float(self.completions.n_missing),
            "shared.pvalue": finite_or_undefined(self.comparison.pvalue, FEW_SHARED),
        }
        for name, case in (("least", self.completions.worst.best), ("most", self.completions.best.best)):
            metrics |= {
                f"all.{name}": finite_or_undefined(case.mean, BEYOND),
                f"all.{name}.stderr": finite_or_undefined(case.stderr, FEW_SHARED),
            }
        return metrics

    def _task_metrics(self) -> dict[str, Metric]:
        """The tests of the tasks, of which the summary counts the significant ones; empty with one task."""
        holm = [task.holm for task in self.tasks if not np.isnan(task.holm)]
        if len(self.tasks) < 2:
            return {}
        return {
            "tasks.n_tests": float(len(holm)),
            "tasks.holm": finite_or_undefined(min(holm, default=np.nan), "no task has a test"),
        }

    def _clustered_metrics(self) -> dict[str, Metric]:
        """The same with errors by cluster; undefined where they are not clustered."""
        comparison, undefined = self.comparison, Undefined(self.unclustered_reason)
        metrics: dict[str, Metric] = {}
        for name in ESTIMATES:
            value = getattr(comparison.clustered, name) if comparison.clustered else None
            metrics[f"clustered.{name}"] = undefined if value is None else finite_or_undefined(float(value), UNBOUNDED)
        no_interval = "clusters do not differ, or all resamples lie on one side"
        for value, name in zip(comparison.bca_clustered, ("bca.low", "bca.high"), strict=True):
            metrics[f"clustered.{name}"] = (
                finite_or_undefined(value, no_interval) if comparison.clustered else undefined
            )
        for name in ("stderr", "degrees", "low", "high", "pvalue"):
            value = getattr(comparison.uneven, name) if comparison.uneven else None
            metrics[f"cr2.{name}"] = undefined if value is None else finite_or_undefined(float(value), UNBOUNDED)
        for name in ("stderr", "low", "high"):
            value = getattr(comparison.stratified, name) if comparison.stratified else None
            metrics[f"stratified.{name}"] = (
                Undefined(UNSTRATIFIED) if value is None else finite_or_undefined(float(value), UNBOUNDED)
            )
        flips = comparison.flips_clustered
        metrics["clustered.flips.pvalue"] = undefined if flips is None else flips.pvalue
        return metrics


def assess_equivalence(comparison: PairedComparison, margin: float) -> Equivalence:
    """Test whether the difference is within ± margin, at the level of the comparison.

    Args:
        comparison: of the two models.
        margin: positive, in the unit of the scores.
    """
    alpha = 1 - comparison.level
    if comparison.clustered is None and not np.isnan(comparison.mcnemar):
        d = comparison.advantage
        return score_equivalence(int((d > 0).sum()), int((d < 0).sum()), len(d), margin=margin, alpha=alpha)
    return t_equivalence(comparison.best, margin=margin, alpha=alpha)


def compare_pair(
    shared: SharedScores, *, n_resamples: int, level: float, seed: int, margin: float | None = None
) -> ModelComparison:
    """Compare two models over all shared prompts, and in each task.

    Args:
        shared: their scores.
        n_resamples: of the bootstrap.
        level: of the intervals.
        seed: the same seed gives the same bytes, whatever the number of workers.
        margin: for the test of equivalence; None for no such test.
    """
    exponent = overflow_exponent(shared.values)
    a, b = (np.ldexp(scores, -exponent) for scores in (shared.a, shared.b))
    groups, higher, allowed = shared.groups, shared.scores.higher_is_better, shared.scores.metric_bounds
    largest = np.inf if allowed is None else float(np.ldexp(np.ptp(allowed), -exponent))
    options: Mapping[str, Any] = {
        "higher_is_better": higher,
        "level": level,
        "n_resamples": n_resamples,
        "seed": seed,
    }
    comparison = compare_models(a, b, groups, **options, largest=largest)
    completions = None
    if (incomplete := shared.incomplete) is not None:
        completions = compare_completions(
            np.ldexp(incomplete.a, -exponent),
            np.ldexp(incomplete.b, -exponent),
            incomplete.groups,
            (float(np.ldexp(incomplete.bounds[0], -exponent)), float(np.ldexp(incomplete.bounds[1], -exponent))),
            **options,
        )
    imputed = None
    if (whole := shared.imputed) is not None:
        filled_a, filled_b = (np.ldexp(scores, -exponent) for scores in (whole.a, whole.b))
        imputed = compare_models(filled_a, filled_b, whole.groups, **options, with_bootstrap=False, largest=largest)
    tasks = task_differences(
        a,
        b,
        comparison.advantage,
        shared.scores.tasks,
        groups if shared.cluster not in (TASK, SPLIT, NONE) else None,
        is_binary=not np.isnan(comparison.mcnemar),
        level=level,
        largest=largest,
    )
    return ModelComparison(
        models=shared.models,
        comparison=comparison.scaled(exponent),
        tasks=tuple(task.scaled(exponent) for task in tasks),
        cluster=shared.cluster,
        n_clusters=groups.n_groups,
        unclustered_reason=explain_unclustered(groups, shared.cluster),
        n_only=shared.n_only,
        equivalence=None if margin is None else _assess_margin(imputed or comparison, completions, margin, exponent),
        completions=completions and completions.scaled(exponent),
        imputed=imputed and imputed.scaled(exponent),
        n_imputed=0 if whole is None else whole.n_missing,
    )


def _assess_margin(
    comparison: PairedComparison, completions: ComparedCompletions | None, margin: float, exponent: int
) -> Equivalence:
    """Test equivalence for every value of the missing scores.

    Args:
        comparison, completions: in the unit of scores over 2**exponent.
        margin: in the unit of the scores.
        exponent: of that unit.
    """
    scaled = float(np.ldexp(margin, -exponent))
    if completions is None:
        test = assess_equivalence(comparison, scaled)
    else:
        worst, best = (assess_equivalence(case, scaled) for case in (completions.worst, completions.best))
        test = unite_equivalence(worst, best)
    if not exponent:
        return test
    low, high = (float(np.ldexp(end, exponent)) for end in (test.low, test.high))
    return replace(test, margin=margin, low=low, high=high)


def order_flips(advantage: NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """Prompts on which the two differ, the largest difference first, those of equal size in random order."""
    order = generator(seed, SHOWN_PROMPTS).permutation(len(advantage))
    order = order[np.argsort(-np.abs(advantage[order]), kind="stable")]
    return np.asarray(order[advantage[order] != 0])
