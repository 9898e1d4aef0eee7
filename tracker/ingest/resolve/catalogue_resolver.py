"""Resolution of benchmarks, tasks, models and metrics; new ones are added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.errors import MAX_KNOWN_NAMES, BadInputError, ConflictError
from tracker.ingest.measurement import MetricDescription, RunDescription
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.resolve.similar_models import comparison_key, describe_similar
from tracker.ingest.resolve.similar_tasks import describe_similar_tasks
from tracker.name_lists import join_names
from tracker.schema import Benchmark, Metric, Model, ModelAlias, Score, Task, TaskAlias, TaskScore
from tracker.schema.table import Table

T = TypeVar("T", bound=Table)

MODEL_FACTS = ("organization", "family", "parameters", "released", "open_weights")


def make_unknown_benchmark_error(path: Path, known: Sequence[str] = ()) -> BadInputError:
    """Return the error for a file that names no benchmark; ``known`` are the stored ones."""
    hint = f" Known: {join_names(known, MAX_KNOWN_NAMES)}." if known else ""
    return BadInputError(path, "the benchmark is unknown.", advice=f"Name it with --benchmark NAME.{hint}")


def task_aliases(session: Session, benchmark_id: int) -> dict[str, int]:
    """Return the key of the task of each alias of a benchmark."""
    rows = session.execute(
        sa.select(TaskAlias.name, TaskAlias.task_id).where(TaskAlias.benchmark_id == benchmark_id)  # type: ignore[call-overload]
    )
    return {name: key for name, key in rows}  # noqa: C416


class CatalogueResolver:
    """Resolves the names in one file to keys.

    Args:
        session: the store.
        path: the file, for messages.
    """

    def __init__(self, session: Session, path: Path) -> None:
        self.session = session
        self.path = path
        self.new_models: list[str] = []
        self.newly_bounded: list[str] = []
        self.benchmark_names: dict[int, str] = {}
        self.task_names: dict[int, str] = {}
        self._benchmarks: dict[str, int] = {}
        self._tasks: dict[int, dict[str, int]] = {}
        self._stored_tasks: dict[int, list[str]] = {}
        self._new_tasks: dict[int, list[str]] = {}
        self._models: dict[str, int] | None = None
        self._stored_models: list[str] = []
        self._added_models: dict[str, Model] = {}
        self._metrics: dict[str, Metric] = {}

    def benchmark(self, *names: str | None) -> int:
        """Return the key of the benchmark with the first name that is set; ``name@revision`` is one version.

        Raises:
            BadInputError: no name is set.
        """
        name = next((name for name in names if name), None)
        if name is None:
            known = self.session.scalars(select(Benchmark.name).distinct().order_by(Benchmark.name)).all()
            raise make_unknown_benchmark_error(self.path, known)
        if name not in self._benchmarks:
            plain, _, revision = make_storable(name).partition("@")
            row = self.session.scalar(select(Benchmark).where(Benchmark.name == plain, Benchmark.revision == revision))
            row = row or self._add(Benchmark(name=plain, revision=revision))
            assert row.id is not None
            self._benchmarks[name] = row.id
            self.benchmark_names[row.id] = f"{plain}@{revision}" if revision else plain
        return self._benchmarks[name]

    def tasks(self, benchmark_id: int, names: Iterable[str] = ()) -> dict[str, int]:
        """Return the keys of all tasks of a benchmark by name and alias, after adding the new ones."""
        if benchmark_id not in self._tasks:
            rows = self.session.execute(sa.select(Task.name, Task.id).where(Task.benchmark_id == benchmark_id))  # type: ignore[call-overload]
            known = {row[0]: row[1] for row in rows}
            self._remember(known)
            self._stored_tasks[benchmark_id], self._new_tasks[benchmark_id] = list(known), []
            self._tasks[benchmark_id] = known | task_aliases(self.session, benchmark_id)
        known = self._tasks[benchmark_id]
        fresh = [
            Task(benchmark_id=benchmark_id, name=name)
            for name in dict.fromkeys(map(make_storable, names))
            if name not in known
        ]
        if fresh:
            self.session.add_all(fresh)
            self.session.flush()
            added = {task.name: task.id for task in fresh if task.id is not None}
            known.update(added)
            self._remember(added)
            self._new_tasks[benchmark_id] += added
        return known

    def model(self, name: str, facts: Mapping[str, Any]) -> int:
        """Return the key of a model by name or alias. Missing facts are added, none is overwritten."""
        known, name = self._known_models(), make_storable(name)
        if name not in known:
            self._add_models([self._new_model(name, facts)])
        elif new := self._facts(name, facts):
            model = self._added_models.get(name) or self.session.get_one(Model, known[name])
            for fact, value in new.items():
                if getattr(model, fact) is None:
                    setattr(model, fact, value)
        return known[name]

    def add_models(self, runs: Iterable[RunDescription]) -> None:
        """Add the new models of some runs; PostgreSQL inserts up to 1,000 by one statement."""
        known, new = self._known_models(), dict[str, Model]()
        for run in runs:
            name = make_storable(run.model)
            if name not in known and name not in new:
                new[name] = self._new_model(name, run.model_facts)
        self._add_models(list(new.values()))

    def _known_models(self) -> dict[str, int]:
        """Return the keys of all models by name and alias."""
        if self._models is None:
            pairs = [*self.session.execute(sa.select(Model.name, Model.id))]  # type: ignore[call-overload]
            self._stored_models = [pair[0] for pair in pairs]
            pairs += [*self.session.execute(sa.select(ModelAlias.name, ModelAlias.model_id))]  # type: ignore[call-overload]
            self._models = {pair[0]: pair[1] for pair in pairs}  # an alias last: a merged model keeps its row
        return self._models

    def _new_model(self, name: str, facts: Mapping[str, Any]) -> Model:
        maker, slash, _ = name.partition("/")  # names on model hubs: organization/model
        by_name = {"organization": maker} if slash and name.count("/") == 1 and maker else {}
        return Model(name=name, **{**by_name, **self._facts(name, facts)})

    def _add_models(self, models: Sequence[Model]) -> None:
        if models:
            self.session.add_all(models)
            self.session.flush()
        for model in models:
            assert model.id is not None
            self._known_models()[model.name] = model.id
            self._added_models[model.name] = model
            self.new_models.append(model.name)

    @property
    def n_models_new(self) -> int:
        """Number of added models."""
        return len(self.new_models)

    def describe_similar_models(self) -> list[str]:
        """Return a warning for each added model whose name is similar to that of another one."""
        if not self.new_models:
            return []
        stored = {comparison_key(name): name for name in reversed(self._stored_models)}
        return describe_similar(self.new_models, stored)

    def describe_similar_tasks(self) -> list[str]:
        """Return a warning for each benchmark with new tasks whose names are similar to those of stored ones."""
        return [
            warning
            for key, new in self._new_tasks.items()
            for warning in describe_similar_tasks(self.benchmark_names.get(key, ""), new, self._stored_tasks[key])
        ]

    def metric(self, description: MetricDescription) -> Metric:
        """Return the metric with a name. Missing bounds are added if all stored scores lie within them.

        Raises:
            ConflictError: the store has another direction or bound.
        """
        name = make_storable(description.name)
        if name not in self._metrics:
            row = self.session.scalar(select(Metric).where(Metric.name == name))
            self._metrics[name] = row or self._add(
                Metric(
                    name=name,
                    higher_is_better=description.higher_is_better is not False,
                    lower=description.lower,
                    upper=description.upper,
                )
            )
        known = self._metrics[name]
        advice = "Use the stored definition, or name this metric differently with --metric."
        if description.higher_is_better not in (None, known.higher_is_better):
            better = "higher" if known.higher_is_better else "lower"
            raise ConflictError(f"{self.path}: in the store, {better} {name} is better. {advice}")
        for bound in ("lower", "upper"):
            new, stored = getattr(description, bound), getattr(known, bound)
            if new is None or new == stored:
                continue
            if stored is not None or self._exceeds(known, bound, new):
                known_bound = f"the {bound} bound {stored:g}" if stored is not None else f"scores beyond {new:g}"
                raise ConflictError(
                    f"{self.path}: the store has {known_bound} for {name}, not the {bound} bound {new:g}. {advice}"
                )
            setattr(known, bound, new)
            if name not in self.newly_bounded:
                self.newly_bounded.append(name)
        return known

    def _exceeds(self, metric: Metric, bound: str, value: float) -> bool:
        tables: list[Any] = [Score, TaskScore]
        return any(
            self.session.scalar(
                sa.select(
                    sa.exists().where(
                        table.metric_id == metric.id, table.value < value if bound == "lower" else table.value > value
                    )
                )
            )
            for table in tables
        )

    def _add(self, row: T) -> T:
        self.session.add(row)
        self.session.flush()
        return row

    def _remember(self, tasks: Mapping[str, int]) -> None:
        self.task_names.update({key: name for name, key in tasks.items()})

    def _facts(self, model: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._fact(model, name, facts[name]) for name in MODEL_FACTS if facts.get(name) is not None}

    def _fact(self, model: str, name: str, value: Any) -> Any:
        if name == "released" and isinstance(value, datetime):
            return value.date()
        if name == "released" and not isinstance(value, date):
            try:
                return date.fromisoformat(str(value))
            except ValueError:
                problem = f"the release date {str(value)!r} of {model} is not a date such as 2024-05-31"
                raise BadInputError(self.path, problem) from None
        return make_storable(value) if isinstance(value, str) else value
