"""An earlier run of one model, when it was weaker: what is planted for those who look at history."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.simulation.item_response import Simulation

LABEL = "three months before"
LOST, LUCKY = 0.12, 0.04
"""Shares of what the model gets right now and got wrong then, and of what it gets wrong now and got right then."""


@dataclass(frozen=True, kw_only=True)
class EarlierRun:
    """What one model answered then.

    Attributes:
        model: its name.
        right: ``(n_prompts,)`` bool.
        planted: expected difference of the two means, now less then.
    """

    model: str
    right: NDArray[np.bool_]
    planted: float


def simulate_earlier_run(simulation: Simulation) -> EarlierRun:
    """The model that was measured twice: the one in the middle of the field."""
    means = simulation.full.right.mean(axis=0)
    column = int(np.argsort(means, kind="stable")[len(means) // 2])
    now = simulation.full.right[:, column].astype(np.bool_)
    rng = np.random.Generator(np.random.PCG64([simulation.seed, zlib.crc32(b"earlier run")]))
    drawn = rng.random(len(now))
    right = np.where(now, drawn >= LOST, drawn < LUCKY)
    planted = float(LOST * now.mean() - LUCKY * (1 - now.mean()))
    return EarlierRun(model=simulation.models[column], right=right, planted=planted)
