"""Steps from run to run of each model: the finding, and how it is computed from a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.comparing.run_steps import RunStep, compare_runs
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.interval_warnings import explain_unclustered
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined
from tracker.statistics.grouping import Grouping

UNSHARED = "no two runs share a prompt"
FEW_SHARED = "fewer than two prompts are shared"


@dataclass(frozen=True, kw_only=True)
class Drift(Finding):
    """Every step from a run of a model to its next one.

    Attributes:
        models: name of the model of each column.
        runs: key of the run of each column.
        steps: by model, in the order of its runs.
        n_models: models with two runs or more.
        cluster: what makes a cluster.
        unclustered_reason: why errors are not clustered; '' where they are.
        level: of intervals and tests.
        higher_is_better: whether large scores are good.
    """

    models: tuple[str, ...]
    runs: tuple[int, ...]
    steps: tuple[RunStep, ...]
    n_models: int
    cluster: str
    unclustered_reason: str
    level: float
    higher_is_better: bool = True

    @property
    def drifted(self) -> tuple[RunStep, ...]:
        """Steps that are more than chance after Holm's correction."""
        return tuple(step for step in self.steps if step.holm <= 1 - self.level)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, the largest step, and how many prompts change from run to run."""
        shares = np.array([step.share_changed for step in self.steps])
        is_unshared = bool(np.isnan(shares).all())
        holm = [step.holm for step in self.steps if not np.isnan(step.holm)]
        return {
            "n_models": float(self.n_models),
            "n_runs": float(len(self.runs)),
            "n_steps": float(len(self.steps)),
            "n_tests": float(len(holm)),
            "n_drifted": float(len(self.drifted)),
            "n_rose": float(sum(step.change > 0 for step in self.drifted)),
            "n_fell": float(sum(step.change < 0 for step in self.drifted)),
            **self._largest_step(),
            "smallest.holm": finite_or_undefined(min(holm, default=np.nan), UNSHARED if is_unshared else FEW_SHARED),
            "changed.mean": Undefined(UNSHARED) if is_unshared else float(np.nanmean(shares)),
            "changed.most": Undefined(UNSHARED) if is_unshared else float(np.nanmax(shares)),
        }

    def _largest_step(self) -> dict[str, Metric]:
        change = np.array([step.change for step in self.steps])
        if np.isnan(change).all():
            return {name: Undefined(UNSHARED) for name in ("largest", "largest.stderr", "largest.holm")}
        step = self.steps[int(np.nanargmax(np.abs(change)))]
        return {
            "largest": step.change,
            "largest.stderr": finite_or_undefined(step.stderr, FEW_SHARED),
            "largest.holm": finite_or_undefined(step.holm, FEW_SHARED),
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """A number for each step."""
        names = ("before", "after", "n", "change", "stderr", "low", "high", "pvalue", "holm", "n_better", "n_worse")
        return {name: np.array([getattr(step, name) for step in self.steps]) for name in names}


def find_series(history: RunHistory) -> list[list[int]]:
    """Columns of each model that has two runs or more, in the order of its runs."""
    return [columns for columns in history.columns_by_model.values() if len(columns) > 1]


def find_drift(
    history: RunHistory, series: Sequence[Sequence[int]], groups: Grouping, *, cluster: str, level: float
) -> Drift:
    """Compare every run of a model with the one before it.

    Args:
        history: the runs.
        series: columns of each model with two runs or more.
        groups: clusters of the prompts.
        cluster: what makes a cluster.
        level: of intervals and tests.
    """
    scores = history.scores
    steps = compare_runs(
        scores.Q,
        series,
        groups,
        higher_is_better=scores.higher_is_better,
        level=level,
        bounds=scores.bounds,
        replacement=scores.worst if scores.missing == "worst" else None,
        imputed=scores.linearized,
        largest=np.inf if scores.metric_bounds is None else float(np.ptp(scores.metric_bounds)),
    )
    return Drift(
        models=tuple(run.model for run in history.runs),
        runs=history.run_ids,
        steps=steps,
        n_models=len(series),
        cluster=cluster,
        unclustered_reason=explain_unclustered(groups, cluster),
        level=level,
        higher_is_better=scores.higher_is_better,
    )
