"""The scores and covariates of a mixed model, in the layout that the elimination of effects needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Component = Literal["model", "family", "task", "model:task", "prompt"]
COMPONENTS: tuple[Component, ...] = ("model", "family", "task", "model:task", "prompt")
"""The random effects, in the order of every array of standard deviations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossedDesign:
    """Scores with their effects; rows are sorted by task.

    Attributes:
        Y: ``(n, k)`` scores; 0 where missing.
        observed: ``(n, k)`` float64, 1 where there is a score, else 0.
        starts: ``(n_tasks + 1,)`` first row of each task, then n.
        order: ``(n,)`` row of the table for each row here.
        X: ``(k, q)`` covariates of models, the first column is 1.
        W: ``(n, r)`` covariates of prompts.
        families: ``(k,)`` number of each model's family.
        active: components that the scores can determine; the others have variance 0.
    """

    Y: NDArray[np.float64]
    observed: NDArray[np.float64]
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    X: NDArray[np.float64]
    W: NDArray[np.float64]
    families: NDArray[np.int64]
    active: tuple[Component, ...]

    @property
    def n_models(self) -> int:
        """Number of models."""
        return int(self.Y.shape[1])

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.starts) - 1

    @property
    def n_families(self) -> int:
        """Number of families."""
        return int(self.families.max()) + 1

    @property
    def n_scores(self) -> int:
        """Number of scores."""
        return int(self.observed.sum())

    @property
    def n_fixed(self) -> int:
        """Number of fixed effects, with the intercept."""
        return int(self.X.shape[1] + self.W.shape[1])

    @property
    def is_active(self) -> NDArray[np.bool_]:
        """Whether each of `COMPONENTS` is estimated."""
        return np.array([name in self.active for name in COMPONENTS])

    def with_scores(self, Y: NDArray[np.float64]) -> CrossedDesign:
        """Return the same design with other scores; 0 where missing."""
        return replace(self, Y=Y)

    def task_slices(self) -> list[slice]:
        """Return the rows of each task."""
        return [slice(int(a), int(b)) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def sum_by_task(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``(n_tasks, k)`` sums of the rows of each task."""
        return np.asarray(np.add.reduceat(cells, self.starts[:-1], axis=0))


def build_design(
    Q: NDArray[np.float64],
    tasks: NDArray[np.int64],
    *,
    families: NDArray[np.int64] | None = None,
    model_covariates: NDArray[np.float64] | None = None,
    prompt_covariates: NDArray[np.float64] | None = None,
) -> CrossedDesign:
    """Sort the rows by task and decide which effects the scores can determine.

    Args:
        Q: ``(n, k)`` finite scores, NaN = missing; no row and no column is all NaN.
        tasks: ``(n,)`` number of each row's task, from 0 without gaps.
        families: ``(k,)`` number of each column's family, from 0 without gaps; None for no family effect.
        model_covariates: ``(k, q)``; None for none.
        prompt_covariates: ``(n, r)``; None for none.
    """
    n, k = Q.shape
    order = np.argsort(tasks, kind="stable")
    sizes = np.bincount(tasks)
    observed = ~np.isnan(Q[order])
    groups = np.zeros(k, dtype=np.int64) if families is None else families
    n_families = int(groups.max()) + 1
    has_parts = len(sizes) > 1
    has_repeats = bool((sizes > 1).any())
    possible: dict[Component, bool] = {
        "model": True,
        "family": 1 < n_families < k,
        "task": has_parts,
        "model:task": has_parts and has_repeats,
        "prompt": has_repeats,
    }
    ones = np.ones((k, 1))
    return CrossedDesign(
        Y=np.where(observed, Q[order], 0.0),
        observed=observed.astype(np.float64),
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        order=order,
        X=ones if model_covariates is None else np.hstack([ones, model_covariates]),
        W=np.empty((n, 0)) if prompt_covariates is None else prompt_covariates[order],
        families=groups,
        active=tuple(name for name, is_possible in possible.items() if is_possible),
    )
