"""Keys of benchmarks and models, and their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.resolution import benchmark_label
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A model in a list.

    Attributes:
        id: its key.
        family: as stored; '' if unknown.
    """

    id: int
    family: str


def find_benchmark_label(session: Session, key: int) -> str:
    """Return the label of a benchmark, name or name@revision.

    Raises:
        NotFoundError: no benchmark has this key.
    """
    labels = load_benchmark_keys(session)
    name = next((label for label, known in labels.items() if known == key), None)
    if name is None:
        raise NotFoundError("benchmark", key, list(labels.values()))
    return name


def load_benchmark_keys(session: Session) -> dict[str, int]:
    """Return the key of each benchmark by its label."""
    kept = tables.benchmark.c
    rows = session.execute(sa.select(kept.id, kept.name, kept.revision).order_by(kept.name, kept.revision))
    return {benchmark_label(name, revision): key for key, name, revision in rows}


def find_model_name(session: Session, key: int) -> str:
    """Return the name of a model.

    Raises:
        NotFoundError: no model has this key.
    """
    kept = tables.model.c
    name = session.scalar(sa.select(kept.name).where(kept.id == key)) if 0 <= key <= MAX_KEY else None
    if name is None:
        raise NotFoundError("model", key, session.scalars(sa.select(kept.id).order_by(kept.id)).all())
    return str(name)


def load_model_keys(session: Session) -> Mapping[str, ModelEntry]:
    """Return key and family of each model by its name."""
    kept = tables.model.c
    rows = session.execute(sa.select(kept.name, kept.id, kept.family))
    return {name: ModelEntry(id=key, family=family or "") for name, key, family in rows}
