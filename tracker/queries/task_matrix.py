"""Load scores of tasks as a matrix: rows are tasks, columns are models."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.notebook.result import NotebookResult
from tracker.queries.filtering.prompt_filter import load_selected_filter, make_task_scores_error
from tracker.queries.performance import best_models
from tracker.queries.ranking.missing import ExcludedModel, MissingPolicy
from tracker.queries.ranking.task_means import ScoresByTask, TaskMeans, average_treated
from tracker.queries.resolution import MetricKey, find_benchmark, find_metric, select_tasks
from tracker.queries.scores import compute_digest, read_prompts, read_scores
from tracker.queries.selected_runs.runs import join_conditions, select_runs
from tracker.queries.selection import AnalysisInput, Policy, Selection, Unit, restricts_split
from tracker.queries.splits.choice import choose_split
from tracker.queries.sql import tables

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class TaskMatrix(AnalysisInput, NotebookResult):
    """The task matrix of a benchmark under one metric.

    Attributes:
        T: ``(n_tasks, n_models)`` float64: the published score of the task, else the mean over its prompts; NaN =
            missing.
        n_prompts: ``(n_tasks, n_models)`` int64 prompts behind each cell; 0 if missing or not published.
        stderr: ``(n_tasks, n_models)`` float64 published standard errors; NaN without any.
        tasks: name of each row.
        models: name of each column.
        run_ids: ``(n_models,)`` int64, the run behind each column.
        benchmark, metric, condition: of the selection.
        higher_is_better: whether larger scores are better under the metric.
        worst, best: the metric's bounds in the order of merit; None without bounds.
        coverage: ``(n_tasks, n_models)`` share of the task's prompts with a score behind each cell; 1 for a published
            score, 0 for a missing one; None if unknown.
        missing: policy that was applied to missing scores of prompts; None if the scores are as stored.
        excluded: models that take no part, because too many of their scores are missing.
        missing_warnings: what the policy left out or filled in, and cells that are means over part of a task.
    """

    SCORE_UNITS: ClassVar[tuple[Unit, ...]] = ("prompt", "task")

    T: NDArray[np.float64]
    n_prompts: NDArray[np.int64]
    stderr: NDArray[np.float64]
    tasks: tuple[str, ...]
    models: tuple[str, ...]
    run_ids: NDArray[np.int64]
    benchmark: str = ""
    metric: str = ""
    condition: str = "full"
    higher_is_better: bool = True
    worst: float | None = None
    best: float | None = None
    coverage: NDArray[np.float64] | None = None
    missing: Policy | None = None
    excluded: tuple[ExcludedModel, ...] = ()
    missing_warnings: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return a row for each task: its name, and a column for each model."""
        import pyarrow as pa

        return pa.Table.from_arrays([pa.array(self.tasks, pa.string()), *self.T.T], ["task", *self.models])

    def plot(self) -> Figure:
        """Draw the scores of the tasks."""
        from tracker.figures.charts import draw_matrix

        return draw_matrix(self.T, self.tasks, self.models, unit=self.metric, title=self.describe())

    def describe(self) -> str:
        """Return the size."""
        return f"{len(self.tasks):,} tasks × {len(self.models):,} models, {self.metric} of {self.benchmark}."

    @classmethod
    def load(cls, session: Session, selection: Selection) -> TaskMatrix:
        """Load the matrix of a selection; see `load_task_matrix`."""
        return load_task_matrix(session, selection)

    @property
    def n_tasks(self) -> int:
        """Number of rows."""
        return int(self.T.shape[0])

    @property
    def n_models(self) -> int:
        """Number of columns."""
        return int(self.T.shape[1])

    @property
    def is_complete(self) -> bool:
        """Whether no score is missing."""
        return not bool(np.isnan(self.T).any())

    @property
    def digest(self) -> str:
        """SHA-256 of scores, tasks and models: equal inputs, equal digest."""
        words = (*self.models, *self.tasks, self.metric, self.condition)
        return compute_digest((self.T, self.run_ids), words)

    def rows(self, keep: NDArray[np.bool_]) -> TaskMatrix:
        """Return the matrix with only the tasks where ``keep`` is true."""
        tasks = tuple(name for name, kept in zip(self.tasks, keep, strict=True) if kept)
        coverage = None if self.coverage is None else self.coverage[keep]
        T, n_prompts, stderr = self.T[keep], self.n_prompts[keep], self.stderr[keep]
        return replace(self, T=T, n_prompts=n_prompts, stderr=stderr, coverage=coverage, tasks=tasks)

    def columns(self, keep: NDArray[np.bool_]) -> TaskMatrix:
        """Return the matrix with only the models where ``keep`` is true."""
        models = tuple(name for name, stays in zip(self.models, keep.tolist(), strict=True) if stays)
        coverage = None if self.coverage is None else self.coverage[:, keep]
        return replace(
            self,
            T=self.T[:, keep],
            n_prompts=self.n_prompts[:, keep],
            stderr=self.stderr[:, keep],
            coverage=coverage,
            models=models,
            run_ids=self.run_ids[keep],
        )

    @property
    def leaders(self) -> tuple[str, ...]:
        """Models with the best mean over their tasks."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a model without a score has no mean
            means = np.nanmean(self.T, axis=0)
        return best_models(self.models, means, higher_is_better=self.higher_is_better)

    def complete(self) -> TaskMatrix:
        """Return the matrix of the tasks for which every model has a score."""
        return self.rows(np.asarray(~np.isnan(self.T).any(axis=1)))


def load_task_matrix(session: Session, selection: Selection | str, **choices: Any) -> TaskMatrix:
    """Load the task matrix of a selection: published scores of tasks, else means over their prompts.

    With a filter or a split, scores are always means over the selected prompts, because published scores cover all
    prompts.

    It has a row per task for which at least one of the selected runs has a score, ordered by name. It has a column per
    run, ordered by the name of the model.

    Args:
        session: the store; only committed data are visible.
        selection: the selection, or the name of a benchmark.
        choices: fields of `Selection`, if only the name of the benchmark is given.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: the selection is empty, names no metric although there are several, or filters the prompts of a
            benchmark that has scores of whole tasks only.
    """
    chosen = selection if isinstance(selection, Selection) else Selection(benchmark=selection, **choices)
    benchmark = find_benchmark(session, chosen.benchmark)
    tasks = select_tasks(session, benchmark, chosen)
    metric, unit = find_metric(session, benchmark, chosen, ("prompt", "task"))
    is_partial = chosen.filter is not None or restricts_split(chosen.split)
    if unit == "task" and is_partial:
        raise make_task_scores_error(benchmark, metric.name)
    chosen = choose_split(session, benchmark, metric, chosen) if unit == "prompt" else chosen
    only = load_selected_filter(session, benchmark, chosen)
    runs = select_runs(session, benchmark, metric, "prompt" if is_partial else None, chosen)
    run_ids, models = [run.id for run in runs], tuple(run.column for run in runs)
    published = [] if is_partial else _read_published(session, metric, run_ids, tasks)
    prompt_ids, names = read_prompts(session, tasks, only, chosen.split)
    Q, labels = read_scores(session, metric.id, run_ids, prompt_ids), tuple(tasks.values())
    scores = ScoresByTask(Q=Q, names=names, tasks=labels, models=models)
    means = _average(scores, chosen, metric, ~np.isin(run_ids, [run_id for _, run_id, *_ in published]))
    stderr = _add_published(means, published, run_ids, list(tasks))
    is_measured = np.asarray(~np.isnan(means.T).all(axis=1))
    if not is_measured.any():
        empty = f"No task of {benchmark.label} has a score under {metric.name} in the selected runs. Choose other "
        raise SelectionError(f"{empty}tasks or models." if only is None else only.empties(metric.name))
    matrix = TaskMatrix(
        T=means.T,
        n_prompts=means.n_prompts,
        stderr=stderr,
        tasks=labels,
        models=models,
        run_ids=np.array(run_ids, dtype=np.int64),
        benchmark=benchmark.label,
        metric=metric.name,
        condition=join_conditions(runs),
        higher_is_better=metric.higher_is_better,
        worst=metric.worst,
        best=metric.best,
        coverage=means.coverage,
        missing=chosen.missing,
        excluded=means.excluded,
        missing_warnings=means.warnings,
    ).rows(is_measured)
    return matrix if means.takes_part.all() else matrix.columns(means.takes_part)


def _average(scores: ScoresByTask, selection: Selection, metric: MetricKey, is_treated: NDArray[np.bool_]) -> TaskMeans:
    """Return the means of the tasks, after the policy for missing scores if the selection names one."""
    if selection.missing is None:
        return scores.average()
    policy = MissingPolicy(
        name=selection.missing,
        min_coverage=selection.least_coverage,
        worst=metric.worst,
        best=metric.best,
        metric=metric.name,
        favoured=selection.favoured,
    )
    return average_treated(scores, policy, is_treated)


def _add_published(
    means: TaskMeans,
    published: Sequence[tuple[int, int, float, float | None, int | None]],
    run_ids: Sequence[int],
    task_ids: Sequence[int],
) -> NDArray[np.float64]:
    """Replace means by published scores, in place; return their standard errors."""
    stderr = np.full(means.T.shape, np.nan)
    row = {key: i for i, key in enumerate(task_ids)}
    column = {key: j for j, key in enumerate(run_ids)}
    for task_id, run_id, value, error, count in published:
        cell = row[task_id], column[run_id]
        means.T[cell], stderr[cell] = value, np.nan if error is None else error
        means.n_prompts[cell] = count or means.n_prompts[cell]
        means.coverage[cell] = 1.0
    return stderr


def _read_published(
    session: Session, metric: MetricKey, run_ids: Sequence[int], tasks: dict[int, str]
) -> list[tuple[int, int, float, float | None, int | None]]:
    """Return the published scores of some tasks."""
    known = tables.task_score.c
    query = sa.select(known.task_id, known.run_id, known.value, known.stderr, known.n_prompts).where(
        known.metric_id == metric.id, known.run_id.in_(run_ids)
    )
    return [tuple(row) for row in session.execute(query).all() if row.task_id in tasks]
