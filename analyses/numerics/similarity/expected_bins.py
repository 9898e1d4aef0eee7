"""The bins that are expected to hold the percentiles of a draw's cosines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosine_layout import make_room
from analyses.numerics.similarity.cosine_pairs import BINS, CollectedCosines, fill_places

MARGIN = 4
"""Bins on both sides of the percentiles of earlier draws whose cosines are collected while pairs are binned."""
MIN_ROOM = 1024
"""Least room for collected cosines."""


@dataclass
class SeenBins:
    """The bins that held percentiles of draws so far; shared by all threads, and changed.

    Attributes:
        is_seen: ``(BINS,)`` bool.
        room: how many cosines those in these bins and around are expected to be.
    """

    is_seen: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(BINS, np.bool_))
    room: int = 0

    def is_near(self) -> NDArray[np.bool_]:
        """Return ``(BINS,)``, whether a bin is among them or around them."""
        near = self.is_seen.copy()
        for place in np.flatnonzero(near).tolist():
            near[max(0, place - MARGIN) : place + MARGIN + 1] = True
        return near


class ExpectedBins:
    """The bins that are expected to hold the percentiles of a draw: those of earlier draws, and some around.

    The cosines in these bins are collected in the pass that bins all pairs. A second pass is only needed for draws
    whose percentiles lie elsewhere. Which of the two happens changes no result.

    Args:
        seen: of all draws.
    """

    def __init__(self, seen: SeenBins) -> None:
        self._seen = seen
        self._room = make_room(seen.is_near(), seen.room)

    def prepare(self) -> CollectedCosines:
        """Return room for the cosines in the expected bins."""
        self._room.n[0] = 0
        return self._room

    def select(
        self, is_selected: NDArray[np.bool_], lowest: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the collected cosines in some bins, and the weights of their pairs; None if some are not there."""
        room, n = self._room, int(self._room.n[0])
        if n > room.cosines.size or (is_selected & ~room.is_selected).any():
            return None
        cosines = room.cosines[:n]
        places = np.empty(n, np.int32)
        fill_places(cosines, lowest, places)
        chosen = is_selected[places]
        return cosines[chosen], room.masses[:n][chosen]

    def expect(self, is_selected: NDArray[np.bool_], counts: NDArray[np.integer[Any]]) -> None:
        """Expect the next percentiles near these bins too.

        Args:
            is_selected: the bins of this draw's percentiles.
            counts: ``(BINS,)`` pairs in each bin.
        """
        self._seen.is_seen |= is_selected
        near = self._seen.is_near()
        n = int(counts[near].sum())
        self._seen.room = max(MIN_ROOM, n + n // 2)
        self._room = make_room(near, self._seen.room)
