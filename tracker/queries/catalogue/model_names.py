"""Which model a name means."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlmodel import Session

from tracker.errors import NotFoundError
from tracker.queries import tables


@dataclass(frozen=True)
class ModelKey:
    """A model as stored.

    Attributes:
        id: primary key.
        name: its name.
    """

    id: int
    name: str


def find_model(session: Session, wanted: str) -> ModelKey:
    """The model of that name, or with that other name.

    Raises:
        NotFoundError: there is none.
    """
    model, alias = tables.model.c, tables.model_alias.c
    for asked in (
        sa.select(model.id, model.name).where(model.name == wanted),
        sa.select(model.id, model.name)
        .join(tables.model_alias, alias.model_id == model.id)
        .where(alias.name == wanted),
    ):
        found = session.execute(asked).first()
        if found is not None:
            return ModelKey(*found)
    raise NotFoundError("model", wanted, session.scalars(sa.select(model.name).order_by(model.name)).all())
