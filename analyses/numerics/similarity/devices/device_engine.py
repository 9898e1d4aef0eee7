"""The engine of a device."""

from __future__ import annotations

from functools import partial

from analyses.numerics.similarity.devices.device_counter import DevicePairCounter
from analyses.numerics.similarity.devices.draws import shuffle_on_device
from analyses.numerics.similarity.engine import Engine
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import Similarity


def create_engine(device: str) -> Engine:
    """Return the engine of a device for tables without weights.

    Args:
        device: a name that PyTorch knows, such as ``cuda``.
    """

    def create_counter(table: ScoreTable, similarities: tuple[Similarity, ...]) -> PairCounter:
        counter = PairCounter.create(table, similarities)
        return DevicePairCounter(counter.packed, counter.lattices, counter.cells, device=device)

    return Engine(create_counter, partial(shuffle_on_device, device=device))
