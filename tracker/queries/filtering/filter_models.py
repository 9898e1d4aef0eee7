"""The models by whose answers prompts are filtered, and what is known of who made them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import AnalysisInput, ClaimableOption, Selection
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class ModelOrigin:
    """What is known of where a model comes from.

    Attributes:
        organization: who made it; None where that is not known.
        open_weights: whether its weights can be downloaded; None where that is not known.
    """

    organization: str | None
    open_weights: bool | None


@dataclass(frozen=True, kw_only=True)
class FilterModels(AnalysisInput):
    """Which models are to filter, where the user says so, and the makers of all.

    To a question with this input, the choice of models says who filters; every model is looked at.

    Attributes:
        selected: the models chosen, by their names; empty where the question is to choose.
        makers: of every stored model, by its name.
    """

    CLAIMED_OPTION: ClassVar[ClaimableOption | None] = "models"
    CLAIMED_OPTION_HELP: ClassVar[str] = (
        "The models whose answers filter; else the best --n-models of different organizations. All are ranked."
    )

    selected: tuple[str, ...]
    makers: Mapping[str, ModelOrigin]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> FilterModels:
        """The models that a selection names, aliases resolved; a name that no model has is left for the question."""
        model, alias = tables.model.c, tables.model_alias.c
        rows = session.execute(sa.select(model.name, model.organization, model.open_weights)).all()
        also = sa.select(alias.name, model.name).join(tables.model, model.id == alias.model_id)
        makers = {
            name: ModelOrigin(organization=organization, open_weights=is_open) for name, organization, is_open in rows
        }
        names = dict(session.execute(also).all()) | {name: name for name in makers}
        return cls(selected=tuple(dict.fromkeys(names.get(name, name) for name in selection.models)), makers=makers)

    def find_origins(self, names: Sequence[str]) -> list[ModelOrigin]:
        """Where each of some models comes from, as far as that is known."""
        unknown = ModelOrigin(organization=None, open_weights=None)
        return [self.makers.get(name, unknown) for name in names]

    def organizations(self, names: Sequence[str], *, open_only: bool = False) -> list[str | None]:
        """Who made each of some models, '' where that is not known; None where its weights are closed, if so asked."""
        makers = self.find_origins(names)
        return [None if open_only and maker.open_weights is False else maker.organization or "" for maker in makers]

    def choose(
        self, scores: PerformanceMatrix, *, n_models: int, open_only: bool = False, allow_unknown: bool = False
    ) -> NDArray[np.intp]:
        """Columns of the models that filter, the best first: those named, else the best of different organizations.

        Only models with a score for every prompt are chosen; a model that is named may lack some.

        Args:
            scores: of all models; larger is better.
            n_models: how many to choose where none is named.
            open_only: choose only models whose weights can be downloaded.
            allow_unknown: take a model of unknown organization as the only one of its own, and one of which it is not
                known whether its weights are open as open.

        Raises:
            NotFoundError: a model that was named has no scores here.
            SelectionError: a model that was named has no score of these prompts; the next best model is of unknown
                organization or openness; there are too few.
        """
        place = {name: column for column, name in enumerate(scores.models)}
        if self.selected:
            if missing := [name for name in self.selected if name not in place]:
                raise NotFoundError("model with such scores", missing[0], scores.models)
            columns = np.array([place[name] for name in self.selected], dtype=np.intp)
            if (unasked := np.isnan(scores.Q[:, columns]).all(axis=0)).any():
                raise SelectionError(
                    f"{self.selected[int(unasked.argmax())]} is to filter and has no score of any of these prompts. "
                    "Leave it out of --models, or choose --tasks that it was asked."
                )
            means = np.nanmean(scores.Q[:, columns], axis=0)
            return columns[np.argsort(-means, kind="stable")]
        means = scores.Q.mean(axis=0)  # NaN for a model that lacks a score
        makers = self.find_origins(scores.models)
        if open_only:
            means = np.where([maker.open_weights is False for maker in makers], np.nan, means)
        columns = select_best_models(means, [maker.organization or "" for maker in makers], n_models)
        if not allow_unknown:
            _check_known(
                f"one of the best {n_models}",
                {scores.models[column]: makers[column] for column in columns.tolist()},
                open_only=open_only,
            )
        if len(columns) < n_models:
            kind = f"{'open ' if open_only else ''}{'model' if len(columns) == 1 else 'models'}"
            raise SelectionError(
                f"Only {len(columns)} {kind} with a score for each of {scores.n_prompts:,} prompts can be taken, each "
                f"of another organization; {n_models} are to filter. Ask for fewer with --n-models, or name them with "
                "--models."
            )
        return columns

    @property
    def digest(self) -> str:
        """SHA-256 of the names and the makers."""
        makers = {name: (maker.organization, maker.open_weights) for name, maker in self.makers.items()}
        return hashlib.sha256(json.dumps([self.selected, makers], sort_keys=True).encode()).hexdigest()


def _check_known(role: str, chosen: Mapping[str, ModelOrigin], *, open_only: bool) -> None:
    """Raise with all chosen models of which something is not known, so that one file of facts can settle it.

    Raises:
        SelectionError: there are some.
    """
    lacking = {
        "which organization made it": [name for name, maker in chosen.items() if maker.organization is None],
        "whether its weights are open": [
            name for name, maker in chosen.items() if open_only and maker.open_weights is None
        ],
    }
    facts = [
        f"of {', '.join(names)}, {'each ' if len(names) > 1 else ''}{role}, it is not known {fact}"
        for fact, names in lacking.items()
        if names
    ]
    if facts:
        text = "; ".join(facts)
        raise SelectionError(
            f"{text[0].upper()}{text[1:]}. Say so in a file (suffrage models import FILE), name the models that "
            "filter with --models, or take each such model as one of its own with --allow-unknown."
        )


def select_best_models(scores: NDArray[np.float64], organizations: Sequence[str], n_models: int) -> NDArray[np.intp]:
    """Places of the best models, no two of one organization; fewer where there are fewer organizations.

    Models with equal scores are taken in the order in which they stand.

    Args:
        scores: ``(m,)`` larger is better; NaN is never taken.
        organizations: ``(m,)`` who made each; '' is not known, and counts as an organization of its own each time.
        n_models: how many to take.
    """
    selected: list[int] = []
    seen: set[str] = set()
    for place in np.argsort(-scores, kind="stable").tolist():
        maker = organizations[place]
        if len(selected) == n_models or np.isnan(scores[place]):
            break
        if not maker or maker not in seen:
            seen.add(maker)
            selected.append(place)
    return np.array(selected, dtype=np.intp)
