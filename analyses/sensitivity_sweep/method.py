"""Cardinal sensitivity along the least weight, as one finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.sensitivity_path import SensitivityPath, sensitivity_path
from analyses.numerics.elections.exact_scores import exact_scores
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Finding, Metric, Undefined

MAX_HEADLINE_EPSILONS = 20
"""Epsilons whose two values are among the main metrics."""


@dataclass(frozen=True, kw_only=True)
class SensitivitySweep(Finding):
    """Cardinal sensitivity along epsilon.

    Attributes:
        models: name of each column.
        tasks: name of each row: those with a score from every model.
        labels: each epsilon as a decimal number, smallest first.
        is_raw: whether scores are weighed as they are, not standardised.
        path: the largest changes at each epsilon.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    is_raw: bool
    path: SensitivityPath

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, limits of epsilon, then both distances with their bounds at each epsilon."""
        sensitivities, limits = self.path.sensitivities, self.path.limits
        n_exact = sum(sensitivity.is_exact for sensitivity in sensitivities)
        metrics: dict[str, Metric] = {
            "n_tasks": float(len(self.tasks)),
            "n_models": float(len(self.models)),
            "n_epsilons": float(len(sensitivities)),
            "n_exact": float(n_exact),
            "exact": float(n_exact == len(sensitivities)),
            "epsilon.first_safe": self._limit_metric(limits.max_limit()),
            "epsilon.first_safe_leader": self._limit_metric(limits.max_limit(limits.involves_leader)),
        }
        for label, sensitivity in zip(self.labels, sensitivities, strict=True):
            metrics |= {
                f"tau.at_{label}": sensitivity.tau.value,
                f"tau_upper.at_{label}": sensitivity.tau.upper_bound,
                f"mrc.at_{label}": sensitivity.mrc.value,
                f"mrc_upper.at_{label}": sensitivity.mrc.upper_bound,
            }
        return metrics

    def _limit_metric(self, limit: Fraction) -> Metric:
        if not len(self.path.limits.limit):
            return Undefined("the mean ties all models")
        return float(limit) if limit <= 1 else Undefined("equal weights of standardised tasks already reverse a pair")

    @property
    def main_metrics(self) -> Sequence[str]:
        """Without bounds, and at no more than `MAX_HEADLINE_EPSILONS` epsilons."""
        n_epsilons = len(self.labels)
        chosen = np.unique(np.linspace(0, n_epsilons - 1, min(MAX_HEADLINE_EPSILONS, n_epsilons)).round().astype(int))
        values = [f"{name}.at_{self.labels[index]}" for name in ("tau", "mrc") for index in chosen.tolist()]
        return (*(name for name in self.metrics if ".at_" not in name), *values)

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Both distances, weights and ranks of both witnesses; a row for each epsilon, smallest first."""
        sensitivities = self.path.sensitivities
        arrays: dict[str, NDArray[Any]] = {
            "epsilon": np.array([float(sensitivity.epsilon) for sensitivity in sensitivities]),
            "rank_before": sensitivities[0].before,
            "scale": sensitivities[0].scale,
        }
        tau = [sensitivity.tau for sensitivity in sensitivities]
        mrc = [sensitivity.mrc for sensitivity in sensitivities]
        for name, changes in (("tau", tau), ("mrc", mrc)):
            arrays |= {
                name: np.array([change.value for change in changes]),
                f"{name}_upper": np.array([change.upper_bound for change in changes]),
                f"{name}_weights": np.array([change.witness for change in changes]),
                f"{name}_ranks": np.array([change.ranks_after for change in changes]),
            }
        return arrays


def sweep_epsilons(
    table: TaskMatrix, epsilons: Sequence[tuple[str, Fraction]], *, is_raw: bool, time_limit: float
) -> SensitivitySweep:
    """Follow cardinal sensitivity along epsilon.

    Args:
        table: complete scores, at least 3 models and 1 task.
        epsilons: label and value of each, smallest first.
        is_raw: whether scores are weighed as they are, not standardised.
        time_limit: seconds for the whole path.
    """
    path = sensitivity_path(
        exact_scores(table.T, table.n_prompts, higher_is_better=table.higher_is_better),
        epsilons=[epsilon for _, epsilon in epsilons],
        standardised=not is_raw,
        time_limit=time_limit,
    )
    return SensitivitySweep(
        models=table.models,
        tasks=table.tasks,
        labels=tuple(label for label, _ in epsilons),
        is_raw=is_raw,
        path=path,
    )
