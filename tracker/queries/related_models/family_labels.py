"""Families of models as stored, or as their names show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.model_names.series import find_series
from tracker.queries.resolution import find_benchmark
from tracker.queries.scores import compute_digest
from tracker.queries.selection import OptionalInput, Selection
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class FamilyLabels(OptionalInput):
    """The stored families of a benchmark's models.

    Attributes:
        stored: family by name of the model; models without a stored family are not in it.
    """

    stored: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Return True: they are loaded for every selection."""
        return True

    @classmethod
    def load(cls, session: Session, selection: Selection) -> FamilyLabels:
        """Load the families that `suffrage models import` stored for models with runs on the benchmark."""
        model, run = tables.model.c, tables.run.c
        key = find_benchmark(session, selection.benchmark).id
        rows = session.execute(
            sa.select(model.name, model.family)
            .where(model.family.is_not(None))
            .where(model.id.in_(sa.select(run.model_id).where(run.benchmark_id == key)))
            .order_by(model.name)
        )
        return cls(stored={row.name: row.family for row in rows if row.family.strip()})

    @property
    def digest(self) -> str:
        """SHA-256 of models and families."""
        return compute_digest((), [word for pair in sorted(self.stored.items()) for word in pair])

    def find(self, model: str) -> str:
        """Return the label of a model's family: as stored, else the series in its name.

        Args:
            model: its name; with a run's key where the model is selected more than once.
        """
        family = self.stored.get(model) or self.stored.get(model.partition(" (run ")[0])
        return family.strip().casefold() if family else find_series(model)
