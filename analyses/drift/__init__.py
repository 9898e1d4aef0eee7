"""Have the scores of a model drifted between its runs?

Models behind an interface change without notice, harnesses and settings change with notice, and sampling gives other
answers each time. Every run of a model is compared with the one before it, on the prompts that both were asked, with
errors that know of clusters: which steps are more than chance, and which prompts changed.

Source: Miller 2024, "Adding Error Bars to Evals"; every number is defined in docs/statistics/drift.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from analyses.drift import figures, tables
from analyses.drift import summary as wording
from analyses.numerics.comparing.steps import RunStep, compare_runs, score_changes
from analyses.presentation.validation import validate
from tracker.queries.clusters import Clusters
from tracker.queries.prompts import Prompts
from tracker.queries.ranking.history import RunHistory
from tracker.queries.ranking.interval_warnings import clustering_warnings, unclustered_reason
from tracker.queries.score_validation import check_finite, check_squarable
from tracker.recording.finding import Finding, Metric, Report, Undefined, analysis, finite_or_undefined
from tracker.statistics.grouping import group_rows


@dataclass(frozen=True, kw_only=True)
class Drift(Finding):
    """Every step from a run of a model to its next one.

    Attributes:
        models: name of the model of each column.
        runs: key of the run of each column.
        steps: by model, in the order of its runs.
        n_models: models with two runs or more.
        cluster: what makes a cluster.
        unclustered: why errors are not clustered; '' where they are.
        level: of intervals and tests.
    """

    models: tuple[str, ...]
    runs: tuple[int, ...]
    steps: tuple[RunStep, ...]
    n_models: int
    cluster: str
    unclustered_reason: str
    level: float

    @property
    def drifted(self) -> tuple[RunStep, ...]:
        """Steps that are more than chance after Holm's correction."""
        return tuple(step for step in self.steps if step.holm <= 1 - self.level)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, the largest step, and how many prompts change from run to run."""
        change = np.array([step.change for step in self.steps])
        shares = np.array([step.share_changed for step in self.steps])
        none = "no two runs share a prompt"
        largest = self.steps[int(np.nanargmax(np.abs(change)))] if not np.isnan(change).all() else None
        return {
            "n_models": float(self.n_models),
            "n_runs": float(len(self.runs)),
            "n_steps": float(len(self.steps)),
            "n_drifted": float(len(self.drifted)),
            "n_rose": float(sum(step.change > 0 for step in self.drifted)),
            "n_fell": float(sum(step.change < 0 for step in self.drifted)),
            "largest": Undefined(none) if largest is None else largest.change,
            "largest.stderr": Undefined(none)
            if largest is None
            else finite_or_undefined(largest.stderr, "fewer than two prompts are shared"),
            "largest.holm": Undefined(none)
            if largest is None
            else finite_or_undefined(largest.holm, "fewer than two prompts are shared"),
            "changed.mean": Undefined(none) if np.isnan(shares).all() else float(np.nanmean(shares)),
            "changed.most": Undefined(none) if np.isnan(shares).all() else float(np.nanmax(shares)),
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """A number for each step."""
        names = ("before", "after", "n", "change", "stderr", "low", "high", "pvalue", "holm", "n_better", "n_worse")
        return {name: np.array([getattr(step, name) for step in self.steps]) for name in names}

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(self.steps, self.models, self.runs, self.n_models, self.level)


@analysis
def analyze(
    history: RunHistory,
    prompts: Prompts,
    clusters: Clusters,
    *,
    level: Annotated[float, "of intervals and tests"] = 0.95,
) -> Report:
    """Compare every run of a model with the one before it.

    Args:
        history: the runs; at least one model must have two.
        prompts: their texts.
        clusters: which prompts depend on each other.
        level: of intervals and tests.

    Raises:
        SelectionError: no model has two runs, scores are infinite or cannot be squared, or the level is out of range.
    """
    scores = history.scores
    series = [columns for columns in history.columns_by_model.values() if len(columns) > 1]
    validate(
        {
            **wording.problems(len(series), scores.benchmark, level),
            **check_finite(scores.Q),
            **check_squarable(scores.Q),
        }
    )
    groups = group_rows(clusters.align(scores.prompt_ids))
    found = compare_runs(scores.Q, series, groups, higher_is_better=scores.higher_is_better, level=level)
    models = tuple(run.model for run in history.runs)
    rows = prompts.find_rows(scores.prompt_ids).tolist()
    drift = Drift(
        models=models,
        runs=history.run_ids,
        steps=found,
        n_models=len(series),
        cluster=clusters.field,
        unclustered_reason=unclustered_reason(groups, clusters.field),
        level=level,
    )
    return Report(
        drift,
        tables={
            "runs": tables.by_run(history, found),
            "changed": tables.changed(
                [(step, score_changes(scores.Q, step, higher_is_better=scores.higher_is_better)) for step in found],
                history,
                names=[prompts.names[row] for row in rows],
                texts=[prompts.texts[row] for row in rows],
            ),
        },
        figures={"history": partial(figures.history, history, found, level)},
        warnings=[*clustering_warnings(groups, clusters.field), *wording.warnings(history, found)],
    )
