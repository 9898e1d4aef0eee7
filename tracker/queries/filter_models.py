"""The models by whose answers prompts are filtered, and what is known of who made them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import sqlalchemy as sa
from sqlmodel import Session

from tracker.queries import tables
from tracker.queries.selection import Selection


@dataclass(frozen=True, kw_only=True)
class Maker:
    """What is known of where a model comes from.

    Attributes:
        organization: who made it; None where that is not known.
        open_weights: whether its weights can be downloaded; None where that is not known.
    """

    organization: str | None
    open_weights: bool | None


@dataclass(frozen=True, kw_only=True)
class FilterModels:
    """Which models are to filter, where the user says so, and the makers of all.

    To a question with this input, the choice of models says who filters; every model is looked at.

    Attributes:
        named: the models chosen, by their names; empty where the question is to choose.
        makers: of every stored model, by its name.
    """

    CLAIMS: ClassVar[str] = "models"
    HELP: ClassVar[str] = (
        "The models whose answers filter; else the best --n-models of different organizations. All are ranked."
    )

    named: tuple[str, ...]
    makers: Mapping[str, Maker]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> FilterModels:
        """The models that a selection names, aliases resolved; a name that no model has is left for the question."""
        model, alias = tables.model.c, tables.model_alias.c
        rows = session.execute(sa.select(model.name, model.organization, model.open_weights)).all()
        also = sa.select(alias.name, model.name).join(tables.model, model.id == alias.model_id)
        names: dict[str, str] = dict(session.execute(also).tuples().all())
        return cls(
            named=tuple(dict.fromkeys(names.get(name, name) for name in selection.models)),
            makers={row[0]: Maker(organization=row[1], open_weights=row[2]) for row in rows},
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the names and the makers."""
        makers = {name: (maker.organization, maker.open_weights) for name, maker in self.makers.items()}
        return hashlib.sha256(json.dumps([self.named, makers], sort_keys=True).encode()).hexdigest()
