"""The bins that are expected to hold the percentiles of a draw's cosines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.cosines.cosine_pairs import BINS
from analyses.numerics.similarity.cosines.cosine_passes import CosinePasses

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
        passes: over the table and its draws.
    """

    def __init__(self, seen: SeenBins, passes: CosinePasses) -> None:
        self._seen, self._passes = seen, passes
        self._room = passes.make_room(seen.is_near(), seen.room)

    def prepare(self) -> Any:
        """Return room for the pairs in the expected bins."""
        self._room.n[0] = 0
        return self._room

    def collect(
        self, rows: Any, is_selected: NDArray[np.bool_], counts: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the cosines of a table in some bins, and the weights of their pairs, after its pairs were binned.

        Args:
            rows: the table, from the passes.
            is_selected: the bins of its percentiles.
            counts: ``(BINS,)`` pairs in each bin.
        """
        if self._holds(is_selected):
            return self._passes.select(rows, self._room, is_selected)
        self._expect(is_selected, counts)
        room = self._passes.make_room(is_selected, int(counts[is_selected].sum()))
        if is_selected.any():
            self._passes.collect(rows, room)
        return self._passes.select(rows, room, is_selected)

    def _holds(self, is_selected: NDArray[np.bool_]) -> bool:
        """Whether the first pass collected all pairs in some bins."""
        return bool(self._room.has_all and not (is_selected & ~self._room.is_selected).any())

    def _expect(self, is_selected: NDArray[np.bool_], counts: NDArray[np.integer[Any]]) -> None:
        """Expect the next percentiles near these bins too."""
        self._seen.is_seen |= is_selected
        near = self._seen.is_near()
        n = int(counts[near].sum())
        self._seen.room = max(MIN_ROOM, n + n // 2)
        self._room = self._passes.make_room(near, self._seen.room)
