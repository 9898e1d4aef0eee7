"""Resolve the names of a selection to keys: benchmark, metric, runs, tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import AmbiguousError, NotFoundError, SelectionError
from tracker.name_lists import join_names
from tracker.queries.notices import add_notice, set_default_metric
from tracker.queries.run_choice import choose_latest
from tracker.queries.selection import Selection, Unit, restricts_split
from tracker.queries.splits.names import split_condition
from tracker.queries.sql import tables

UNITS: tuple[Unit, ...] = ("prompt", "task")

MAX_RANKED_RUNS = 1000
"""Runs whose benchmarks `find_ranking` looks at."""

MAX_NAMES = 8
MAX_KEY = 2**31 - 1
"""Largest key of a finding or run: PostgreSQL rejects larger ones."""


@dataclass(frozen=True)
class BenchmarkKey:
    """A benchmark as stored.

    Attributes:
        id: primary key.
        label: its name, or name@revision.
        default_metric_id: key of the metric of selections that name none; None if the first stored one is used.
    """

    id: int
    label: str
    default_metric_id: int | None = None


CONFIDENCE = "gold_probability"
"""Prefix of metrics that measure a model's confidence; they are not used for rankings by default."""


@dataclass(frozen=True)
class MetricKey:
    """A metric as stored.

    Attributes:
        id: primary key.
        name: its name.
        higher_is_better: whether larger scores are better.
        lower, upper: smallest and largest possible score; None where unbounded or unknown.
    """

    id: int
    name: str
    higher_is_better: bool
    lower: float | None = None
    upper: float | None = None

    @property
    def worst(self) -> float | None:
        """The worst possible score."""
        return self.lower if self.higher_is_better else self.upper

    @property
    def best(self) -> float | None:
        """The best possible score."""
        return self.upper if self.higher_is_better else self.lower


@dataclass(frozen=True)
class SelectedRun:
    """A selected run.

    Attributes:
        id: primary key.
        column: the model's name; with the run's key if the model is selected more than once.
        condition: ``full`` or ``answer_only``.
        model: the model's name.
    """

    id: int
    column: str
    condition: str
    model: str


def benchmark_label(name: str, revision: str) -> str:
    """Return the label of a benchmark: its name, with the revision if there is one."""
    return f"{name}@{revision}" if revision else name


def find_benchmark(session: Session, name: str) -> BenchmarkKey:
    """Return the benchmark of that name, or name@revision.

    Raises:
        NotFoundError: the benchmark does not exist.
        AmbiguousError: the benchmark has several revisions, and none is the default.
    """
    stored = session.execute(
        sa.select(*(tables.benchmark.c[column] for column in ("id", "name", "revision", "default_metric_id")))
    ).all()
    by_label = {benchmark_label(name, revision): (key, metric) for key, name, revision, metric in stored}
    if name in by_label:
        key, metric = by_label[name]
        return BenchmarkKey(key, name, metric)
    revisions = sorted(
        benchmark_label(stored_name, revision) for _, stored_name, revision, _ in stored if stored_name == name
    )
    if len(revisions) > 1:
        raise AmbiguousError(f"Benchmark {name!r} has several revisions. Name one: {', '.join(revisions)}.")
    if not revisions:
        hint = ""
        if session.execute(sa.select(tables.model.c.id).where(tables.model.c.name == name)).first():
            hint = f"{name!r} is a model: `suffrage history {name}` shows its scores."
        raise NotFoundError("benchmark", name, sorted(by_label), hint)
    key, metric = by_label[revisions[0]]
    return BenchmarkKey(key, revisions[0], metric)


def has_scores(unit: Unit, split: Sequence[str] = ()) -> sa.ColumnElement[bool]:
    """Return whether `Run` has scores under `Metric`, of prompts or of whole tasks.

    A scalar subquery, so that both engines look up one key instead of reading all scores.

    Args:
        unit: of the scores.
        split: splits of the prompts; none means all. Ignored for scores of whole tasks.
    """
    scores = tables.score if unit == "prompt" else tables.task_score
    values = (
        sa.select(sa.literal(1))
        .where(scores.c.run_id == tables.run.c.id, scores.c.metric_id == tables.metric.c.id)
        .limit(1)
    )
    if unit == "prompt" and restricts_split(split):
        values = values.join(tables.prompt, tables.prompt.c.id == tables.score.c.prompt_id).where(
            split_condition(split)
        )
    return values.correlate(tables.run, tables.metric).scalar_subquery().is_not(None)


def find_metric(
    session: Session,
    benchmark: BenchmarkKey,
    selection: Selection,
    units: Sequence[Unit],
    *,
    option: str = "--metric NAME",
) -> tuple[MetricKey, Unit]:
    """Return the metric of a selection, and the unit of its scores.

    A selection that names none gets the default metric of the benchmark: the chosen one, else the first that was stored
    besides the probabilities of reference answers. If there are several, a notice reports it.

    Args:
        session: the store.
        benchmark: of the selection.
        selection: names a metric, or none.
        units: accepted units; the first with any scores under the metric is used.
        option: option that names another metric, for the notice.

    Raises:
        NotFoundError: the benchmark has no scores under the metric.
        SelectionError: the benchmark has no scores.
    """
    by_unit = {unit: list_metrics(session, benchmark, selection, unit) for unit in units}
    for unit, metrics in by_unit.items():
        for metric in metrics:
            if selection.metric == metric.name:
                return metric, unit
    if selection.metric is None:
        metrics = [metric for unit in units for metric in by_unit[unit]]
        main = {metric.id for metric in metrics if not metric.name.startswith(CONFIDENCE)}
        default = min(metrics, key=lambda metric: default_order(benchmark, metric.id, metric.name), default=None)
        if default is not None:
            if len(main) > 1:
                _report_default(session, benchmark, default, metrics, option)
            return default, next(unit for unit in units if default in by_unit[unit])
    raise _explain_no_scores(session, benchmark, selection, units)


def default_order(benchmark: BenchmarkKey, metric_id: int, name: str) -> tuple[bool, bool]:
    """Return a key that sorts the metrics of a benchmark, the default first; ties stay in the order of storage.

    Args:
        benchmark: with the chosen default, if there is one.
        metric_id: key of the metric.
        name: name of the metric.
    """
    return metric_id != benchmark.default_metric_id, name.startswith(CONFIDENCE)


def find_ranking(session: Session, run_ids: Sequence[int]) -> str | None:
    """Return the label of the first benchmark of some runs that can be ranked; None without one."""
    run, benchmark = tables.run.c, tables.benchmark.c
    stored = session.execute(
        sa.select(benchmark.id, benchmark.name, benchmark.revision)
        .where(benchmark.id.in_(sa.select(run.benchmark_id).where(run.id.in_(run_ids[:MAX_RANKED_RUNS]))))
        .order_by(benchmark.id)
    )
    for key, name, revision in stored.all():
        label = benchmark_label(name, revision)
        selection = Selection(benchmark=label)
        if any(list_metrics(session, BenchmarkKey(key, label), selection, unit) for unit in UNITS):
            return label
    return None


def list_metrics(session: Session, benchmark: BenchmarkKey, selection: Selection, unit: Unit) -> list[MetricKey]:
    """Return the metrics with scores in a selection, in the order in which they were stored first."""
    query = (
        sa.select(*(tables.metric.c[name] for name in ("id", "name", "higher_is_better", "lower", "upper")))
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(*_run_conditions(benchmark, selection), has_scores(unit))
        .group_by(*(tables.metric.c[name] for name in ("id", "name", "higher_is_better", "lower", "upper")))
        .order_by(sa.func.min(tables.run.c.id), tables.metric.c.id)
    )
    return [MetricKey(*row) for row in session.execute(query)]


def _report_default(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, metrics: Sequence[MetricKey], option: str
) -> None:
    names = join_names(sorted({known.name for known in metrics} - {metric.name}), MAX_NAMES)
    text = f"Metric of {benchmark.label}: {metric.name}, its default. Choose another with {option}: {names}"
    add_notice(session, text)
    set_default_metric(session, benchmark.id, metric.name)


def select_runs(
    session: Session,
    benchmark: BenchmarkKey,
    metric: MetricKey,
    unit: Unit | None,
    selection: Selection,
    *,
    every: bool = False,
) -> list[SelectedRun]:
    """Return the runs of a selection, in the order of the models' names.

    Unless runs are selected, these are one complete run of each model with scores under the metric; see
    `tracker.queries.run_choice`.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric for which the runs must have scores.
        unit: of prompts, of tasks, or (None) of either.
        selection: models, runs, condition, variant and date.
        every: whether to return all complete runs of each model.

    Raises:
        NotFoundError: a model or run does not exist.
        SelectionError: no run is left.
    """
    rows = _find_scored_runs(session, benchmark, metric, unit, selection)
    if selection.runs:
        _check_runs_exist(session, benchmark, metric, selection.runs, {row.id for row in rows})
    if selection.models:
        names = resolve_model_names(session, selection.models, [row.name for row in rows])
        rows = [row for row in rows if row.name in names]
    if not (selection.runs or every):
        rows = choose_latest(session, metric.id, rows, by_task=unit is None, split=selection.split)
    if not rows:
        raise _explain_no_scores(session, benchmark, selection, ("prompt", "task") if unit is None else (unit,))
    return _as_columns(rows)


def select_runs_of_models(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, selection: Selection, models: Collection[str]
) -> list[SelectedRun]:
    """Return the run of each of some models that `select_runs` would return, with scores of prompts under a metric.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric for which the runs must have scores.
        selection: condition, variant and date; it must not name runs.
        models: names.
    """
    rows = _find_scored_runs(session, benchmark, metric, "prompt", selection)
    rows = [row for row in rows if row.name in models]
    return _as_columns(choose_latest(session, metric.id, rows, by_task=False, split=selection.split))


def list_scored_runs(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, unit: Unit | None, selection: Selection
) -> list[SelectedRun]:
    """Return every complete run of a selection with scores under a metric, whatever its models.

    Args:
        session: the store.
        benchmark: of the selection.
        metric: metric for which the runs must have scores.
        unit: of prompts, of tasks, or (None) of either.
        selection: runs, condition, variant, split and date.
    """
    return _as_columns(_find_scored_runs(session, benchmark, metric, unit, selection))


def join_conditions(runs: Sequence[SelectedRun]) -> str:
    """Return the conditions of some runs: ``full``, ``answer_only`` or ``answer_only+full``."""
    return "+".join(sorted({run.condition for run in runs}))


def select_tasks(session: Session, benchmark: BenchmarkKey, selection: Selection) -> dict[int, str]:
    """Return the name of each task of a selection by its key, in the order of the names.

    Tasks may be selected by an alias.

    Raises:
        NotFoundError: the benchmark has no task of that name.
    """
    stored = session.execute(
        sa.select(tables.task.c.id, tables.task.c.name).where(tables.task.c.benchmark_id == benchmark.id)
    ).all()
    names = {row.name for row in stored}
    alias = tables.task_alias.c
    rows = session.execute(sa.select(alias.name, alias.task_id).where(alias.benchmark_id == benchmark.id))
    aliases = {row.name: row.task_id for row in rows if row.name in selection.tasks}
    for name in selection.tasks:
        if name not in names and name not in aliases:
            raise NotFoundError("task", name, sorted(names))
    chosen = {row.id for row in stored if row.name in selection.tasks and row.name not in aliases} | {*aliases.values()}
    kept = [row for row in stored if not selection.tasks or row.id in chosen]
    return {row.id: row.name for row in sorted(kept, key=lambda row: row.name)}


def _find_scored_runs(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, unit: Unit | None, selection: Selection
) -> list[sa.Row[*tuple[Any, ...]]]:
    """Return key, model and condition of every run of a selection with scores under a metric, by key."""
    split = () if selection.runs else selection.split
    is_scored = has_scores(unit, split) if unit else sa.or_(has_scores("prompt", split), has_scores("task"))
    query = (
        sa.select(tables.run.c.id, tables.model.c.name, tables.run.c.condition)
        .join(tables.model, tables.model.c.id == tables.run.c.model_id)
        .join(tables.metric, tables.metric.c.id == metric.id)
        .where(*_run_conditions(benchmark, selection), is_scored)
        .order_by(tables.run.c.id)
    )
    return list(session.execute(query))


def _as_columns(rows: Sequence[sa.Row[Any]]) -> list[SelectedRun]:
    times = Counter(row.name for row in rows)
    return [
        SelectedRun(row.id, row.name if times[row.name] == 1 else f"{row.name} (run {row.id})", row.condition, row.name)
        for row in sorted(rows, key=lambda row: (row.name, row.id))
    ]


def _run_conditions(benchmark: BenchmarkKey, selection: Selection) -> list[sa.ColumnElement[bool]]:
    of_benchmark = tables.run.c.benchmark_id == benchmark.id
    if selection.runs:  # explicitly selected runs may have any condition and status: hidden, superseded, partial
        return [of_benchmark, tables.run.c.id.in_(key for key in selection.runs if key <= MAX_KEY)]
    terms = [of_benchmark, tables.run.c.status == "complete"]
    terms += [tables.run.c.condition == selection.condition, tables.run.c.variant == selection.variant]
    if selection.as_of is not None:
        moment = selection.as_of if selection.as_of.tzinfo else selection.as_of.replace(tzinfo=UTC)
        terms.append(tables.run.c.ingested <= moment.astimezone(UTC))
    return terms


def _check_runs_exist(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, run_ids: Sequence[int], scored_ids: set[int]
) -> None:
    for key in sorted(set(run_ids) - scored_ids):
        looked_up = sa.select(tables.run).where(tables.run.c.id == key)
        run = session.execute(looked_up).first() if key <= MAX_KEY else None
        if run is None or run.benchmark_id != benchmark.id:
            known = session.scalars(
                sa.select(tables.run.c.id).where(tables.run.c.benchmark_id == benchmark.id).order_by(tables.run.c.id)
            )
            raise NotFoundError(f"run of {benchmark.label}", key, known.all())
        raise SelectionError(f"Run {key} has no scores under {metric.name}. Leave it out, or choose another metric.")


def resolve_model_names(session: Session, selected: Sequence[str], known: Sequence[str]) -> set[str]:
    """Return the names of some models, which may be selected by an alias.

    Args:
        session: the store.
        selected: names and aliases.
        known: names of the models with scores.

    Raises:
        NotFoundError: a model has no scores.
    """
    aliases = sa.select(tables.model_alias.c.name.label("alias"), tables.model.c.name).join(
        tables.model, tables.model.c.id == tables.model_alias.c.model_id
    )
    names = {row.alias: row.name for row in session.execute(aliases)} | {name: name for name in known}
    for name in selected:
        if names.get(name) not in known:
            raise NotFoundError("model with such scores", name, sorted(set(known)))
    return {names[name] for name in selected}


def _explain_no_scores(
    session: Session, benchmark: BenchmarkKey, selection: Selection, units: Sequence[Unit]
) -> NotFoundError | SelectionError:
    """Return why a selection is empty: the first of its conditions that nothing stored meets."""
    if selection.runs:
        _check_runs_exist(
            session, benchmark, MetricKey(0, selection.metric or "any metric", True), selection.runs, set()
        )
    every = (
        sa.select(tables.metric.c.name, tables.run.c.condition, tables.run.c.variant)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(tables.run.c.benchmark_id == benchmark.id, tables.run.c.status == "complete")
        .distinct()
    )
    scored = session.execute(every.where(sa.or_(*(has_scores(unit) for unit in units)))).all()
    if not scored:
        if units == ("prompt",) and session.execute(every.where(has_scores("task"))).first():
            return SelectionError(
                f"{benchmark.label} has scores of whole tasks only, but scores per prompt are needed. Analyses of "
                "tasks are social-choice, voting-rules, task-subsets and sensitivity-sweep."
            )
        count = sa.select(sa.func.count()).where(tables.run.c.benchmark_id == benchmark.id)
        n = session.scalar(count) or 0
        if n and not session.scalar(count.where(tables.run.c.status == "complete")):
            return SelectionError(
                f"{benchmark.label} has no complete runs: its {n} runs are hidden, superseded or partial (damaged or "
                "being evaluated), and can be selected only with --runs. "
                f"List them: suffrage runs list --all --benchmark {benchmark.label}"
            )
        return SelectionError(f"{benchmark.label} has no scores yet. Ingest results: suffrage ingest PATH")
    metrics = sorted({row.name for row in scored})
    if selection.metric is not None and selection.metric not in metrics:
        return NotFoundError(f"metric with scores in {benchmark.label}", selection.metric, metrics)
    if (selection.condition, selection.variant) not in {(row.condition, row.variant) for row in scored}:
        stored = sorted({row.condition + (f" ({row.variant})" if row.variant else "") for row in scored})
        selected = selection.condition + (f" ({selection.variant})" if selection.variant else "")
        return SelectionError(
            f"{benchmark.label} has no run that is {selected}. Stored: {', '.join(stored)}. Select with --condition "
            "and --variant."
        )
    if selection.as_of is not None:
        return SelectionError(f"{benchmark.label} has no runs stored by {selection.as_of}. Choose a later date.")
    where = f" under {selection.metric}" if selection.metric else ""
    where += f" in split {', '.join(selection.split)}" if selection.split else ""
    return SelectionError(f"No run of {benchmark.label} has scores{where} under the condition {selection.condition}.")
