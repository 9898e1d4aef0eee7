"""Load every run of a benchmark in chronological order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.queries.catalogue.listing import to_utc
from tracker.queries.catalogue.model_names import find_model
from tracker.queries.performance import PerformanceMatrix, load_matrix_of_runs
from tracker.queries.ranking.missing import ExcludedModel, MissingPolicy, apply_missing_policy
from tracker.queries.resolution import BenchmarkKey, benchmark_label, default_order, find_benchmark, find_metric
from tracker.queries.selected_runs.conditions import has_scores
from tracker.queries.selected_runs.runs import SelectedRun, select_runs
from tracker.queries.selection import AnalysisInput, Selection, Unit
from tracker.queries.splits.choice import choose_split
from tracker.queries.sql import tables
from tracker.statistics.ranking import overflow_exponent


@dataclass(frozen=True, kw_only=True)
class HistoryRun:
    """A run in the history of its model.

    Attributes:
        id: its key.
        model: name of the model.
        label: the harness's time stamp, or a number assigned at ingestion.
        when: time of the run if known, else time of ingestion, UTC.
        is_dated: whether the time of the run is known.
        settings: settings of the run, by name.
    """

    id: int
    model: str
    label: str
    when: datetime
    is_dated: bool
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunHistory(AnalysisInput):
    """Scores of every complete run of some models on one benchmark under one metric.

    Attributes:
        scores: a column per run, ordered by model, then by time.
        runs: the run of each column. A model's runs are ordered by the time they were run if all times are known, else
            by the time of ingestion.
    """

    SCORE_UNITS: ClassVar[tuple[Unit, ...]] = ("prompt",)

    scores: PerformanceMatrix
    runs: tuple[HistoryRun, ...]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> RunHistory:
        """Load the history of a selection: of all its models, or of the selected runs.

        Two runs are compared on their own prompts, so a policy for missing scores is applied to each pair of runs, not
        here; ``impute`` estimates the scores of all runs together, see `with_imputed`. Runs below the least coverage of
        their model's prompts are left out.

        Raises:
            NotFoundError: a benchmark, metric, model, task or run does not exist.
            SelectionError: the selection is empty.
        """
        benchmark = find_benchmark(session, selection.benchmark)
        metric, _ = find_metric(session, benchmark, selection, ("prompt",))
        selection = choose_split(session, benchmark, metric, selection)
        runs = select_runs(session, benchmark, metric, "prompt", selection, every=True)
        run, model = tables.run.c, tables.model.c
        terms: list[sa.ColumnElement[bool]] = (
            [run.id.in_(selection.runs)]
            if selection.runs
            else [
                run.status == "complete",
                run.condition == selection.condition,
                run.variant == selection.variant,
                model.name.in_({selected.model for selected in runs}),
            ]
        )
        if selection.as_of is not None:
            moment = selection.as_of if selection.as_of.tzinfo else selection.as_of.replace(tzinfo=UTC)
            terms.append(run.ingested <= moment.astimezone(UTC))
        is_scored = has_scores(session, "prompt", () if selection.runs else selection.split, benchmark_id=benchmark.id)
        rows = session.execute(
            sa.select(run.id, run.label, run.started, run.ingested, run.condition, run.settings, model.name)
            .join(tables.model, model.id == run.model_id)
            .join(tables.metric, tables.metric.c.id == metric.id)
            .where(run.benchmark_id == benchmark.id, is_scored, *terms)
        ).all()
        undated = {row.name for row in rows if row.started is None}
        ordered = sorted(
            rows, key=lambda row: (row.name, row.id if row.name in undated else to_utc(row.started).timestamp(), row.id)
        )
        columns = [SelectedRun(row.id, f"{row.name} (run {row.id})", row.condition, row.name) for row in ordered]
        scores = load_matrix_of_runs(session, benchmark, metric, columns, selection)
        if scores is None:
            raise SelectionError(
                f"No prompt of {benchmark.label} has a score under {metric.name} in the selected tasks."
            )
        history = cls(
            scores=replace(scores, missing=selection.missing),
            runs=tuple(
                HistoryRun(
                    id=row.id,
                    model=row.name,
                    label=row.label,
                    when=to_utc(row.started or row.ingested),
                    is_dated=row.started is not None,
                    settings=row.settings or {},
                )
                for row in ordered
            ),
        )
        if selection.missing is None:
            return history
        history = history.with_coverage(selection.least_coverage)
        return history.with_imputed() if selection.missing == "impute" else history

    def with_coverage(self, min_coverage: float) -> RunHistory:
        """Return the history of the runs with enough of the prompts that any run of their model has scores for.

        Args:
            min_coverage: share of these prompts, in [0, 1].

        Raises:
            SelectionError: a score is missing, and the policy is ``fail``.
        """
        seen, excluded = ~np.isnan(self.scores.Q), []
        for columns in self.columns_by_model.values():
            n_expected = int(seen[:, columns].any(axis=1).sum())
            for column in columns:
                run, n = self.runs[column], int(seen[:, column].sum())
                if n < n_expected and self.scores.missing == "fail":
                    raise SelectionError(
                        f"Scores are missing: run {run.id} of {run.model} has {n:,} of the {n_expected:,} prompts of "
                        "its model's runs. Choose other --runs, or --missing bounds, common, worst or impute."
                    )
                if n < min_coverage * n_expected - 1e-9:
                    name = f"run {run.id} of {run.model}"
                    excluded.append((column, ExcludedModel(model=name, n=n, n_expected=n_expected)))
        if not excluded:
            return self
        kept = np.ones(len(self.runs), dtype=np.bool_)
        kept[[column for column, _ in excluded]] = False
        runs = tuple(run for run, stays in zip(self.runs, kept.tolist(), strict=True) if stays)
        scores = replace(self.scores.columns(kept), excluded=tuple(run for _, run in excluded))
        return replace(self, scores=scores, runs=runs)

    def with_imputed(self) -> RunHistory:
        """Return the history with what missing scores are estimated to be, from all runs; the stored scores stay.

        Raises:
            SelectionError: too many scores are missing.
        """
        scores = self.scores
        policy = MissingPolicy(
            name="impute", min_coverage=0.0, worst=scores.worst, best=scores.best, metric=scores.metric
        )
        treated = apply_missing_policy(scores.Q, policy, models=scores.models)
        imputed = scores.with_imputed(scores.Q, treated.Q, treated.columns)
        if imputed.linearized is None:
            return self
        return replace(self, scores=replace(imputed, Q=scores.Q, missing_warnings=treated.warnings))

    @property
    def missing_warnings(self) -> tuple[str, ...]:
        """The runs that are left out, with the reason, and the scores that are imputed."""
        removed = (f"{run.model} is left out: {run.reason} (--min-coverage)." for run in self.scores.excluded)
        return (*removed, *self.scores.missing_warnings)

    @property
    def digest(self) -> str:
        """SHA-256 of scores, prompts and runs: equal inputs, equal digest."""
        return self.scores.digest

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The runs behind the columns."""
        return tuple(run.id for run in self.runs)

    @property
    def means(self) -> list[tuple[int, float]]:
        """Return the number of scored prompts of each run, and their mean; NaN without any."""
        Q = self.scores.Q
        counts, exponent = (~np.isnan(Q)).sum(axis=0), overflow_exponent(Q)
        sums = np.nansum(np.ldexp(Q, -exponent), axis=0)
        return [
            (n, math.ldexp(total / n, exponent) if n else np.nan)
            for n, total in zip(counts.tolist(), sums.tolist(), strict=True)
        ]

    @property
    def columns_by_model(self) -> dict[str, list[int]]:
        """Return the columns of each model, in the order of its runs."""
        columns: dict[str, list[int]] = {}
        for column, run in enumerate(self.runs):
            columns.setdefault(run.model, []).append(column)
        return columns


@dataclass(frozen=True, kw_only=True)
class AvailableHistory:
    """A benchmark, condition and variant for which a model has a history.

    Attributes:
        benchmark: its name.
        metric: the default metric of the benchmark if the model has scores under it, else the first one stored.
        other_metrics: names of the others.
        condition, variant: of the runs.
        n_runs: complete runs with scores of prompts under the metric.
    """

    benchmark: str
    metric: str
    other_metrics: tuple[str, ...]
    condition: str
    variant: str
    n_runs: int


def list_histories(session: Session, model: str) -> list[AvailableHistory]:
    """List every benchmark, condition and variant under which a model has scores of prompts, by name.

    Args:
        session: the store.
        model: its name or alias.

    Raises:
        NotFoundError: the model does not exist.
        SelectionError: the model has no scores of prompts.
    """
    model_id = find_model(session, model).id
    run, metric, benchmark = tables.run.c, tables.metric.c, tables.benchmark.c
    rows = session.execute(
        sa.select(
            benchmark.id.label("benchmark_id"),
            benchmark.name.label("benchmark"),
            benchmark.revision,
            benchmark.default_metric_id,
            run.condition,
            run.variant,
            metric.name.label("metric"),
            metric.id.label("metric_id"),
            sa.func.count(sa.distinct(run.id)).label("n_runs"),
        )
        .select_from(sa.join(tables.run, tables.benchmark, benchmark.id == run.benchmark_id))
        .join(tables.metric, has_scores(session, "prompt"))
        .where(run.model_id == model_id, run.status == "complete")
        .group_by(
            benchmark.id,
            benchmark.name,
            benchmark.revision,
            benchmark.default_metric_id,
            run.condition,
            run.variant,
            metric.id,
            metric.name,
        )
        .order_by(sa.func.min(run.id), metric.id)
    ).all()
    if not rows:
        raise SelectionError(f"{model} has no scores of prompts yet, so it has no history to compare.")
    grouped: dict[tuple[str, str, str], list[sa.Row[Any]]] = {}
    for row in rows:
        place = (benchmark_label(row.benchmark, row.revision), row.condition, row.variant)
        grouped.setdefault(place, []).append(row)
    return [_describe_history(*place, metrics) for place, metrics in sorted(grouped.items())]


def _describe_history(label: str, condition: str, variant: str, metrics: list[sa.Row[Any]]) -> AvailableHistory:
    """Return a history of some metrics, which are in the order of storage."""
    key = BenchmarkKey(metrics[0].benchmark_id, label, metrics[0].default_metric_id)
    ordered = sorted(metrics, key=lambda row: default_order(key, row.metric_id, row.metric))
    return AvailableHistory(
        benchmark=label,
        metric=ordered[0].metric,
        other_metrics=tuple(row.metric for row in ordered[1:]),
        condition=condition,
        variant=variant,
        n_runs=ordered[0].n_runs,
    )
