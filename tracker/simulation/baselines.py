"""Reference benchmarks without information: equal tasks, random scores, one benchmark split at random.

Source: Zhang & Hardt 2024, section 4.2 (Constant, Random, ImageNet in 20 parts).
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.task_matrix import TaskMatrix

GRID = 10**6
"""Random scores are multiples of one over this: short decimals, which are compared without rounding."""


def constant(n_tasks: int, n_models: int, *, seed: int, trial: int) -> TaskMatrix:
    """Return one task of distinct random scores, repeated.

    Args:
        n_tasks: number of repetitions.
        n_models: models.
        seed: any non-negative integer.
        trial: number of the trial; each has different scores.
    """
    return _make_task_matrix(np.tile(_draw_scores("constant", seed, trial, (1, n_models)), (n_tasks, 1)))


def random(n_tasks: int, n_models: int, *, seed: int, trial: int) -> TaskMatrix:
    """Return independent random scores, uniform in [0, 1) and distinct within a task.

    Args:
        n_tasks: tasks.
        n_models: models.
        seed: any non-negative integer.
        trial: number of the trial; each has different scores.
    """
    return _make_task_matrix(_draw_scores("random", seed, trial, (n_tasks, n_models)))


def split(scores: PerformanceMatrix, n_tasks: int, *, seed: int, trial: int) -> TaskMatrix:
    """The prompts of a benchmark, split at random into tasks of equal size, give or take one prompt.

    A model's score of a task is its mean over those of the task's prompts that it answered.

    Args:
        scores: at least one prompt for each task.
        n_tasks: at least 1.
        seed: any non-negative integer.
        trial: each is split anew.

    Raises:
        SelectionError: there are more tasks than prompts.
    """
    if n_tasks > scores.n_prompts:
        raise SelectionError(
            f"{scores.benchmark} has {scores.n_prompts:,} prompts, too few for {n_tasks:,} tasks. Ask for fewer tasks."
        )
    parts = np.array_split(_stream("split", seed, trial).permutation(scores.n_prompts), n_tasks)
    is_scored = ~np.isnan(scores.Q)
    counts = np.stack([is_scored[part].sum(axis=0) for part in parts])
    sums = np.stack([np.nansum(scores.Q[part], axis=0) for part in parts])
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return TaskMatrix(
        T=means,
        n_prompts=counts.astype(np.int64),
        stderr=np.full(means.shape, np.nan),
        tasks=_number_names("part", n_tasks),
        models=scores.models,
        run_ids=scores.run_ids,
        benchmark=scores.benchmark,
        metric=scores.metric,
        condition=scores.condition,
        higher_is_better=scores.higher_is_better,
    )


def _make_task_matrix(T: NDArray[np.float64]) -> TaskMatrix:
    n_tasks, n_models = T.shape
    return TaskMatrix(
        T=T,
        n_prompts=np.zeros(T.shape, dtype=np.int64),
        stderr=np.full(T.shape, np.nan),
        tasks=_number_names("task", n_tasks),
        models=_number_names("model", n_models),
        run_ids=np.zeros(n_models, dtype=np.int64),
    )


def _draw_scores(purpose: str, seed: int, trial: int, shape: tuple[int, int]) -> NDArray[np.float64]:
    stream, (n_rows, n) = _stream(purpose, seed, trial), shape
    return np.stack([stream.choice(GRID, n, replace=False) for _ in range(n_rows)]) / GRID


def _stream(purpose: str, seed: int, trial: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(f"baseline {purpose}".encode()), trial]))


def _number_names(prefix: str, n: int) -> tuple[str, ...]:
    width = len(str(n))
    return tuple(f"{prefix} {number:0{width}}" for number in range(1, n + 1))
