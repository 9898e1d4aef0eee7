"""Benchmarks, tasks, metrics, models and sources of a store, resolved to keys of the store that it is merged into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.copying.merging.source_store import SourceStore
from tracker.errors import BadInputError, ConflictError
from tracker.ingest.measurement import MetricDescription
from tracker.ingest.resolve.catalogue_resolver import MODEL_FACTS, CatalogueResolver, task_aliases
from tracker.schema import Benchmark, Metric, Model, ModelAlias, Source, Task

Rows = Sequence[Mapping[str, Any]]


@dataclass(eq=False)
class MergedNames:
    """Resolves the named rows of a store to keys of the target.

    Attributes:
        session: the target.
        source: the store that is merged.
        catalogue: resolver of the target's names.
        keys: for each table, the target's key of each key of the source.
        model_names: name in the target of each model, by key of the source.
        warnings: messages for the user.
        n_aliases: number of model aliases that were added.
    """

    session: Session
    source: SourceStore
    catalogue: CatalogueResolver
    keys: dict[str, dict[int, int]] = field(default_factory=dict)
    model_names: dict[int, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    n_aliases: int = 0

    def resolve(self, benchmark: str | None = None) -> None:
        """Find or add all named rows.

        Args:
            benchmark: new name of the only benchmark of the source.

        Raises:
            BadInputError: a benchmark is renamed although there are several, or a name stands for two models.
            ConflictError: the target defines a metric or its models differently.
        """
        self._benchmarks(benchmark)
        self._tasks()
        metrics = self.source.rows("metric")
        described = [MetricDescription(**{name: row[name] for name in row if name != "id"}) for row in metrics]
        self._add_new("metric", metrics, [self.catalogue.metric(metric) for metric in described])
        self._models()
        sources = self.source.rows("source")
        stored = {scalar.identity: scalar for scalar in self.session.scalars(select(Source))}
        self._add_new("source", sources, [stored.get(row["identity"]) or Source(**_facts(row)) for row in sources])

    def _benchmarks(self, renamed: str | None) -> None:
        rows = self.source.rows("benchmark")
        names = [(row["name"], row["revision"]) for row in rows]
        if renamed is not None and len(rows) != 1:
            text = f"holds {len(rows)} benchmarks; --benchmark applies to stores with a single benchmark."
            raise BadInputError(self.source.path, text)
        if renamed is not None:
            name, _, revision = renamed.partition("@")
            names = [(name, revision)]
        stored = {(scalar.name, scalar.revision): scalar for scalar in self.session.scalars(select(Benchmark))}
        benchmarks = [stored.get(name) or Benchmark(name=name[0], revision=name[1]) for name in names]
        self._add_new("benchmark", rows, benchmarks)
        for known in benchmarks:
            label = f"{known.name}@{known.revision}" if known.revision else known.name
            self.catalogue.benchmark_names[known.id or 0] = label

    def _tasks(self) -> None:
        owners = self.keys["benchmark"]
        stored: dict[tuple[int, str], Task] = {}
        for scalar in self.session.scalars(select(Task).where(sa.column("benchmark_id").in_(owners.values()))):
            stored[scalar.benchmark_id, scalar.name] = scalar
        by_key = {scalar.id: scalar for scalar in stored.values()}
        for owner in owners.values():
            stored |= {(owner, name): by_key[key] for name, key in task_aliases(self.session, owner).items()}
        rows = self.source.rows("task")
        names = [(owners[row["benchmark_id"]], row["name"]) for row in rows]
        self._check_task_aliases(names, stored)
        tasks = [stored.get(name) or Task(benchmark_id=name[0], name=name[1]) for name in names]
        self._add_new("task", rows, tasks)
        for task, (_, name) in zip(tasks, names, strict=True):
            self.catalogue.task_names[task.id or 0] = name

    def _check_task_aliases(self, rows: Sequence[tuple[int, str]], stored: Mapping[tuple[int, str], Task]) -> None:
        names: dict[int, str] = {}
        for row in rows:
            key = stored[row].id if row in stored else None
            if key is not None and names.setdefault(key, row[1]) != row[1]:
                raise ConflictError(
                    f"{self.source.path}: it has two tasks, {names[key]!r} and {row[1]!r}, that are one in "
                    "the store. List its aliases with `suffrage tasks list`, and remove one with "
                    "`suffrage tasks unalias BENCHMARK NAME`"
                )

    def _models(self) -> None:
        """Find models by any of their names. Missing facts are added to the target, none is overwritten."""
        rows = self.source.rows("model")
        names: dict[int, list[str]] = defaultdict(list)
        for row in rows:
            names[row["id"]].append(row["name"])
        for row in self.source.rows("model_alias"):
            names[row["model_id"]].append(row["name"])
        stored = {scalar.id: scalar for scalar in self.session.scalars(select(Model))}
        by_name = {scalar.name: scalar for scalar in stored.values()}
        by_name |= {scalar.name: stored[scalar.model_id] for scalar in self.session.scalars(select(ModelAlias))}
        models = [self._find_model(row, names[row["id"]], by_name) for row in rows]
        self._add_new("model", rows, models)
        self.model_names = {row["id"]: model.name for row, model in zip(rows, models, strict=True)}
        fresh = [
            (name, model)
            for row, model in zip(rows, models, strict=True)
            for name in names[row["id"]]
            if name not in by_name and name != model.name
        ]
        by_first_name = {row["name"]: self.model_names[row["id"]] for row in rows}
        for name, model in fresh:
            if by_first_name.get(name, model.name) != model.name:
                raise BadInputError(self.source.path, f"{name!r} is both a model and an alias of {model.name!r}.")
        self.session.add_all(ModelAlias(name=name, model_id=model.id or 0) for name, model in fresh)
        self.session.flush()
        self.n_aliases = len(fresh)
        n_different = sum(_differs(row, model) for row, model in zip(rows, models, strict=True))
        if n_different:
            self.warnings.append(f"{n_different:,} model facts differ from the stored ones; the stored ones were kept")

    def _find_model(self, row: Mapping[str, Any], names: Sequence[str], by_name: Mapping[str, Model]) -> Model:
        known = {id(by_name[name]): by_name[name] for name in names if name in by_name}
        if len(known) > 1:
            stored_names = " and ".join(sorted(scalar.name for scalar in known.values()))
            raise ConflictError(
                f"{self.source.path}: it has {', '.join(names)} as names of one model, the store of {stored_names}. "
                "Import it into another --database."
            )
        if not known:
            self.catalogue.new_models.append(row["name"])
            return Model(**_facts(row))
        (model,) = known.values()
        for fact in MODEL_FACTS:
            if getattr(model, fact) is None and row[fact] is not None:
                setattr(model, fact, row[fact])
        return model

    def _add_new(
        self, table: str, rows: Rows, found_or_new: Sequence[Benchmark | Task | Metric | Model | Source]
    ) -> None:
        self.session.add_all([row for row in found_or_new if row.id is None])
        self.session.flush()
        self.keys[table] = {row["id"]: known.id or 0 for row, known in zip(rows, found_or_new, strict=True)}


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def _differs(row: Mapping[str, Any], model: Model) -> int:
    """Return the number of facts of a model that differ from the stored ones."""
    return sum(row[fact] is not None and row[fact] != getattr(model, fact) for fact in MODEL_FACTS)
