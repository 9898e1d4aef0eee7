"""A mixed model of the scores: the finding, and how it is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from analyses.mixed_model.covariates import (
    CodedCovariates,
    CovariateTest,
    check_covariates,
    code_covariates,
    drop_separating,
)
from analyses.mixed_model.validation import chosen_response
from analyses.numerics.mixed.by_statsmodels import explain_no_statsmodels, maximize_by_statsmodels
from analyses.numerics.mixed.design import COMPONENTS, CrossedDesign, build_design
from analyses.numerics.mixed.effects import (
    ModelEffects,
    TaskEffects,
    completed_means,
    effects_on_tasks,
    task_effects,
)
from analyses.numerics.mixed.fit import MixedFit
from analyses.numerics.mixed.gaussian import fit_gaussian
from analyses.numerics.mixed.laplace import fit_logistic
from tracker.errors import SelectionError
from tracker.queries.catalogue.covariates import Covariates
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import MIN_COVERAGE
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined
from tracker.statistics.grouping import group_rows
from tracker.statistics.rank_intervals import rank_spans

METRIC_NAMES = tuple(name.replace(":", "_") for name in COMPONENTS)
UNCLUSTERED = "the leaderboard ranks other models, or has no clustered errors of the first model"
BEYOND = "it is too large for a float64 number"
MIN_RESIDUAL = 1e-4
"""Least standard deviation of the residual, relative to that of the scores."""


@dataclass(frozen=True, kw_only=True)
class MixedModel(Finding):
    """Variances of the scores, and effects of models and tasks.

    Attributes:
        models, tasks: names, in the order of the effects.
        n_prompts: of the scores.
        n_missing: cells without a score.
        level: of the rank intervals together, and of each other interval.
        fit: the fitted model.
        on_tasks: effects of the models on these tasks.
        other_tasks: effects on other tasks like these; None with one task.
        by_task: effects of tasks, and of models within them.
        completed: ``(k,)`` mean over all prompts, with predictions in place of missing scores.
        coded: covariates.
        tests: of the covariates.
        higher_is_better: of the scores.
        by_statsmodels: log-likelihood that statsmodels reaches; undefined where it cannot fit the model.
        clustered_ranks: rank interval of the first model on other tasks as on the leaderboard, where each prompt counts
            the same; None with one task, or if the leaderboard does not rank it.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    n_prompts: int
    n_missing: int
    level: float
    fit: MixedFit
    on_tasks: ModelEffects
    other_tasks: ModelEffects | None
    by_task: TaskEffects
    completed: NDArray[np.float64]
    coded: CodedCovariates
    tests: tuple[CovariateTest, ...]
    higher_is_better: bool
    by_statsmodels: Metric
    clustered_ranks: tuple[int, int] | None = None

    @property
    def differs_from_clustered(self) -> bool:
        """Whether the first model's ranks on other tasks are not those of the leaderboard."""
        if self.other_tasks is None or self.clustered_ranks is None:
            return False
        first, ranks = self.on_tasks.first, self.other_tasks
        return (int(ranks.rank_low[first]), int(ranks.rank_high[first])) != self.clustered_ranks

    @property
    def inactive_reasons(self) -> Mapping[str, str]:
        """Why a component has no variance, by its name in metrics."""
        design = self.fit.design
        one_task = "there is only one task"
        reasons = {
            "family": self.coded.excluded.get("family", ""),
            "task": one_task,
            "model_task": one_task if design.n_tasks < 2 else "no task has two prompts",
            "prompt": "no task has two prompts",
        }
        active = {name.replace(":", "_") for name in design.active}
        return {name: reason for name, reason in reasons.items() if name not in active}

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, variances, shares, ranks, covariates."""
        fit, inactive = self.fit, self.inactive_reasons
        with np.errstate(over="ignore"):
            variances = np.append(fit.sd, fit.residual_sd) ** 2
        metrics: dict[str, Metric] = {
            "n_models": float(len(self.models)),
            "n_prompts": float(self.n_prompts),
            "n_tasks": float(len(self.tasks)),
            "n_scores": float(fit.design.n_scores),
            "n_missing": float(self.n_missing),
            "log_likelihood": fit.log_likelihood,
            "statsmodels.log_likelihood": self.by_statsmodels,
            "has_converged": float(fit.has_converged),
        }
        for prefix, values in (("variance", variances), ("share", fit.shares)):
            for name, value in zip((*METRIC_NAMES, "residual"), values.tolist(), strict=True):
                known = finite_or_undefined(value, BEYOND)
                metrics[f"{prefix}.{name}"] = Undefined(inactive[name]) if name in inactive else known
        metrics |= {
            "n_pairs": float(len(self.models) * (len(self.models) - 1) // 2),
            "first.holm": self.on_tasks.first_holm,
            "n_may_lead": float((self.on_tasks.rank_low == 1).sum()),
            "width.mean": float((self.on_tasks.rank_high - self.on_tasks.rank_low + 1).mean()),
        }
        elsewhere = self.other_tasks
        for name in ("first.holm", "n_may_lead", "width.mean"):
            metrics[f"other_tasks.{name}"] = Undefined("there is only one task")
        if elsewhere is not None:
            metrics["other_tasks.first.holm"] = elsewhere.first_holm
            metrics["other_tasks.n_may_lead"] = float((elsewhere.rank_low == 1).sum())
            metrics["other_tasks.width.mean"] = float((elsewhere.rank_high - elsewhere.rank_low + 1).mean())
        for place, name in enumerate(("rank_low", "rank_high")):
            ranks = self.clustered_ranks
            metrics[f"other_tasks.clustered.{name}"] = Undefined(UNCLUSTERED) if ranks is None else float(ranks[place])
        for test in self.tests:
            metrics |= {f"{test.name}.estimate": test.estimate, f"{test.name}.pvalue": test.pvalue}
            metrics[f"{test.name}.holm"] = test.holm
        metrics["covariates.n_tests"] = float(len(self.tests))
        if self.tests:
            metrics["covariates.holm"] = min(test.holm for test in self.tests)
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Covariances of the models' effects."""
        arrays = {"covariance": self.on_tasks.cov}
        return arrays if self.other_tasks is None else {**arrays, "other_tasks.covariance": self.other_tasks.cov}


def split_scored(scores: PerformanceMatrix) -> tuple[PerformanceMatrix, tuple[str, ...]]:
    """Return the models with a score, and the names of the others."""
    has_scores = np.asarray(~np.isnan(scores.Q).all(axis=0))
    scored = replace(
        scores,
        Q=np.ascontiguousarray(scores.Q[:, has_scores]),
        models=tuple(name for name, stays in zip(scores.models, has_scores.tolist(), strict=True) if stays),
        run_ids=scores.run_ids[has_scores],
    )
    return scored, tuple(name for name, stays in zip(scores.models, has_scores.tolist(), strict=True) if not stays)


@threadpool_limits.wrap(limits=1, user_api="blas")  # type: ignore[untyped-decorator]
def fit_scores(
    scores: PerformanceMatrix, covariates: Covariates | None, *, response: str, likelihood: str, level: float
) -> MixedModel:
    """Fit the model and compute its effects.

    The matrices are small, so threads of BLAS would mostly wait for each other: it gets one.

    Args:
        scores: each model and each prompt has a score; the scores differ.
        covariates: as stored; None uses none.
        response: ``auto``, ``gaussian`` or ``logistic``.
        likelihood: ``restricted`` or ``full``.
        level: of intervals.

    Raises:
        SelectionError: models, tasks and prompts explain every score, so nothing is left for the residual.
    """
    names, tasks = np.unique(scores.tasks, return_inverse=True)
    is_logistic = chosen_response(scores, response) == "logistic"

    def fit(design: CrossedDesign) -> MixedFit:
        return fit_logistic(design) if is_logistic else fit_gaussian(design, restricted=likelihood == "restricted")

    coded = code_covariates(scores, covariates)
    if is_logistic:
        coded = drop_separating(coded, scores.Q)
    design = _design(scores.Q, tasks, coded)
    fitted = fit(design)
    _check_residual(fitted)
    without_family = None
    if "family" in design.active:
        without_it = tuple(name for name in design.active if name != "family")
        without_family = fit(replace(design, active=without_it)).log_likelihood
    better = scores.higher_is_better
    weights = np.diff(design.starts) / scores.n_prompts
    several = design.n_tasks > 1
    on_tasks = effects_on_tasks(fitted, weights, higher_is_better=better, level=level)
    return MixedModel(
        models=scores.models,
        tasks=tuple(names.tolist()),
        n_prompts=scores.n_prompts,
        n_missing=int(np.isnan(scores.Q).sum()),
        level=level,
        fit=fitted,
        on_tasks=on_tasks,
        other_tasks=effects_on_tasks(fitted, None, higher_is_better=better, level=level) if several else None,
        by_task=task_effects(fitted),
        completed=completed_means(fitted),
        coded=coded,
        tests=check_covariates(fitted, coded, without_family),
        higher_is_better=better,
        by_statsmodels=_fit_by_statsmodels(fitted),
        clustered_ranks=_rank_clustered(scores, on_tasks.first, level) if several else None,
    )


def _fit_by_statsmodels(fit: MixedFit) -> Metric:
    """Return the log-likelihood that statsmodels reaches from the same variances, or why it fits none."""
    if fit.response == "logistic":
        return Undefined("statsmodels has no likelihood of crossed effects for scores of 0 and 1")
    reason = explain_no_statsmodels(fit.design)
    if reason:
        return Undefined(reason)
    return finite_or_undefined(maximize_by_statsmodels(fit), "statsmodels reaches no finite likelihood")


def _rank_clustered(scores: PerformanceMatrix, column: int, level: float) -> tuple[int, int] | None:
    """Return a model's ranks on other tasks by clustered errors; None if the leaderboard does not rank these models.

    Args:
        scores: with several tasks; NaN = missing.
        column: of the model.
        level: of all rank intervals together.
    """
    Q, groups = scores.Q, group_rows(scores.tasks)
    is_ranked = (~np.isnan(Q)).mean(axis=0) >= MIN_COVERAGE - 1e-9
    is_open = bool(np.isnan(Q).any())
    is_treated = scores.missing in ("common", "worst")  # coverage is not known then
    if not is_ranked.all() or is_treated or groups.problem or (is_open and scores.metric_bounds is None):
        return None
    better = scores.higher_is_better
    low, high = rank_spans(Q, groups, bounds=scores.metric_bounds, higher_is_better=better, level=level)
    return int(low[column]), int(high[column])


def _design(Q: NDArray[np.float64], tasks: NDArray[np.int64], coded: CodedCovariates) -> CrossedDesign:
    return build_design(
        Q,
        tasks,
        families=coded.families,
        model_covariates=None if coded.few_shot is None else coded.few_shot[:, None],
        prompt_covariates=None if coded.length is None else coded.length[:, None],
    )


def _check_residual(fit: MixedFit) -> None:
    if fit.response == "gaussian" and (fit.at_limit.any() or fit.residual_sd <= MIN_RESIDUAL * fit.scale):
        raise SelectionError(
            "Models, tasks and prompts explain every score, so no variance is left for the residual. Select more "
            "models or another metric."
        )
