"""Resolve a model's name or alias."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.sql import tables


@dataclass(frozen=True)
class ModelKey:
    """A model as stored.

    Attributes:
        id: primary key.
        name: its name.
    """

    id: int
    name: str


def find_model(session: Session, name: str) -> ModelKey:
    """Return the model with that name or alias.

    Raises:
        NotFoundError: no model has this name.
    """
    model, alias = tables.model.c, tables.model_alias.c
    for query in (  # an alias first: a merged model keeps its row
        sa.select(model.id, model.name).join(tables.model_alias, alias.model_id == model.id).where(alias.name == name),
        sa.select(model.id, model.name).where(model.name == name),
    ):
        row = session.execute(query).first()
        if row is not None:
            return ModelKey(*row)
    raise NotFoundError("model", name, session.scalars(sa.select(model.name).order_by(model.name)).all())
