"""The history of a benchmark's models, or of one model on all its benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.notebook.result import NotebookResult, make_table
from tracker.queries.catalogue.model_names import find_model
from tracker.queries.clusters import Clusters, choose_task_effects
from tracker.queries.comparing.run_means import estimate_run_means
from tracker.queries.ranking.history import RunHistory, list_histories
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.selection import Selection
from tracker.recording.pipeline import compute_report

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from tracker.recording.finding import Report

ANALYSIS = "drift"
NO_STEPS = "No model has two runs here, so nothing can have changed."


@dataclass(frozen=True, kw_only=True)
class BenchmarkHistory:
    """The runs of one benchmark, condition and variant.

    Attributes:
        selection: of the runs.
        rows: a row for each run: its mean, and its change from the model's previous run.
        report: of the analysis drift; None if no model has two runs.
    """

    selection: Selection
    rows: tuple[dict[str, Any], ...]
    report: Report | None

    @property
    def label(self) -> str:
        """Name of the benchmark, with the condition and variant."""
        chosen = self.selection
        more = [part for part in (chosen.condition if chosen.condition != "full" else "", chosen.variant) if part]
        return f"{chosen.benchmark} ({', '.join(more)})" if more else chosen.benchmark


@dataclass(frozen=True, kw_only=True)
class Histories(NotebookResult):
    """How scores changed from run to run.

    Attributes:
        parts: a history for each benchmark, condition and variant.
        notices: choices that were made for the user, such as the metric.
    """

    parts: tuple[BenchmarkHistory, ...]
    notices: tuple[str, ...] = ()

    def list_records(self) -> list[dict[str, Any]]:
        """Return the runs of all parts, by name of the column."""
        rows = [
            {
                "benchmark": part.selection.benchmark,
                "condition": part.selection.condition,
                "variant": part.selection.variant,
                "metric": part.selection.metric,
                **row,
            }
            for part in self.parts
            for row in part.rows
        ]
        names = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)
        return [{name: row.get(name) for name in names} for row in rows]

    def to_arrow(self) -> pa.Table:
        """Return a row for each run."""
        return make_table(self.list_records())

    def plot(self, part: int = 0) -> Figure:
        """Draw the mean of every run over time.

        Args:
            part: which of the parts with two runs of a model to draw, from 0.

        Raises:
            SelectionError: no model has two runs, or there is no such part.
        """
        reports = [history.report for history in self.parts if history.report is not None]
        if not 0 <= part < len(reports):
            raise SelectionError(NO_STEPS if not reports else f"part is {part}; use 0 to {len(reports) - 1}.")
        return reports[part].figures["history"]()

    def describe(self) -> str:
        """Return the verdict of each part."""
        verdicts = [
            part.report.summary.headline if len(self.parts) == 1 else f"{part.label}: {part.report.summary.headline}"
            for part in self.parts
            if part.report is not None
        ]
        return " ".join(verdicts) or NO_STEPS

    def list_details(self) -> Sequence[str]:
        """Return evidence, caveats and warnings of each part."""
        reports = [part.report for part in self.parts if part.report is not None]
        return (
            *self.notices,
            *(text for report in reports for text in (*report.summary.evidence, *report.summary.caveats)),
            *(warning for report in reports for warning in report.warnings),
        )


def load_histories(engine: sa.Engine, selection: Selection) -> Histories:
    """Follow the models of a benchmark, or one model on every benchmark where it has runs.

    Args:
        engine: the store.
        selection: its ``benchmark`` is the name of a benchmark or of a model.

    Raises:
        NotFoundError: there is neither a benchmark nor a model of that name, or no such metric.
        SelectionError: the selection is empty.
    """
    with transaction(engine, write=False) as session:
        selections, notices = _list_selections(session, selection)
    return Histories(parts=tuple(_load_history(engine, chosen) for chosen in selections), notices=notices)


def _list_selections(session: Session, selection: Selection) -> tuple[list[Selection], tuple[str, ...]]:
    """Return what to follow: a benchmark, or every benchmark and condition with runs of a model; and notices."""
    name = selection.benchmark
    try:
        find_benchmark(session, name)
    except NotFoundError as no_benchmark:
        try:
            model = find_model(session, name)
        except NotFoundError as no_model:
            known = sorted({*no_benchmark.known, *no_model.known})
            raise NotFoundError("model or benchmark", name, known) from None
    else:
        return [selection], ()
    histories = list_histories(session, name)
    selected = [rerun for rerun in histories if selection.metric in (None, rerun.metric, *rerun.other_metrics)]
    if not selected:
        metrics = sorted({name for rerun in histories for name in (rerun.metric, *rerun.other_metrics)})
        raise NotFoundError("metric with scores of this model", selection.metric, metrics)
    notices = tuple(
        f"Metric of {rerun.benchmark}: {rerun.metric}. Choose another with --metric: {', '.join(rerun.other_metrics)}."
        for rerun in selected
        if selection.metric is None and rerun.other_metrics
    )
    return [
        replace(
            selection,
            benchmark=rerun.benchmark,
            metric=selection.metric or rerun.metric,
            condition=rerun.condition,
            variant=rerun.variant,
            models=(model.name,),
        )
        for rerun in selected
    ], notices


def _load_history(engine: sa.Engine, selection: Selection) -> BenchmarkHistory:
    with transaction(engine, write=False) as session:
        chosen = choose_policy(session, selection, default="bounds", subject="history")
        tasks = select_tasks(session, find_benchmark(session, chosen.benchmark), chosen)
        chosen = replace(chosen, task_effects=choose_task_effects(chosen, list(tasks.values())))
        history = RunHistory.load(session, chosen)
        has_steps = any(len(columns) > 1 for columns in history.columns_by_model.values())
        means = [] if has_steps else estimate_run_means(history, Clusters.load(session, chosen))
    if has_steps:
        report = compute_report(engine, ANALYSIS, selection)
        return BenchmarkHistory(selection=selection, rows=tuple(report.tables["runs"].to_pylist()), report=report)
    rows = (
        {"model": run.model, "run": run.id, "label": run.label, "when": run.when, "is_dated": run.is_dated,
         "n_prompts": mean.n, "mean": mean.mean, "mean_low": mean.low, "mean_high": mean.high}
        for run, mean in zip(history.runs, means, strict=True)
    )  # fmt: skip
    return BenchmarkHistory(selection=selection, rows=tuple(rows), report=None)
