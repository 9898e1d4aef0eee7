"""Lists of names of models, tasks and benchmarks in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def list_leaders(ranks: NDArray[np.float64], models: Sequence[str]) -> list[str]:
    """Return the names of the models that share first place."""
    return [models[column] for column in np.flatnonzero(ranks == ranks.min()).tolist()]
