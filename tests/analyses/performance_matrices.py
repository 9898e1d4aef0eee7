"""Tables as the analyses receive them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tracker.queries.performance import PerformanceMatrix
from tracker.queries.task_matrix import TaskMatrix


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


def task_matrix(T: ArrayLike, **rest: Any) -> TaskMatrix:
    """A task matrix around a table; the number of prompts is not known."""
    table = np.asarray(T, dtype=np.float64)
    n, m = table.shape
    passed = {"tasks": tuple(f"task {i}" for i in range(n)), "models": tuple(f"model {j}" for j in range(m))}
    return TaskMatrix(
        T=table,
        n_prompts=np.zeros(table.shape, dtype=np.int64),
        stderr=np.full(table.shape, np.nan),
        run_ids=np.arange(m, dtype=np.int64),
        **(passed | rest),
    )
