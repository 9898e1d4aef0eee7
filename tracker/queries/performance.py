"""Load scores as matrices: rows are prompts, columns are models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.notebook.result import NotebookResult
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.ranking.missing import (
    ExcludedModel,
    MissingPolicy,
    apply_missing_policy,
    no_participant,
)
from tracker.queries.resolution import BenchmarkKey, MetricKey, find_benchmark, find_metric, select_tasks
from tracker.queries.scores import compute_digest, read_averages, read_prompts
from tracker.queries.selected_runs.runs import SelectedRun, join_conditions, select_runs
from tracker.queries.selection import MIN_COVERAGE, AnalysisInput, Policy, Selection, Unit
from tracker.queries.splits.choice import choose_split
from tracker.statistics.missing_scores import linearize_imputed
from tracker.statistics.ranking import TIE_TOLERANCE

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class PerformanceMatrix(AnalysisInput, NotebookResult):
    """The performance matrix of a benchmark under one metric.

    Attributes:
        Q: ``(n_prompts, n_models)`` float64 scores, NaN = missing.
        prompt_ids: ``(n_prompts,)`` int64, primary keys of ``prompt``.
        tasks: ``(n_prompts,)`` task name of each prompt; '' without a task.
        models: name of each column.
        run_ids: ``(n_models,)`` int64, the run behind each column.
        benchmark, metric, condition: of the selection.
        higher_is_better: whether larger scores are better under the metric.
        n_trials: most trials averaged in one score.
        worst, best: the metric's bounds in the order of merit; None without bounds.
        missing: policy that was applied to missing scores; None if the scores are as stored. ``Q`` has no NaN under any
            other than ``bounds``, except as `StoredScores`.
        excluded: models that take no part, because too many of their scores are missing.
        missing_warnings: what the policy left out, filled in or left open.
        measured: ``(n_prompts, n_models)`` whether a score is stored, and not imputed; None if no score is imputed.
        linearized: ``(n_prompts, n_models)`` scores for errors of means and differences, see `linearize_imputed`; None
            if no score is imputed.
    """

    SCORE_UNITS: ClassVar[tuple[Unit, ...]] = ("prompt",)

    Q: NDArray[np.float64]
    prompt_ids: NDArray[np.int64]
    tasks: NDArray[np.str_]
    models: tuple[str, ...]
    run_ids: NDArray[np.int64]
    benchmark: str = ""
    metric: str = ""
    condition: str = "full"
    higher_is_better: bool = True
    n_trials: int = 1
    worst: float | None = None
    best: float | None = None
    missing: Policy | None = None
    excluded: tuple[ExcludedModel, ...] = ()
    missing_warnings: tuple[str, ...] = ()
    measured: NDArray[np.bool_] | None = None
    linearized: NDArray[np.float64] | None = None

    @classmethod
    def load(cls, session: Session, selection: Selection) -> PerformanceMatrix:
        """Load the matrix of a selection; see `load_performance_matrix`."""
        return load_performance_matrix(session, selection)

    def to_arrow(self) -> pa.Table:
        """Return a row for each prompt: its key, its task, and a column for each model."""
        import pyarrow as pa

        names = ["prompt_id", "task", *self.models]
        return pa.Table.from_arrays([self.prompt_ids, pa.array(self.tasks.tolist(), pa.string()), *self.Q.T], names)

    def plot(self) -> Figure:
        """Draw the scores: models by mean, prompts from hard to easy."""
        from tracker.figures.charts import draw_matrix

        columns, rows = (np.argsort(-np.nanmean(self.Q, axis=axis), kind="stable") for axis in (0, 1))
        names = [self.models[column] for column in columns]
        prompts = [f"{key}" for key in self.prompt_ids[rows]]
        return draw_matrix(self.Q[np.ix_(rows, columns)].T, names, prompts, unit=self.metric, title=self.describe())

    def describe(self) -> str:
        """Return the size, and the share of missing scores."""
        missing = float(np.isnan(self.Q).mean()) if self.Q.size else 0.0
        share = f", {missing:.1%} missing" if missing else ""
        return f"{self.n_prompts:,} prompts × {self.n_models:,} models, {self.metric} of {self.benchmark}{share}."

    @property
    def n_prompts(self) -> int:
        """Number of rows."""
        return int(self.Q.shape[0])

    @property
    def n_models(self) -> int:
        """Number of columns."""
        return int(self.Q.shape[1])

    @property
    def is_complete(self) -> bool:
        """Whether no score is missing."""
        return not bool(np.isnan(self.Q).any())

    @property
    def is_binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return bool((np.isnan(self.Q) | (self.Q == 0) | (self.Q == 1)).all())

    @property
    def digest(self) -> str:
        """SHA-256 of scores, prompts and models: equal inputs, equal digest."""
        words = (*self.models, *self.tasks.tolist(), self.metric, self.condition)
        return compute_digest((self.Q, self.prompt_ids, self.run_ids), words)

    def rows(self, keep: NDArray[np.bool_]) -> PerformanceMatrix:
        """Return the matrix with only the prompts where ``keep`` is true."""
        return replace(
            self,
            Q=self.Q[keep],
            prompt_ids=self.prompt_ids[keep],
            tasks=self.tasks[keep],
            measured=None if self.measured is None else self.measured[keep],
            linearized=None if self.linearized is None else self.linearized[keep],
        )

    def columns(self, keep: NDArray[np.bool_]) -> PerformanceMatrix:
        """Return the matrix with only the models where ``keep`` is true."""
        models = tuple(name for name, stays in zip(self.models, keep.tolist(), strict=True) if stays)
        Q = np.ascontiguousarray(self.Q[:, keep])
        return replace(
            self,
            Q=Q,
            models=models,
            run_ids=self.run_ids[keep],
            measured=None if self.measured is None else self.measured[:, keep],
            linearized=None if self.linearized is None else self.linearized[:, keep],
        )

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Worst and best value of the scores that are missing; None if none can be missing."""
        if self.missing != "bounds" or self.worst is None or self.best is None:
            return None
        return self.worst, self.best

    @property
    def metric_bounds(self) -> tuple[float, float] | None:
        """Worst and best value that the metric allows; None without bounds."""
        return None if self.worst is None or self.best is None else (self.worst, self.best)

    @property
    def for_errors(self) -> NDArray[np.float64]:
        """Scores with the same means, whose sample variances include the uncertainty of imputed scores."""
        return self.Q if self.linearized is None else self.linearized

    def without_imputed(self) -> PerformanceMatrix:
        """Return the matrix with imputed scores missing again, for comparisons of single prompts."""
        if self.measured is None:
            return self
        return replace(self, Q=np.where(self.measured, self.Q, np.nan), measured=None, linearized=None)

    @property
    def leaders(self) -> tuple[str, ...]:
        """Models with the best mean over their scores."""
        return best_models(self.models, np.nanmean(self.Q, axis=0), higher_is_better=self.higher_is_better)

    def treat_missing(
        self,
        policy: Policy | None,
        min_coverage: float = MIN_COVERAGE,
        *,
        is_ranked: NDArray[np.bool_] | None = None,
        favoured: tuple[str, ...] | None = None,
    ) -> PerformanceMatrix:
        """Return the matrix after a policy for missing scores.

        Args:
            policy: the policy; None returns the matrix as it is.
            min_coverage: share of the prompts that a model must have scores for.
            is_ranked: ``(n_models,)`` models that the policy is about; None means all.
            favoured: names of models whose missing scores are the best ones under ``worst``.

        Raises:
            SelectionError: no model has enough scores; or see `apply_missing_policy`.
        """
        if policy is None:
            return self
        rule = MissingPolicy(
            name=policy,
            min_coverage=min_coverage,
            worst=self.worst,
            best=self.best,
            metric=self.metric,
            favoured=favoured,
        )
        treated = apply_missing_policy(self.Q, rule, models=self.models, is_ranked=is_ranked)
        if not treated.columns.any():
            raise no_participant(treated.excluded, rule)
        matrix = self if treated.columns.all() else self.columns(treated.columns)
        matrix = matrix if treated.rows.all() else matrix.rows(treated.rows)
        if policy == "impute":
            matrix = matrix.with_imputed(self.Q, treated.Q, treated.columns)
        return replace(
            matrix,
            Q=np.ascontiguousarray(treated.Q),
            missing=policy,
            excluded=treated.excluded,
            missing_warnings=treated.warnings,
        )

    def with_imputed(
        self,
        stored: NDArray[np.float64],
        filled: NDArray[np.float64],
        columns: NDArray[np.bool_],
        weights: NDArray[np.float64] | None = None,
    ) -> PerformanceMatrix:
        """Return the matrix with imputed scores and what their errors need.

        Args:
            stored: ``(n_prompts, k)`` scores that the imputation used, NaN = missing.
            filled: ``(n_prompts, n_models)`` the scores of this matrix after the imputation.
            columns: ``(k,)`` the columns of this matrix among those of ``stored``.
            weights: ``(n_prompts,)`` of the prompts; None for equal weights.
        """
        measured = ~np.isnan(stored[:, columns])
        if measured.all():
            return replace(self, Q=filled)
        linearized = linearize_imputed(stored, filled, columns, weights)
        return replace(self, Q=filled, measured=measured, linearized=linearized)


def load_performance_matrix(session: Session, selection: Selection | str, **choices: Any) -> PerformanceMatrix:
    """Load the performance matrix of a selection.

    It has a row per prompt for which at least one of the selected runs has a score, ordered by the name of the task,
    then by key. It has a column per run, ordered by the name of the model. Trials are averaged. A policy for missing
    scores is applied if the selection names one. ``impute`` estimates the scores of selected models from those of all
    models, and has the prompts of all models, as the leaderboard.

    Args:
        session: the store; only committed data are visible.
        selection: the selection, or the name of a benchmark.
        choices: fields of `Selection`, if only the name of the benchmark is given.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: the selection is empty, or names no metric although there are several.
    """
    chosen = selection if isinstance(selection, Selection) else Selection(benchmark=selection, **choices)
    benchmark = find_benchmark(session, chosen.benchmark)
    select_tasks(session, benchmark, chosen)  # a wrong task is reported before a wrong metric
    metric, _ = find_metric(session, benchmark, chosen, ("prompt",))
    chosen = choose_split(session, benchmark, metric, chosen)
    runs = select_runs(session, benchmark, metric, "prompt", chosen)
    is_ranked = None
    if chosen.missing == "impute" and chosen.models and not chosen.runs:
        selected = {run.id for run in runs}
        runs = select_runs(session, benchmark, metric, "prompt", replace(chosen, models=()))
        is_ranked = np.array([run.id in selected for run in runs], dtype=np.bool_)
    matrix = _load_once(session, benchmark, metric, runs, chosen)
    if matrix is not None:
        return matrix.treat_missing(
            chosen.missing, chosen.least_coverage, is_ranked=is_ranked, favoured=chosen.favoured
        )
    only = load_selected_filter(session, benchmark, chosen)
    raise SelectionError(
        f"No prompt of {benchmark.label} has a score under {metric.name} in the selected runs and tasks. Choose "
        "other tasks or models."
        if only is None
        else only.empties(metric.name)
    )


_SHARED = "suffrage.performance_matrices"
"""Key of a session's matrices."""


def share_matrices(session: Session) -> None:
    """Load equal matrices once from now on, until the session ends; for sessions that write nothing.

    Args:
        session: the store.
    """
    session.info[_SHARED] = {}


def _load_once(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, runs: Sequence[SelectedRun], selection: Selection
) -> PerformanceMatrix | None:
    """Return `load_matrix_of_runs`, or the same matrix as before if the session shares matrices."""
    shared = session.info.get(_SHARED)
    if shared is None:
        return load_matrix_of_runs(session, benchmark, metric, runs, selection)
    parts = selection.tasks, selection.split, selection.filter
    key = benchmark.id, metric.id, tuple((run.id, run.column) for run in runs), *parts
    if key not in shared:
        shared[key] = load_matrix_of_runs(session, benchmark, metric, runs, selection)
    matrix: PerformanceMatrix | None = shared[key]
    return matrix


def load_matrix_of_runs(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, runs: Sequence[SelectedRun], selection: Selection
) -> PerformanceMatrix | None:
    """Load the performance matrix of some runs; None if no prompt has a score.

    Args:
        session: the store; only committed data are visible.
        benchmark: of the selection.
        metric: metric of the scores.
        runs: one per column; a run without scores is a column of NaN.
        selection: tasks, splits and filter; other fields are ignored.

    Raises:
        NotFoundError: a task, or the filter, does not exist.
        SelectionError: the filter belongs to another benchmark, or keeps no prompts.
    """
    tasks = select_tasks(session, benchmark, selection)
    only = load_selected_filter(session, benchmark, selection)
    prompt_ids, task_names = read_prompts(session, tasks, only, selection.split)
    Q, n_trials = read_averages(session, metric.id, [run.id for run in runs], prompt_ids)
    is_measured = _have_any(Q)
    if not is_measured.any():
        return None
    if not is_measured.all():
        Q, prompt_ids, task_names = Q[is_measured], prompt_ids[is_measured], task_names[is_measured]
    return PerformanceMatrix(
        Q=Q,
        prompt_ids=prompt_ids,
        tasks=task_names,
        models=tuple(run.column for run in runs),
        run_ids=np.array([run.id for run in runs], dtype=np.int64),
        benchmark=benchmark.label,
        metric=metric.name,
        condition=join_conditions(runs),
        higher_is_better=metric.higher_is_better,
        n_trials=n_trials,
        worst=metric.worst,
        best=metric.best,
    )


def _have_any(Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows have a score; most have that of the first column."""
    have_any = np.asarray(~np.isnan(Q[:, :1]).all(axis=1))
    rest = np.flatnonzero(~have_any)
    have_any[rest] = ~np.isnan(Q[rest]).all(axis=1)
    return have_any


def best_models(models: Sequence[str], scores: NDArray[np.float64], *, higher_is_better: bool) -> tuple[str, ...]:
    """Return the models with the best score, within the tolerance of ties; NaN is no score."""
    if np.isnan(scores).all():
        return ()
    merit = scores if higher_is_better else -scores
    slack = TIE_TOLERANCE * float(np.nanmax(np.abs(scores)))
    is_best = merit >= np.nanmax(merit) - slack
    return tuple(name for name, leads in zip(models, is_best.tolist(), strict=True) if leads)
