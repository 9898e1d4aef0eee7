"""Benchmarks, tasks, metrics, models and sources of an archive, resolved to keys of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from sqlmodel import select

from tracker.errors import BadInputError, ConflictError
from tracker.ingest.archives.archive_file import StoreArchive
from tracker.ingest.measurement import MetricDescription
from tracker.ingest.resolve.catalogue_resolver import MODEL_FACTS, CatalogueResolver, task_aliases
from tracker.schema import Benchmark, Metric, Model, ModelAlias, Source, Task
from tracker.schema.table import Table


@dataclass(eq=False)
class ArchivedNames:
    """Resolves the named rows of an archive to keys of the store.

    Attributes:
        session: the store.
        archive: the archive.
        catalogue: resolver of the store's names.
        keys: for each table, the ``(n,)`` int64 key of each row.
        model_names: name of each model in the archive.
        warnings: messages for the user.
        n_other_names: number of model aliases that were added.
    """

    session: Session
    archive: StoreArchive
    catalogue: CatalogueResolver
    keys: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    model_names: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    n_other_names: int = 0

    def resolve(self, benchmark: str | None = None) -> None:
        """Find or add all named rows.

        Args:
            benchmark: new name of the only benchmark of the archive.

        Raises:
            BadInputError: a name occurs twice, or a benchmark is renamed although there are several.
            ConflictError: the store defines a metric or its models differently.
        """
        self._benchmarks(benchmark)
        self._tasks()
        metrics = [self.catalogue.metric(MetricDescription(**row)) for row in self._unique("metric", "name")]
        self.keys["metric"] = _keys(metrics)
        self._models()
        self._sources()

    def _benchmarks(self, renamed: str | None) -> None:
        rows = self._unique("benchmark", "name", "revision")
        if renamed is not None and len(rows) != 1:
            text = f"holds {len(rows)} benchmarks; --benchmark applies to archives with a single benchmark."
            raise BadInputError(self.archive.path, text)
        if renamed is not None:
            name, _, revision = renamed.partition("@")
            rows = [{"name": name, "revision": revision}]
        stored = {(scalar.name, scalar.revision): scalar for scalar in self.session.scalars(select(Benchmark))}
        benchmarks = [stored.get((row["name"], row["revision"])) or Benchmark(**row) for row in rows]
        self.keys["benchmark"] = self._add_new(benchmarks)
        labels = [f"{known.name}@{known.revision}" if known.revision else known.name for known in benchmarks]
        self.catalogue.benchmark_names.update(zip(self.keys["benchmark"].tolist(), labels, strict=True))

    def _tasks(self) -> None:
        owners = self.keys["benchmark"].tolist()
        stored = {
            (scalar.benchmark_id, scalar.name): scalar
            for scalar in self.session.scalars(select(Task).where(sa.column("benchmark_id").in_(owners)))
        }
        by_key = {scalar.id: scalar for scalar in stored.values()}
        for owner in owners:
            stored |= {(owner, name): by_key[key] for name, key in task_aliases(self.session, owner).items()}
        rows = [(owners[row["benchmark"]], row["name"]) for row in self._unique("task", "benchmark", "name")]
        self._check_task_aliases(rows, stored)
        tasks = [stored.get(row) or Task(benchmark_id=row[0], name=row[1]) for row in rows]
        self.keys["task"] = self._add_new(tasks)
        for key, (_, name) in zip(self.keys["task"].tolist(), rows, strict=True):
            self.catalogue.task_names[key] = name

    def _check_task_aliases(self, rows: Sequence[tuple[int, str]], stored: Mapping[tuple[int, str], Task]) -> None:
        names: dict[int, str] = {}
        for row in rows:
            key = stored[row].id if row in stored else None
            if key is not None and names.setdefault(key, row[1]) != row[1]:
                raise ConflictError(
                    f"{self.archive.path}: the archive has two tasks, {names[key]!r} and {row[1]!r}, that are one in "
                    "the store. List its aliases with `suffrage tasks list`, and remove one with "
                    "`suffrage tasks unalias BENCHMARK NAME`"
                )

    def _models(self) -> None:
        """Find models by any of their names. Missing facts are added to the store, none is overwritten."""
        rows = self._unique("model", "name")
        aliases: list[list[str]] = [[] for _ in rows]
        for row in self._unique("model_alias", "name"):
            aliases[row["model"]].append(row["name"])
        stored = {scalar.id: scalar for scalar in self.session.scalars(select(Model))}
        by_name = {scalar.name: scalar for scalar in stored.values()}
        by_name |= {scalar.name: stored[scalar.model_id] for scalar in self.session.scalars(select(ModelAlias))}
        models: list[Model] = []
        n_different = 0
        for row, further_names in zip(rows, aliases, strict=True):
            names = [row["name"], *further_names]
            known = {id(by_name[name]): by_name[name] for name in names if name in by_name}
            if len(known) > 1:
                stored_names = " and ".join(sorted(scalar.name for scalar in known.values()))
                raise ConflictError(
                    f"{self.archive.path}: the archive has {', '.join(names)} as names of one model, the store of "
                    f"{stored_names}. Import the archive into another --database."
                )
            if known:
                (model,) = known.values()
                for fact in MODEL_FACTS:
                    old, new = getattr(model, fact), row[fact]
                    if old is None and new is not None:
                        setattr(model, fact, new)
                    n_different += old is not None and new is not None and old != new
            else:
                model = Model(**row)
                self.catalogue.new_models.append(row["name"])
            models.append(model)
        self.keys["model"] = self._add_new(models)
        self.model_names = [model.name for model in models]
        fresh = [
            (name, model)
            for row, further_names, model in zip(rows, aliases, models, strict=True)
            for name in (row["name"], *further_names)
            if name not in by_name and name != model.name
        ]
        self._check_aliases(fresh, rows)
        self.session.add_all(ModelAlias(name=name, model_id=model.id or 0) for name, model in fresh)
        self.session.flush()
        self.n_other_names = len(fresh)
        if n_different:
            self.warnings.append(f"{n_different:,} model facts differ from the stored ones; the stored ones were kept")

    def _check_aliases(self, fresh: Sequence[tuple[str, Model]], rows: Sequence[dict[str, Any]]) -> None:
        names = {row["name"] for row in rows}
        for name, model in fresh:
            if name in names and self.model_names[[row["name"] for row in rows].index(name)] != model.name:
                raise BadInputError(self.archive.path, f"{name!r} is both a model and an alias of {model.name!r}.")

    def _sources(self) -> None:
        rows = self._unique("source", "identity")
        stored = {scalar.identity: scalar for scalar in self.session.scalars(select(Source))}
        self.keys["source"] = self._add_new([stored.get(row["identity"]) or Source(**row) for row in rows])

    def _unique(self, table: str, *names: str) -> list[dict[str, Any]]:
        """Return the rows of a small table after checking that their names are unique."""
        rows = list(self.archive.rows(table))
        names_seen: set[tuple[Any, ...]] = set()
        for place, row in enumerate(rows):
            name = tuple(row[part] for part in names)
            if name in names_seen:
                raise self.archive.error(table, place, f"{name[-1]!r} is a duplicate")
            names_seen.add(name)
        return rows

    def _add_new(self, rows: Sequence[Benchmark | Task | Model | Source]) -> NDArray[np.int64]:
        fresh: list[Table] = [row for row in rows if row.id is None]
        self.session.add_all(fresh)
        self.session.flush()
        return _keys(rows)


def _keys(rows: Sequence[Benchmark | Task | Metric | Model | Source]) -> NDArray[np.int64]:
    return np.array([row.id for row in rows], dtype=np.int64)
