"""Names of models, tasks and benchmarks in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracker import name_lists

MAX_NAMES = 3
"""Names that a sentence lists before it counts the rest."""


def join_names(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Names with commas; of long lists the first few, and how many more there are."""
    return name_lists.join_names(names, most)


def list_leaders(ranks: NDArray[np.float64], models: Sequence[str]) -> list[str]:
    """Names of those that share the first place."""
    return [models[column] for column in np.flatnonzero(ranks == ranks.min()).tolist()]
