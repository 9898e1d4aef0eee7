"""Queries of the store in Python: lists, arrays and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Unpack

import sqlalchemy as sa

from tracker.api.options import (
    COMPARISON_DEFAULTS,
    SELECTION_DEFAULTS,
    DesignOptions,
    MissingOptions,
    WeightedOptions,
    named_options,
)
from tracker.api.sealed_rows import loads_sealed_rows
from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.notebook.rows import BarChart, Rows
from tracker.notebook.tables import TableResult
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.orm import Session

    from tracker.api.finding_result import FindingResult
    from tracker.queries.catalogue.listing import BenchmarkRow, ModelRow, RunRow
    from tracker.queries.comparing.study_plan import StudyPlan
    from tracker.queries.findings.finding_records import FindingRow
    from tracker.queries.performance import PerformanceMatrix
    from tracker.queries.ranking.leaderboard_result import Leaderboard
    from tracker.queries.related_models.related_pairs import RelatedPairs
    from tracker.queries.task_matrix import TaskMatrix
    from tracker.recording.comparing.histories import Histories
    from tracker.recording.multiplicity.recorded_looks import RecordedLooks
    from tracker.recording.verdict.benchmark_verdict import Verdict


@loads_sealed_rows
class StoreQueries:
    """Read-only queries of a store."""

    engine: sa.Engine

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a read-only session, for the functions of `tracker.queries`."""
        with transaction(self.engine, write=False) as session:
            yield session

    def benchmarks(self) -> Rows[BenchmarkRow]:
        """List all benchmarks, by name."""
        from tracker.queries.catalogue.listing import list_benchmarks

        with self.session() as session:
            bars: BarChart[BenchmarkRow] = BarChart(
                label=lambda row: f"{row.name}@{row.revision}" if row.revision else row.name,
                length=lambda row: row.n_prompts,
                quantity="prompts",
            )
            return Rows(list_benchmarks(session), "benchmark", bars)

    def models(self) -> Rows[ModelRow]:
        """List all models, by name."""
        from tracker.queries.catalogue.listing import list_models

        with self.session() as session:
            bars: BarChart[ModelRow] = BarChart(
                label=lambda row: row.name, length=lambda row: row.n_runs, quantity="complete runs"
            )
            return Rows(list_models(session), "model", bars)

    def runs(self, *, benchmark: str | None = None, model: str | None = None) -> Rows[RunRow]:
        """List all runs, or those of a benchmark or model, latest first.

        Raises:
            NotFoundError: the benchmark or model does not exist.
        """
        from tracker.queries.catalogue.listing import list_runs

        with self.session() as session:
            bars: BarChart[RunRow] = BarChart(
                label=lambda row: f"{row.id}: {row.model} on {row.benchmark}",
                length=lambda row: row.n_scores,
                quantity="scores of prompts",
            )
            return Rows(list_runs(session, benchmark=benchmark, model=model), "run", bars)

    def findings(self, *, benchmark: str | None = None, analysis: str | None = None) -> Rows[FindingRow]:
        """List the findings, latest first.

        Raises:
            NotFoundError: the benchmark does not exist, or has no finding of that analysis.
        """
        from tracker.queries.findings.finding_records import list_findings

        with self.session() as session:
            bars: BarChart[FindingRow] = BarChart(label=lambda row: row.name, length=lambda row: 1, quantity="findings")
            return Rows(list_findings(session, benchmark=benchmark, analysis=analysis), "finding", bars)

    def finding(self, key: int) -> FindingResult:
        """Return one finding with all its metrics, tables and figures.

        Raises:
            NotFoundError: no finding has this key.
        """
        from tracker.api.finding_result import FindingResult
        from tracker.queries.findings.finding_records import get_finding
        from tracker.recording.multiplicity.looks import add_recorded_looks

        with self.session() as session:
            record = add_recorded_looks(session, [get_finding(session, key)])[0]
        return FindingResult.of(record, partial(self.figure, key))

    def table(self, key: int, name: str) -> TableResult:
        """Return a table of a recorded finding, such as ``statistics``.

        Raises:
            NotFoundError: it has no table of that name.
        """
        from tracker.queries.findings.finding_records import load_artifact
        from tracker.recording.artifacts import decode_table

        with self.session() as session:
            stem = name.removesuffix(".parquet")
            return TableResult(decode_table(load_artifact(session, key, f"{stem}.parquet")), stem)

    def figure(self, key: int, name: str) -> bytes:
        """Return a figure of a recorded finding, as PNG.

        Raises:
            NotFoundError: it has no figure of that name.
        """
        from tracker.queries.findings.finding_records import load_artifact

        with self.session() as session:
            return load_artifact(session, key, f"{name.removesuffix('.png')}.png")

    @named_options(MissingOptions, SELECTION_DEFAULTS)
    def performance_matrix(self, benchmark: str, **options: Unpack[MissingOptions]) -> PerformanceMatrix:
        """Load scores as a matrix ``Q``: a row per prompt, a column per model, NaN = missing.

        Raises:
            NotFoundError: a benchmark, metric, model, task or run does not exist.
            SelectionError: the selection is empty, or names no metric although there are several.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> scores = store.performance_matrix("quiz")
            >>> scores.Q.shape, scores.models
            ((3, 2), ('model a', 'model b'))
        """
        from tracker.queries.performance import load_performance_matrix

        with self.session() as session:
            return load_performance_matrix(session, make_selection(benchmark, options))

    @named_options(MissingOptions, SELECTION_DEFAULTS)
    def task_matrix(self, benchmark: str, **options: Unpack[MissingOptions]) -> TaskMatrix:
        """Load means as a matrix ``T``: a row per task, a column per model, NaN = missing.

        Raises:
            NotFoundError, SelectionError: as for `load_performance_matrix`.
        """
        from tracker.queries.task_matrix import load_task_matrix

        with self.session() as session:
            return load_task_matrix(session, make_selection(benchmark, options))

    @named_options(WeightedOptions, SELECTION_DEFAULTS)
    def leaderboard(self, benchmark: str, **options: Unpack[WeightedOptions]) -> Leaderboard:
        """Rank models by their means, with intervals of means and ranks, and groups that are not distinguishable.

        Args:
            benchmark: its name, or name@revision.
            options: the selection; ``missing`` is the policy for missing scores: ``bounds``, ``common``, ``worst``,
                ``impute`` or ``fail``.

        Raises:
            NotFoundError, SelectionError: as for `load_performance_matrix`, or scores are missing under ``fail``.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> [(row.rank, row.model, round(row.mean, 3)) for row in store.leaderboard("quiz").rows]
            [(1.0, 'model a', 0.667), (2.0, 'model b', 0.333)]
        """
        from tracker.queries.ranking.leaderboard import load_leaderboard

        with self.session() as session:
            return load_leaderboard(session, make_selection(benchmark, options))

    @named_options(DesignOptions, SELECTION_DEFAULTS)
    def verdict(
        self, benchmark: str, *, record: bool = False, publish_to: str | None = None, **options: Unpack[DesignOptions]
    ) -> Verdict:
        """Return who is first, what could change that, and what the stored data cannot show.

        Args:
            benchmark: its name, or name@revision.
            record: whether to record the verdict as a finding, which `suffrage serve` shows while it is current.
            publish_to: MLflow's tracking URI, for a recorded verdict.
            options: the selection.

        Raises:
            NotFoundError, SelectionError: as for `leaderboard`, or ``publish_to`` is set without ``record``.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.verdict("quiz").leaders
            ('model a',)
        """
        from tracker.recording.verdict.benchmark_verdict import load_verdict
        from tracker.recording.verdict.recorded_verdict import record_verdict

        if publish_to is not None and not record:
            raise SelectionError("publish_to needs record=True: only recorded findings are published.")
        selection = make_selection(benchmark, options)
        if not record:
            return load_verdict(self.engine, selection)
        verdict, recorded = record_verdict(self.engine, selection, publish_to=publish_to)
        problems = [recorded.publishing_problem] if recorded.publishing_problem else []
        return replace(verdict, warnings=(*verdict.warnings, *problems))

    @named_options(DesignOptions, SELECTION_DEFAULTS)
    def plan(
        self,
        benchmark: str,
        effect: float,
        *,
        power: float = 0.8,
        level: float = 0.95,
        n_trials: int | None = None,
        **options: Unpack[DesignOptions],
    ) -> StudyPlan:
        """Compute how many prompts and trials detect a difference of two models.

        Args:
            benchmark: its name, or name@revision.
            effect: true difference to detect, in the unit of the scores.
            power: probability of detecting it.
            level: confidence level of the two-sided test.
            n_trials: trials of each prompt; None for those of the stored runs.
            options: the selection.

        Raises:
            NotFoundError, SelectionError: as for `plan_comparison`.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.plan("quiz", effect=0.5, task_effects="none").n_pairs
            1
        """
        from tracker.queries.comparing.study_plan import plan_comparison

        with self.session() as session:
            return plan_comparison(
                session,
                make_selection(benchmark, options),
                effect=effect,
                power=power,
                level=level,
                n_trials=n_trials,
            )

    @named_options(DesignOptions, COMPARISON_DEFAULTS)
    def history(self, name: str, **options: Unpack[DesignOptions]) -> Histories:
        """Return how scores changed from run to run; nothing is recorded.

        Args:
            name: a benchmark, or a model to follow on all its benchmarks.
            options: the selection.

        Raises:
            NotFoundError: there is neither a benchmark nor a model of that name, or no such metric.
            SelectionError: the selection is empty.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.history("quiz").to_pandas()[["model", "mean"]].round(3).values.tolist()
            [['model a', 0.667], ['model b', 0.333]]
        """
        from tracker.recording.comparing.histories import load_histories

        return load_histories(self.engine, make_selection(name, {**COMPARISON_DEFAULTS, **options}))

    @named_options(MissingOptions, SELECTION_DEFAULTS)
    def related(self, benchmark: str, **options: Unpack[MissingOptions]) -> RelatedPairs:
        """Find near-copies and families among the models of a benchmark; nothing is recorded.

        Args:
            benchmark: its name, or name@revision.
            options: the selection; ``missing="bounds"`` is not supported.

        Raises:
            NotFoundError, SelectionError: as for `leaderboard`.
        """
        from tracker.queries.related_models.related_pairs import load_related_pairs

        with self.session() as session:
            return load_related_pairs(session, make_selection(benchmark, options))

    def looks(self, benchmark: str) -> RecordedLooks:
        """List the recorded tests of a benchmark, the latest first, with p-values adjusted for all of them.

        Raises:
            NotFoundError: the benchmark does not exist.
        """
        from tracker.recording.multiplicity.recorded_looks import load_recorded_looks

        with self.session() as session:
            return load_recorded_looks(session, benchmark)

    def sql(self, statement: str, *, limit_seconds: float = 30.0, max_bytes: int = 500_000_000) -> TableResult:
        """Return the rows of one read-only statement; ``.to_pandas()`` gives a data frame.

        Args:
            statement: such as ``select * from leaderboard``; docs/reference/schema.md lists tables and views.
            limit_seconds: time limit of the database in seconds.
            max_bytes: maximum size of all values, 8 bytes for a number.

        Raises:
            SqlError: the statement is invalid, too slow, not a read, or its result is too large.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.sql("select name from model order by name").to_pylist()
            [{'name': 'model a'}, {'name': 'model b'}]
        """
        import pyarrow as pa

        from tracker.errors import SqlError
        from tracker.queries.sql.read_only import read_only_sql

        with read_only_sql(self.engine, statement, limit_seconds=limit_seconds, max_bytes=max_bytes) as result:
            rows = list(result.rows)
        columns = list(zip(*rows, strict=True)) or [()] * len(result.columns)
        try:
            arrays = {name: pa.array(values) for name, values in zip(result.columns, columns, strict=True)}
        except pa.ArrowException as error:
            raise SqlError(f"A column holds values of several types ({error}). CAST it to one type.") from error
        return TableResult(pa.table(arrays), "Result of the statement")


def make_selection(benchmark: str, options: Mapping[str, Any]) -> Selection:
    """Return keyword options as one selection.

    Raises:
        SelectionError: an option selects nothing.
    """
    chosen = {name: _split_choices(name, value) for name, value in options.items()}
    if isinstance(chosen.get("weights"), int):
        chosen["weights"] = str(chosen["weights"])  # the key of a finding
    return Selection(benchmark=benchmark, **chosen)


def _split_choices(name: str, value: Any) -> Any:
    """Normalize models, tasks, splits and runs, which may be one value or any collection; None means all.

    Raises:
        SelectionError: the collection is empty, or a value is not a name or number.
    """
    if name not in ("models", "tasks", "split", "runs"):
        return value
    if value is None:
        return ()
    several = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if not several:
        raise SelectionError(f"{name} is empty and selects nothing. Leave it out to select all.")
    kind: type = Integral if name == "runs" else str
    if wrong := [item for item in several if not isinstance(item, kind) or isinstance(item, bool)]:
        expected = "numbers, as listed by `runs`" if name == "runs" else "names"
        raise SelectionError(f"{name} holds {wrong[0]!r}; it takes {expected}.")
    return tuple(map(int, several)) if name == "runs" else several
