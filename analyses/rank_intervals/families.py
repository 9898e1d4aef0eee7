"""Rank intervals with one model per family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.name_lists import join_names
from tracker.queries.related_models.related import RelatedModels
from tracker.recording.finding import Metric, Undefined
from tracker.statistics.rank_intervals import RankIntervals

MIN_FAMILIES = 2
MAX_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class FamilyRanks:
    """Ranks with the best model of each family only.

    Attributes:
        related: the families.
        ranks: of the representatives, in the order of ``related.families.kept``; None where that is no change, or too
            few models.
    """

    related: RelatedModels
    ranks: RankIntervals | None

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Models, pairs that differ significantly, and models that may be first."""
        names = ("share_separable", "n_may_lead", "n_pairs", "first.holm")
        n_models: dict[str, Metric] = {"one_per_family.n_models": float(self.related.n_families)}
        ranks = self.ranks
        if ranks is None:
            few = self.related.n_families < MIN_FAMILIES
            reason = "all models are one family" if few else "every model is a separate family"
            return n_models | {f"one_per_family.{name}": Undefined(reason) for name in names}
        n_may_lead = float((ranks.rank_low == 1).sum())
        values = (ranks.n_separable_pairs / ranks.n_pairs, n_may_lead, float(ranks.n_pairs), ranks.first_holm)
        return n_models | {f"one_per_family.{name}": value for name, value in zip(names, values, strict=True)}

    def describe(self) -> str:
        """Return a sentence with the result; '' where there is none."""
        ranks, related = self.ranks, self.related
        if ranks is None:
            return ""
        kept = related.families.kept
        names = join_names([related.models[kept[column]] for column in np.flatnonzero(ranks.rank_low == 1)], MAX_NAMES)
        return (
            f"One model per family ({kept.size} of {len(related.models)} models): {ranks.n_separable_pairs:,} of "
            f"{ranks.n_pairs:,} pairs differ significantly. First may be: {names}."
        )


def rank_per_family(related: RelatedModels, run: Callable[[NDArray[np.int64]], RankIntervals]) -> FamilyRanks:
    """Repeat rank intervals with the best model of each family.

    Args:
        related: the families of the ranked models.
        run: the intervals of some of the columns.
    """
    is_same = related.are_unrelated or related.n_families < MIN_FAMILIES
    return FamilyRanks(related=related, ranks=None if is_same else run(related.families.kept))
