"""A filter and item-response filtering, each compared with random subsets of its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.filter_baselines.validation import check_ranked_models
from analyses.numerics.filtering.effects.random_comparison import (
    STATISTICS,
    SelectionComparison,
    compare_with_random,
    full_statistics,
)
from analyses.numerics.filtering.item_response import TwoParameterFit, fit_two_parameter, flag_easy_or_undiscriminating
from analyses.presentation.validation import validate
from tracker.queries.answers import AnswerMatrix
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.evidence import answers_or_outcomes
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined

PARAMETERS = ("difficulty", "discrimination")
"""Parameters of a prompt in the two-parameter logistic model."""
TIED = "fewer than two models are ranked, or a ranking ties them all"
CONSTANT = "the scores of one of the two are constant, or nothing is kept"
REASONS = {
    "tau": TIED,
    "tau_without_filter_models": "no ranked model filtered, or fewer than two others are ranked, or all are tied",
    "pearson": CONSTANT,
    "spearman": CONSTANT,
    "agreement": "there are no two models with answers, or nothing is kept",
}
"""Why a statistic is undefined, by its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterSummary:
    """One of the two parameters of a prompt over all prompts.

    Attributes:
        limit: the percentile at or below which it is low.
        interquartile_range: between the quarter and three quarters of the prompts.
        median_stderr: of the prompts that have one.
    """

    limit: float
    interquartile_range: float
    median_stderr: float


def summarize_parameter(response: TwoParameterFit, name: str, percentile: float) -> ParameterSummary:
    """Percentiles and standard error of one of the numbers, by its name."""
    low, high, limit = np.nanpercentile(getattr(response, name), [25, 75, percentile])
    return ParameterSummary(
        limit=float(limit),
        interquartile_range=float(high - low),
        median_stderr=float(np.nanmedian(getattr(response, f"{name}_stderr"))),
    )


@dataclass(frozen=True, kw_only=True)
class FilterBaselines(Finding):
    """A filter and item-response filtering, each compared with random subsets of its size.

    Attributes:
        filter: the filter's key and the analysis that made it, such as ``12 (smart-filtering)``.
        models: those with a score for every prompt, by which the methods are compared.
        is_filter_model: ``(n_models,)`` whether the model is a filter model.
        means: ``(n_models,)`` on all prompts, larger is better.
        n_subsets: random subsets.
        against: the other benchmark and its metric; '' without one.
        n_against: models with a score there too.
        agreement_of: ``answers``; ``right or wrong`` where not every model's answers are stored; '' where it is of
            neither.
        full: statistics of all prompts.
        methods: by name, ``filter`` and ``item_response``; the latter is missing where it could not be fitted.
        response: the fit; None where there is none.
        reason: why there is none.
        n_open: prompts without options, which cannot be guessed.
        percentile, combine: as chosen.
    """

    filter: str
    models: tuple[str, ...]
    is_filter_model: NDArray[np.bool_]
    means: NDArray[np.float64]
    n_subsets: int
    against: str
    n_against: int
    agreement_of: str
    full: Mapping[str, float]
    methods: Mapping[str, SelectionComparison]
    response: TwoParameterFit | None
    reason: str
    n_open: int
    percentile: float
    combine: str

    @property
    def n_filter_models(self) -> int:
        """Ranked models that are filter models."""
        return int(self.is_filter_model.sum())

    @property
    def n_response_models(self) -> int:
        """Models that the fit is made from."""
        return 0 if self.response is None else int((~np.isnan(self.response.ability)).sum())

    @property
    def statistics(self) -> Sequence[str]:
        """Names of those compared: correlations only where there is something to correlate with."""
        return [name for name in STATISTICS if self.against or name not in ("pearson", "spearman")]

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then each method with its random subsets, then the fit."""
        kept = self.methods["filter"].kept
        metrics: dict[str, Metric] = {
            "n_prompts": float(len(kept)),
            "n_models": float(len(self.models)),
            "n_filter_models": float(self.n_filter_models),
            "n_subsets": float(self.n_subsets),
        }
        if self.against:
            metrics["n_against"] = float(self.n_against)
        for name in (name for name in self.statistics if name in self.full):
            metrics[f"full.{name}"] = finite_or_undefined(self.full[name], REASONS[name])
        for method in ("filter", "item_response"):
            metrics |= self._method_metrics(method)
        if "item_response" in self.methods:
            both = ~kept & ~self.methods["item_response"].kept
            metrics["n_removed_by_both"] = float(both.sum())
        return metrics | self._response_metrics()

    def _method_metrics(self, method: str) -> dict[str, Metric]:
        comparison = self.methods.get(method)
        if comparison is None:
            names = ("n_removed", "share_removed", *self.statistics)
            return {f"{method}.{name}": Undefined(self.reason) for name in names}
        metrics: dict[str, Metric] = {
            f"{method}.n_removed": float((~comparison.kept).sum()),
            f"{method}.share_removed": comparison.share_removed,
        }
        for name in self.statistics:
            spread = comparison.spread(name)
            values = {
                "": comparison.values[name],
                ".random_mean": spread.mean,
                ".random_low": spread.low,
                ".random_high": spread.high,
                ".position": comparison.position(name),
            }
            for end, value in values.items():
                metrics[f"{method}.{name}{end}"] = finite_or_undefined(value, REASONS[name])
        return metrics

    def _response_metrics(self) -> dict[str, Metric]:
        if self.response is None:
            return {}
        metrics: dict[str, Metric] = {
            "item_response.n_models": float(self.n_response_models),
            "item_response.n_open": float(self.n_open),
            "item_response.n_iterations": float(self.response.n_iterations),
            "item_response.converged": float(self.response.converged),
        }
        for name in PARAMETERS:
            parameter = summarize_parameter(self.response, name, self.percentile)
            metrics[f"item_response.{name}.limit"] = parameter.limit
            metrics[f"item_response.{name}.interquartile_range"] = parameter.interquartile_range
            metrics[f"item_response.{name}.median_stderr"] = parameter.median_stderr
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Each statistic in the random subsets, one by one."""
        return {
            f"{method}.random.{name}": comparison.random[name]
            for method, comparison in self.methods.items()
            for name in self.statistics
        }

    @property
    def main_metrics(self) -> Sequence[str]:
        """All but the ends of intervals and the course of the fit."""
        return [name for name in self.metrics if not name.endswith(("_low", "_high", "n_iterations", "converged"))]


@dataclass(frozen=True, kw_only=True)
class BaselineOptions:
    """Options of the comparison, as of the analysis."""

    n_subsets: int
    percentile: float
    combine: Literal["either", "both"]
    seed: int


def compare_methods(
    scores: PerformanceMatrix,
    recorded: PromptFilter,
    answers: AnswerMatrix,
    against: BenchmarkScores | None,
    floors: NDArray[np.float64],
    options: BaselineOptions,
) -> FilterBaselines:
    """Compare a filter and item-response filtering with random subsets of their sizes.

    Args:
        scores: of the prompts with a decision; models with gaps are used for the fit only.
        recorded: the filter.
        answers: what the models answered.
        against: scores of the same models on another benchmark.
        floors: ``(n_prompts,)`` chance to guess each answer.
        options: of subsets and of item response.

    Raises:
        SelectionError: no model has a score for each prompt; too few that the other benchmark has too.
    """
    kept, _ = recorded.align(scores.prompt_ids)
    complete = np.flatnonzero(~np.isnan(scores.Q).any(axis=0))
    models = tuple(scores.models[column] for column in complete)
    external_scores = None if against is None else against.align(models)
    validate(check_ranked_models(models, external_scores, against))
    Q = np.ascontiguousarray(scores.Q[:, complete]) * (1.0 if scores.higher_is_better else -1.0)
    codes, agreement_of = answers_or_outcomes(answers.align(scores.prompt_ids), scores, complete)
    response, reason = _fit_response(scores, floors)
    selections = {"filter": kept}
    if response is not None:
        flagged = flag_easy_or_undiscriminating(response, percentile=options.percentile, combine=options.combine)
        selections["item_response"] = ~flagged
    is_filter_model = np.isin(models, recorded.models)
    compared = {"n_subsets": options.n_subsets, "seed": options.seed}
    return FilterBaselines(
        filter=f"{recorded.finding_id} ({recorded.made_by})",
        models=models,
        is_filter_model=is_filter_model,
        means=Q.mean(axis=0),
        n_subsets=options.n_subsets,
        against="" if against is None else against.label,
        n_against=0 if external_scores is None else int((~np.isnan(external_scores)).sum()),
        agreement_of=agreement_of,
        full=full_statistics(Q, codes, external_scores=external_scores),
        methods={
            name: compare_with_random(
                Q, selection, codes, excluded=is_filter_model, external_scores=external_scores, **compared
            )
            for name, selection in selections.items()
        },
        response=response,
        reason=reason,
        n_open=int((floors == 0).sum()),
        percentile=options.percentile,
        combine=options.combine,
    )


def _fit_response(scores: PerformanceMatrix, floors: NDArray[np.float64]) -> tuple[TwoParameterFit | None, str]:
    """Fit item response to all models, or return why it cannot be fitted."""
    if not scores.is_binary:
        return None, "item response needs scores of right (1) and wrong (0)"
    return fit_two_parameter(scores.Q if scores.higher_is_better else 1 - scores.Q, floors), ""
