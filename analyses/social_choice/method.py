"""Diversity of a benchmark and its cardinal and ordinal sensitivity, as one finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from analyses.numerics.elections.cardinal.epsilon import automatic_epsilon
from analyses.numerics.elections.diversity.diversity_variants import (
    MIN_COMPLETE_TASKS,
    DiversityVariants,
    diversity_variants,
)
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.sensitivity_results import (
    CardinalResult,
    OrdinalResult,
    compute_cardinal,
    compute_ordinal,
)
from analyses.numerics.elections.win_rates import WinRateRule
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined

SENSITIVITY_METRICS = ("tau", "tau_upper", "mrc", "mrc_upper", "exact", "tau_paper", "tau_b")
"""Metrics that both sensitivities have."""


@dataclass(frozen=True, kw_only=True)
class SocialChoice(Finding):
    """Diversity and sensitivities of a benchmark.

    Attributes:
        n_tasks, n_models, n_missing: of the table.
        diversities: how far tasks disagree.
        cardinal: None where it was not computed.
        ordinal: None where it was not computed.
        method: "exact" or "paper".
    """

    n_tasks: int
    n_models: int
    n_missing: int
    diversities: DiversityVariants
    cardinal: CardinalResult | Undefined | None
    ordinal: OrdinalResult | None
    method: str

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, diversities, sensitivities."""
        metrics: dict[str, Metric] = {name: float(getattr(self, name)) for name in ("n_tasks", "n_models", "n_missing")}
        metrics |= _diversity_metrics(self.diversities)
        if isinstance(self.cardinal, Undefined):
            metrics |= {f"cardinal.{name}": self.cardinal for name in (*SENSITIVITY_METRICS, "n_reversed", "epsilon")}
        elif self.cardinal:
            cardinal = self.cardinal.sensitivity
            metrics |= _sensitivity_metrics("cardinal", cardinal)
            metrics |= {
                "cardinal.n_reversed": float(cardinal.tau.distance.n_reversed),
                "cardinal.epsilon": float(cardinal.epsilon),
            }
        if self.ordinal:
            ordinal = self.ordinal.sensitivity
            metrics |= _sensitivity_metrics("ordinal", ordinal)
            metrics |= {
                "ordinal.n_top": float(len(ordinal.leading)),
                "ordinal.n_added": float(ordinal.tau.witness.sum()),
            }
        return metrics


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """Which sensitivities are computed, and how.

    Attributes:
        system: one sensitivity, or both.
        is_standardised: whether tasks are standardised before they are weighed.
        epsilon: least weight of a task; None = `automatic_epsilon`.
        leading: share or number of the models that lead, or their names.
        win_rate_rule: how models are ranked in the ordinal system.
        time_limit: seconds for each exact search.
        method: exact search, or the paper's algorithms.
        seed: of the paper's algorithms.
    """

    system: Literal["both", "cardinal", "ordinal"]
    is_standardised: bool
    epsilon: Fraction | None
    leading: float | Sequence[str]
    win_rate_rule: WinRateRule
    time_limit: float
    method: Literal["exact", "paper"]
    seed: int

    @property
    def descent_seed(self) -> int | None:
        """Seed of the paper's algorithms; None for the exact search."""
        return None if self.method == "exact" else self.seed


def measure_social_choice(table: TaskMatrix, scores: ExactScores, options: SensitivityOptions) -> SocialChoice:
    """Compute diversity and the chosen sensitivities.

    Args:
        table: scores of tasks, at least 3 models.
        scores: the same scores as exact numbers.
        options: which sensitivities, and how.
    """
    cardinal: CardinalResult | Undefined | None = None
    ordinal: OrdinalResult | None = None
    if options.system != "ordinal":
        cardinal = _cardinal_of_complete_tasks(table, scores, options)
    if options.system != "cardinal":
        ordinal = compute_ordinal(
            scores,
            table.models,
            leading=options.leading,
            rule=options.win_rate_rule,
            time_limit=options.time_limit,
            seed=options.descent_seed,
        )
    return SocialChoice(
        n_tasks=table.n_tasks,
        n_models=table.n_models,
        n_missing=int((~scores.present).sum()),
        diversities=diversity_variants(scores),
        cardinal=cardinal,
        ordinal=ordinal,
        method=options.method,
    )


def _cardinal_of_complete_tasks(
    table: TaskMatrix, scores: ExactScores, options: SensitivityOptions
) -> CardinalResult | Undefined:
    """Cardinal sensitivity over the tasks that have a score from every model; undefined where they are too few."""
    is_complete = np.asarray(scores.present.all(axis=1), dtype=np.bool_)
    if not scores.is_complete and is_complete.sum() < MIN_COMPLETE_TASKS:
        return Undefined(f"{is_complete.sum()} tasks have a score from every model, which leaves nothing to weigh")
    complete_table, complete_scores = table.rows(is_complete), scores.rows(is_complete)
    return compute_cardinal(
        complete_scores,
        complete_table.T,
        complete_table.tasks,
        complete_table.models,
        epsilon=automatic_epsilon(complete_scores) if options.epsilon is None else options.epsilon,
        is_standardised=options.is_standardised,
        time_limit=options.time_limit,
        seed=options.descent_seed,
    )


def _diversity_metrics(diversities: DiversityVariants) -> Mapping[str, Metric]:
    tasks: Metric = Undefined(f"{diversities.n_complete_tasks} tasks have a score from every model: too few")
    models: Metric = Undefined(f"{diversities.n_complete_models} models have a score on every task: too few")
    corrected = tasks
    if diversities.complete_tasks:
        tasks, corrected = diversities.complete_tasks.raw, diversities.complete_tasks.tie_corrected
        corrected = finite_or_undefined(
            corrected, "every task ties all models: there is no order to agree or disagree on"
        )
    return {
        "diversity": diversities.whole.raw,
        "diversity.tie_corrected": corrected,
        "diversity.complete_tasks": tasks,
        "diversity.complete_models": diversities.complete_models.raw if diversities.complete_models else models,
    }


def _sensitivity_metrics(system: str, sensitivity: CardinalSensitivity | OrdinalSensitivity) -> dict[str, Metric]:
    tau, mrc = sensitivity.tau, sensitivity.mrc
    tau_b = finite_or_undefined(tau.distance.tau_b, "one of the two rankings ties all models, the other does not")
    values = (
        tau.value,
        tau.upper_bound,
        mrc.value,
        mrc.upper_bound,
        float(sensitivity.is_exact),
        tau.distance.tau_paper,
        tau_b,
    )
    return {f"{system}.{name}": value for name, value in zip(SENSITIVITY_METRICS, values, strict=True)}
