"""Scores as matrices: rows are what is asked, columns are who answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class PerformanceMatrix:
    """The performance matrix of a benchmark under one metric.

    Attributes:
        Q: ``(n_prompts, n_models)`` float64 scores, NaN = not measured.
        prompt_ids: ``(n_prompts,)`` int64, primary keys of ``prompt``.
        tasks: ``(n_prompts,)`` task name of each prompt; '' where there is none.
        models: name of each column.
        run_ids: ``(n_models,)`` int64, the run behind each column.
        benchmark, metric, condition: what was selected.
        higher_is_better: whether larger scores are better under the metric.
    """

    Q: NDArray[np.float64]
    prompt_ids: NDArray[np.int64]
    tasks: NDArray[np.str_]
    models: tuple[str, ...]
    run_ids: NDArray[np.int64]
    benchmark: str = ""
    metric: str = ""
    condition: str = "full"
    higher_is_better: bool = True

    @property
    def n_prompts(self) -> int:
        """Number of rows."""
        return self.Q.shape[0]

    @property
    def n_models(self) -> int:
        """Number of columns."""
        return self.Q.shape[1]

    @property
    def is_complete(self) -> bool:
        """Whether every cell was measured."""
        return not bool(np.isnan(self.Q).any())

    @property
    def is_binary(self) -> bool:
        """Whether every measured score is 0 or 1."""
        return bool((np.isnan(self.Q) | (self.Q == 0) | (self.Q == 1)).all())

    @property
    def digest(self) -> str:
        """SHA-256 of scores, prompts and models: equal inputs, equal digest."""
        hashed = hashlib.sha256()
        for part in (self.Q, self.prompt_ids, self.run_ids):
            hashed.update(np.ascontiguousarray(part).tobytes())
        hashed.update("\x1f".join((*self.models, *self.tasks.tolist(), self.metric, self.condition)).encode())
        return hashed.hexdigest()

    def rows(self, keep: NDArray[np.bool_]) -> PerformanceMatrix:
        """The same matrix with only the prompts where ``keep`` is true."""
        return replace(self, Q=self.Q[keep], prompt_ids=self.prompt_ids[keep], tasks=self.tasks[keep])

    def complete(self) -> PerformanceMatrix:
        """The prompts that every model answered."""
        return self.rows(~np.isnan(self.Q).any(axis=1))
