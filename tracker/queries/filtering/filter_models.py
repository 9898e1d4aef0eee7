"""The models by whose answers prompts are filtered, and their organizations."""

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
    """The origin of a model.

    Attributes:
        organization: organization that trained the model; None if unknown.
        open_weights: whether its weights can be downloaded; None if unknown.
    """

    organization: str | None
    open_weights: bool | None


@dataclass(frozen=True, kw_only=True)
class FilterModels(AnalysisInput):
    """The filter models that the user selected, and the origin of all models.

    For an analysis with this input, the selected models are the filter models; all models are loaded.

    Attributes:
        selected: names of the selected models; empty if the analysis selects them.
        makers: origin of every stored model, by its name.
    """

    CLAIMED_OPTION: ClassVar[ClaimableOption | None] = "models"
    CLAIMED_OPTION_HELP: ClassVar[str] = (
        "The filter models, whose answers decide; default: the best --n-models, each of another organization. All "
        "models are ranked."
    )

    selected: tuple[str, ...]
    makers: Mapping[str, ModelOrigin]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> FilterModels:
        """Resolve the models of a selection and their aliases; a name that no model has is left to the analysis."""
        model, alias = tables.model.c, tables.model_alias.c
        rows = session.execute(sa.select(model.name, model.organization, model.open_weights)).all()
        also = sa.select(alias.name, model.name).join(tables.model, model.id == alias.model_id)
        makers = {
            name: ModelOrigin(organization=organization, open_weights=is_open) for name, organization, is_open in rows
        }
        names = {name: name for name in makers} | dict(session.execute(also).all())
        return cls(selected=tuple(dict.fromkeys(names.get(name, name) for name in selection.models)), makers=makers)

    def find_origins(self, names: Sequence[str]) -> list[ModelOrigin]:
        """Return the known origins of some models."""
        unknown = ModelOrigin(organization=None, open_weights=None)
        return [self.makers.get(name, unknown) for name in names]

    def organizations(self, names: Sequence[str], *, open_only: bool = False) -> list[str | None]:
        """Return the organization of each model, '' if unknown; None for closed weights if ``open_only``."""
        makers = self.find_origins(names)
        return [None if open_only and maker.open_weights is False else maker.organization or "" for maker in makers]

    def choose(
        self, scores: PerformanceMatrix, *, n_models: int, open_only: bool = False, allow_unknown: bool = False
    ) -> NDArray[np.intp]:
        """Return the columns of the filter models, best first: the selected ones, else the best of different
        organizations.

        Only models with a score for every prompt are chosen automatically; a selected model may lack some.

        Args:
            scores: of all models; larger is better.
            n_models: number of models to choose if none is selected.
            open_only: choose only models whose weights can be downloaded.
            allow_unknown: treat a model of unknown organization as one of a separate organization, and unknown weights
                as open.

        Raises:
            NotFoundError: a selected model has no scores here.
            SelectionError: a selected model has no score for these prompts; the next best model is of unknown
                organization or openness; or there are too few models.
        """
        place = {name: column for column, name in enumerate(scores.models)}
        if self.selected:
            if missing := [name for name in self.selected if name not in place]:
                raise NotFoundError("model with such scores", missing[0], scores.models)
            columns = np.array([place[name] for name in self.selected], dtype=np.intp)
            if (unasked := np.isnan(scores.Q[:, columns]).all(axis=0)).any():
                raise SelectionError(
                    f"The filter model {self.selected[int(unasked.argmax())]!r} has no score for any of these prompts. "
                    "Leave it out of --models, or choose --tasks for which it has scores."
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
                f"Too few filter models: {len(columns)} {kind} of different organizations with a score for each of "
                f"{scores.n_prompts:,} prompts, but {n_models} are needed. Use a smaller --n-models, or name the "
                "models with --models."
            )
        return columns

    @property
    def digest(self) -> str:
        """SHA-256 of the names and the origins."""
        makers = {name: (maker.organization, maker.open_weights) for name, maker in self.makers.items()}
        return hashlib.sha256(json.dumps([self.selected, makers], sort_keys=True).encode()).hexdigest()


def _check_known(role: str, chosen: Mapping[str, ModelOrigin], *, open_only: bool) -> None:
    """Raise an error that lists all chosen models with unknown facts, so that one import can supply them.

    Raises:
        SelectionError: facts are unknown.
    """
    lacking = {
        "its organization": [name for name, maker in chosen.items() if maker.organization is None],
        "whether its weights are open": [
            name for name, maker in chosen.items() if open_only and maker.open_weights is None
        ],
    }
    facts = [
        f"for {', '.join(names)}, {'each ' if len(names) > 1 else ''}{role}, the store does not know {fact}"
        for fact, names in lacking.items()
        if names
    ]
    if facts:
        text = "; ".join(facts)
        raise SelectionError(
            f"{text[0].upper()}{text[1:]}. Import the facts (suffrage models import FILE), name the filter models "
            "with --models, or treat unknown origins as distinct with --allow-unknown."
        )


def select_best_models(scores: NDArray[np.float64], organizations: Sequence[str], n_models: int) -> NDArray[np.intp]:
    """Return the indices of the best models, no two of one organization; fewer if there are too few organizations.

    Ties are broken by position.

    Args:
        scores: ``(m,)`` larger is better; NaN is never chosen.
        organizations: ``(m,)`` organization of each; '' is unknown, and distinct from all others.
        n_models: number of models.
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
