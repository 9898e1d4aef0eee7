"""Looking at a store from Python: what is there, as rows, arrays and tables."""

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
    from tracker.queries.findings.finding_records import FindingRecord, FindingRow
    from tracker.queries.performance import PerformanceMatrix
    from tracker.queries.ranking.leaderboard_result import Leaderboard
    from tracker.queries.selection import Policy
    from tracker.queries.task_matrix import TaskMatrix

CHOICES = frozenset(field.name for field in fields(Selection)) - {"benchmark"}


class StoreQueries:
    """What a store holds; nothing here changes it."""

    engine: sa.Engine

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session that reads, for the functions of `tracker.queries`."""
        with transaction(self.engine, write=False) as session:
            yield session

    def benchmarks(self) -> list[BenchmarkRow]:
        """Every benchmark, by name."""
        from tracker.queries.catalogue.listing import list_benchmarks

        with self.session() as session:
            return list_benchmarks(session)

    def models(self) -> list[ModelRow]:
        """Every model, by name."""
        from tracker.queries.catalogue.listing import list_models

        with self.session() as session:
            return list_models(session)

    def runs(self, *, benchmark: str | None = None, model: str | None = None) -> list[RunRow]:
        """Every run, or those of a benchmark or model, the latest first.

        Raises:
            NotFoundError: there is no such benchmark or model.
        """
        from tracker.queries.catalogue.listing import list_runs

        with self.session() as session:
            return list_runs(session, benchmark=benchmark, model=model)

    def findings(self, *, benchmark: str | None = None, analysis: str | None = None) -> list[FindingRow]:
        """What was concluded, the latest first.

        Raises:
            NotFoundError: there is no such benchmark, or no finding of that analysis.
        """
        from tracker.queries.findings.finding_records import list_findings

        with self.session() as session:
            return list_findings(session, benchmark=benchmark, analysis=analysis)

    def finding(self, key: int) -> FindingRecord:
        """One finding with all its numbers.

        Raises:
            NotFoundError: there is none with this key.
        """
        from tracker.queries.findings.finding_records import get_finding

        with self.session() as session:
            return get_finding(session, key)

    def table(self, key: int, name: str) -> pa.Table:
        """A table of a recorded finding, such as ``statistics``.

        Raises:
            NotFoundError: it has no table of that name.
        """
        from tracker.queries.findings.finding_records import load_artifact
        from tracker.recording.artifacts import decode_table

        with self.session() as session:
            return decode_table(load_artifact(session, key, f"{name.removesuffix('.parquet')}.parquet"))

    def figure(self, key: int, name: str) -> bytes:
        """A picture of a recorded finding, as PNG.

        Raises:
            NotFoundError: it has no picture of that name.
        """
        from tracker.queries.findings.finding_records import load_artifact

        with self.session() as session:
            return load_artifact(session, key, f"{name.removesuffix('.png')}.png")

    def performance_matrix(self, benchmark: str, **choices: Any) -> PerformanceMatrix:
        """Scores as a matrix ``Q``: a row for each prompt, a column for each model, NaN = not measured.

        Raises:
            NotFoundError: a benchmark, metric, model, task or run is not there.
            SelectionError: the choices are empty, or leave the metric open where there are several.

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
        """Means as a matrix ``T``: a row for each task, a column for each model, NaN = not measured.

        Raises:
            NotFoundError, SelectionError: as for `load_performance_matrix`.
        """
        from tracker.queries.task_matrix import load_task_matrix

        with self.session() as session:
            return load_task_matrix(session, make_selection(benchmark, choices))

    def leaderboard(self, benchmark: str, *, missing: Policy = "unranked", **choices: Any) -> Leaderboard:
        """Models ranked by their means, with intervals of means and of ranks, and who cannot be told apart.

        Args:
            benchmark: its name, or name@revision.
            missing: what scores that were not measured mean: ``unranked``, ``fail``, ``complete``, ``worst``,
                ``impute``.
            choices: which data.

        Raises:
            NotFoundError, SelectionError: as for `load_performance_matrix`, or scores are missing where none may be.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> [(row.rank, row.model, round(row.mean, 3)) for row in store.leaderboard("quiz").rows]
            [(1.0, 'model a', 0.667), (2.0, 'model b', 0.333)]
        """
        from tracker.queries.ranking.leaderboard import load_leaderboard

        with self.session() as session:
            return load_leaderboard(session, make_selection(benchmark, choices), missing)

    def sql(self, statement: str, *, limit_seconds: float = 30.0) -> pa.Table:
        """The rows of one statement that can only read; ``.to_pandas()`` gives a data frame.

        Args:
            statement: such as ``select * from leaderboard``; docs/reference/schema.md lists tables and views.
            limit_seconds: how long the database may work on it.

        Raises:
            SqlError: it is wrong, too slow, or not a read.

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
            raise SqlError(f"A column holds values of several kinds ({error}). CAST it to one of them.") from error


def make_selection(benchmark: str, choices: Mapping[str, Any]) -> Selection:
    """Choices by name as one selection.

    Raises:
        SelectionError: there is no choice of that name, or it chooses nothing.
    """
    if unknown := sorted(set(choices) - CHOICES):
        raise SelectionError(f"There is no choice {unknown[0]!r}. There are: {', '.join(sorted(CHOICES))}.")
    return Selection(benchmark=benchmark, **{name: _split_choices(name, value) for name, value in choices.items()})


def _split_choices(name: str, value: Any) -> Any:
    """Models, tasks and runs may be given as one, or as any collection; None means all.

    Raises:
        SelectionError: nothing is chosen, or by what is no name or number.
    """
    if name not in ("models", "tasks", "runs"):
        return value
    if value is None:
        return ()
    several = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if not several:
        raise SelectionError(f"{name} is empty, so there is nothing to look at. Leave it out to choose all.")
    kind: type = Integral if name == "runs" else str
    if wrong := [item for item in several if not isinstance(item, kind) or isinstance(item, bool)]:
        expected = "numbers, as `runs` lists them" if name == "runs" else "names"
        raise SelectionError(f"{name} holds {wrong[0]!r}; it takes {expected}.")
    return tuple(map(int, several)) if name == "runs" else several
