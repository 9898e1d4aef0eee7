"""Tables as the analyses receive them."""

from __future__ import annotations

import numpy as np

from tracker.queries.performance import PerformanceMatrix


def matrix(Q: np.ndarray, models: tuple[str, ...] | None = None) -> PerformanceMatrix:
    """A performance matrix around a table."""
    n, k = Q.shape
    return PerformanceMatrix(
        Q=Q,
        prompt_ids=np.arange(100, 100 + n, dtype=np.int64),
        tasks=np.full(n, ""),
        models=models or tuple(f"model {j}" for j in range(k)),
        run_ids=np.arange(k, dtype=np.int64),
    )
