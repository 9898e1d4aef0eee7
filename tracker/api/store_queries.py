"""Queries of the store in Python: lists, arrays and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import SelectionError
from tracker.queries.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from sqlalchemy.orm import Session

    from tracker.queries.catalogue.listing import BenchmarkRow, ModelRow, RunRow
    from tracker.queries.comparing.study_plan import StudyPlan
    from tracker.queries.findings.finding_records import FindingRecord, FindingRow
    from tracker.queries.performance import PerformanceMatrix
    from tracker.queries.ranking.leaderboard_result import Leaderboard
    from tracker.queries.task_matrix import TaskMatrix
    from tracker.recording.verdict.benchmark_verdict import Verdict

PLAN_OPTIONS = frozenset({"power", "level", "n_trials"})
"""Options of `StoreQueries.plan` that are not of the selection."""

CHOICES = frozenset(field.name for field in fields(Selection)) - {"benchmark"}


class StoreQueries:
    """Read-only queries of a store."""

    engine: sa.Engine

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a read-only session, for the functions of `tracker.queries`."""
        with transaction(self.engine, write=False) as session:
            yield session

    def benchmarks(self) -> list[BenchmarkRow]:
        """List all benchmarks, by name."""
        from tracker.queries.catalogue.listing import list_benchmarks

        with self.session() as session:
            return list_benchmarks(session)

    def models(self) -> list[ModelRow]:
        """List all models, by name."""
        from tracker.queries.catalogue.listing import list_models

        with self.session() as session:
            return list_models(session)

    def runs(self, *, benchmark: str | None = None, model: str | None = None) -> list[RunRow]:
        """List all runs, or those of a benchmark or model, latest first.

        Raises:
            NotFoundError: the benchmark or model does not exist.
        """
        from tracker.queries.catalogue.listing import list_runs

        with self.session() as session:
            return list_runs(session, benchmark=benchmark, model=model)

    def findings(self, *, benchmark: str | None = None, analysis: str | None = None) -> list[FindingRow]:
        """List the findings, latest first.

        Raises:
            NotFoundError: the benchmark does not exist, or has no finding of that analysis.
        """
        from tracker.queries.findings.finding_records import list_findings

        with self.session() as session:
            return list_findings(session, benchmark=benchmark, analysis=analysis)

    def finding(self, key: int) -> FindingRecord:
        """Return one finding with all its metrics.

        Raises:
            NotFoundError: no finding has this key.
        """
        from tracker.queries.findings.finding_records import get_finding
        from tracker.recording.multiplicity.looks import add_recorded_looks

        with self.session() as session:
            return add_recorded_looks(session, [get_finding(session, key)])[0]

    def table(self, key: int, name: str) -> pa.Table:
        """Return a table of a recorded finding, such as ``statistics``.

        Raises:
            NotFoundError: it has no table of that name.
        """
        from tracker.queries.findings.finding_records import load_artifact
        from tracker.recording.artifacts import decode_table

        with self.session() as session:
            return decode_table(load_artifact(session, key, f"{name.removesuffix('.parquet')}.parquet"))

    def figure(self, key: int, name: str) -> bytes:
        """Return a figure of a recorded finding, as PNG.

        Raises:
            NotFoundError: it has no figure of that name.
        """
        from tracker.queries.findings.finding_records import load_artifact

        with self.session() as session:
            return load_artifact(session, key, f"{name.removesuffix('.png')}.png")

    def performance_matrix(self, benchmark: str, **choices: Any) -> PerformanceMatrix:
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
            return load_performance_matrix(session, make_selection(benchmark, choices))

    def task_matrix(self, benchmark: str, **choices: Any) -> TaskMatrix:
        """Load means as a matrix ``T``: a row per task, a column per model, NaN = missing.

        Raises:
            NotFoundError, SelectionError: as for `load_performance_matrix`.
        """
        from tracker.queries.task_matrix import load_task_matrix

        with self.session() as session:
            return load_task_matrix(session, make_selection(benchmark, choices))

    def leaderboard(self, benchmark: str, **choices: Any) -> Leaderboard:
        """Rank models by their means, with intervals of means and ranks, and groups that are not distinguishable.

        Args:
            benchmark: its name, or name@revision.
            choices: the selection; ``missing`` is the policy for missing scores: ``bounds``, ``common``, ``worst``,
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
            return load_leaderboard(session, make_selection(benchmark, choices))

    def verdict(self, benchmark: str, **choices: Any) -> Verdict:
        """Return who is first, what could change that, and what the stored data cannot show; nothing is recorded.

        Args:
            benchmark: its name, or name@revision.
            choices: the selection.

        Raises:
            NotFoundError, SelectionError: as for `leaderboard`.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.verdict("quiz").leaders
            ('model a',)
        """
        from tracker.recording.verdict.benchmark_verdict import load_verdict

        return load_verdict(self.engine, make_selection(benchmark, choices))

    def plan(self, benchmark: str, effect: float, **options: Any) -> StudyPlan:
        """Compute how many prompts and trials detect a difference of two models.

        Args:
            benchmark: its name, or name@revision.
            effect: true difference to detect, in the unit of the scores.
            options: ``power``, ``level``, ``n_trials``, and the selection.

        Raises:
            NotFoundError, SelectionError: as for `plan_comparison`.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.plan("quiz", effect=0.5, task_effects="none").n_pairs
            1
        """
        from tracker.queries.comparing.study_plan import plan_comparison

        numbers = {name: options.pop(name) for name in PLAN_OPTIONS & set(options)}
        with self.session() as session:
            return plan_comparison(session, make_selection(benchmark, options), effect=effect, **numbers)

    def sql(self, statement: str, *, limit_seconds: float = 30.0) -> pa.Table:
        """Return the rows of one read-only statement; ``.to_pandas()`` gives a data frame.

        Args:
            statement: such as ``select * from leaderboard``; docs/reference/schema.md lists tables and views.
            limit_seconds: time limit of the database in seconds.

        Raises:
            SqlError: the statement is invalid, too slow, or not a read.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> store.sql("select name from model order by name").to_pylist()
            [{'name': 'model a'}, {'name': 'model b'}]
        """
        import pyarrow as pa

        from tracker.errors import SqlError
        from tracker.queries.sql.read_only import read_only_sql

        with read_only_sql(self.engine, statement, limit_seconds=limit_seconds) as result:
            rows = list(result.rows)
        columns = list(zip(*rows, strict=True)) or [()] * len(result.columns)
        try:
            return pa.table({name: pa.array(values) for name, values in zip(result.columns, columns, strict=True)})
        except pa.ArrowException as error:
            raise SqlError(f"A column holds values of several types ({error}). CAST it to one type.") from error


def make_selection(benchmark: str, choices: Mapping[str, Any]) -> Selection:
    """Return keyword options as one selection.

    Raises:
        SelectionError: an option is unknown, or selects nothing.
    """
    if unknown := sorted(set(choices) - CHOICES):
        raise SelectionError(f"No option {unknown[0]!r}. Options: {', '.join(sorted(CHOICES))}.")
    return Selection(benchmark=benchmark, **{name: _split_choices(name, value) for name, value in choices.items()})


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
