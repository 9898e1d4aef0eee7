"""Duels between models: who wins on more of the tasks both have, who wins all duels, and who is caught in cycles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from analyses.numerics.elections.win_rates import count_pairwise_wins


@dataclass(frozen=True, kw_only=True)
class PairwiseDuels:
    """All duels of a field.

    Attributes:
        wins: ``(n_models, n_models)`` tasks on which the row is strictly better than the column.
        shared: ``(n_models, n_models)`` tasks both have.
    """

    wins: NDArray[np.int32]
    shared: NDArray[np.int32]

    @classmethod
    def from_codes(cls, codes: NDArray[np.int32]) -> PairwiseDuels:
        """Duels over tasks.

        Args:
            codes: ``(n_tasks, n_models)`` of `rank_codes`, or some of its rows and columns.
        """
        wins, shared = count_pairwise_wins(codes)
        return cls(wins=wins, shared=shared)

    @cached_property
    def margins(self) -> NDArray[np.int32]:
        """``(n_models, n_models)`` tasks won less tasks lost."""
        return np.asarray(self.wins - self.wins.T)

    @property
    def half_points(self) -> NDArray[np.int64]:
        """``(n_models, n_models)`` two for each task the row wins, one for each that both tie on; 0 on the diagonal."""
        half_points = self.margins.astype(np.int64) + self.shared
        np.fill_diagonal(half_points, 0)
        return np.asarray(half_points)

    @property
    def beats(self) -> NDArray[np.bool_]:
        """``(n_models, n_models)`` whether the row wins the duel with the column."""
        return np.asarray(self.margins > 0)

    @property
    def weak_condorcet_winners(self) -> NDArray[np.int64]:
        """Models that lose no duel."""
        return np.flatnonzero((self.margins >= 0).all(axis=1))

    @property
    def condorcet_winner(self) -> int | None:
        """The Condorcet winner: it wins every duel."""
        winners = np.flatnonzero(self.beats.sum(axis=1) == len(self.wins) - 1)
        return int(winners[0]) if len(winners) else None

    @cached_property
    def tiers(self) -> NDArray[np.int64]:
        """``(n_models,)`` the tier of each model, 0 is the top one, the Smith set.

        Every model of a tier wins its duel with every model of a lower one, and tiers are as small as that allows:
        inside a tier of several, models beat each other in cycles or tie.
        """
        return _ordered_components(np.asarray(self.margins >= 0))

    @property
    def pareto_dominates(self) -> NDArray[np.bool_]:
        """``(n_models, n_models)`` Pareto: the row is nowhere worse and somewhere better, on the tasks both have."""
        return np.asarray((self.wins > 0) & (self.wins.T == 0))

    @property
    def smith_set(self) -> NDArray[np.int64]:
        """The smallest set of models each of which wins its duel with every model outside."""
        return np.flatnonzero(self.tiers == 0)


def _ordered_components(reaches: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Strongly connected parts of a graph with an edge between every two nodes, by node; the first part is 0."""
    n_components, component = connected_components(csr_array(reaches), directed=True, connection="strong")
    # Whoever is in an earlier part has an edge to everyone in a later one, and none comes back.
    n_reached = np.zeros(n_components, dtype=np.int64)
    np.maximum.at(n_reached, component, reaches.sum(axis=1))
    position = np.empty(n_components, dtype=np.int64)
    position[np.argsort(-n_reached)] = np.arange(n_components)
    return np.asarray(position[component], dtype=np.int64)
