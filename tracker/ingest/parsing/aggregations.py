"""Aggregations of harnesses: the rows of a task, and the number computed from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WITH_NUMBER = re.compile(r"(?P<name>pass@|at_least_)(?P<k>\d{1,6})")


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The scores of some tasks under one metric, as the harness counts them.

    Attributes:
        values: ``(n,)`` float64, finite.
        prompts: ``(n,)`` int64 number of the prompt of each.
        trials: ``(n,)`` int64.
        tasks: ``(n,)`` int64 number of the task of each.
        weights: ``(n,)`` by name of a weighted metric.
    """

    values: NDArray[np.float64]
    prompts: NDArray[np.int64]
    trials: NDArray[np.int64]
    tasks: NDArray[np.int64]
    weights: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def join(cls, parts: Sequence[TaskRows]) -> TaskRows:
        """Return the rows of all parts, with the weights that all of them have."""
        names = [name for name in parts[0].weights if all(name in part.weights for part in parts)]
        return cls(
            values=np.concatenate([part.values for part in parts]),
            prompts=np.concatenate([part.prompts for part in parts]),
            trials=np.concatenate([part.trials for part in parts]),
            tasks=np.concatenate([part.tasks for part in parts]),
            weights={name: np.concatenate([part.weights[name] for part in parts]) for name in names},
        )

    def by_prompt(self) -> list[NDArray[np.float64]]:
        """Return the scores of each prompt."""
        return _split(self.values, self.prompts)

    def prompt_means(self) -> NDArray[np.float64]:
        """Return the mean over trials of each prompt, in any order."""
        _, place, n_trials = np.unique(self.prompts, return_inverse=True, return_counts=True)
        if len(n_trials) == len(self):
            return self.values
        sums = np.zeros(len(n_trials))
        np.add.at(sums, place.reshape(-1), self.values)
        return sums / n_trials


def aggregate(rows: TaskRows, aggregation: str, metric: str) -> float:
    """Return the number that an aggregation computes from rows; NaN if it is undefined.

    Args:
        rows: at least one row.
        aggregation: name of the aggregation; ``pass@k`` and ``at_least_k`` hold a number.
        metric: metric without filter, by which weights are named.
    """
    with np.errstate(all="ignore"):
        if match := WITH_NUMBER.fullmatch(aggregation):
            estimate = _pass_at_k if match["name"] == "pass@" else _at_least_k
            return _mean([estimate(values, int(match["k"])) for values in rows.by_prompt()])
        if aggregation in WEIGHTED:
            weights = rows.weights.get(metric)
            return math.nan if weights is None else WEIGHTED[aggregation](rows.values.sum() / weights.sum())
        return float(UNWEIGHTED[aggregation](rows))


def sample_stderr(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of independent scores; NaN for fewer than two."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _pass_at_k(values: NDArray[np.float64], k: int) -> float:
    """Return the probability that one of k trials, drawn without replacement, passes.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.
    """
    n, n_passed = len(values), round(float(values.sum()))
    if n < k:
        return math.nan
    return 1.0 - math.comb(n - n_passed, k) / math.comb(n, k)


def _at_least_k(values: NDArray[np.float64], k: int) -> float:
    return float((values >= 1.0).sum() >= k)


def _mode(values: NDArray[np.float64]) -> float:
    """Return the most frequent score, the first one of equally frequent ones."""
    scores = values.tolist()
    return float(max(scores, key=scores.count))


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _split(values: NDArray[np.float64], groups: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return np.split(values[order], starts)


def _perplexity(mean: float) -> float:
    return float(np.exp(-np.float64(mean)))


UNWEIGHTED: Mapping[str, Callable[[TaskRows], float]] = {
    "mean": lambda rows: float(rows.prompt_means().mean()),
    "row_mean": lambda rows: float(rows.values.mean()),
    "trial_mean": lambda rows: _mean([float(part.mean()) for part in _split(rows.values, rows.trials)]),
    "task_mean": lambda rows: _mean([float(part.mean()) for part in _split(rows.values, rows.tasks)]),
    "sum": lambda rows: float(rows.values.sum()),
    "n_zeros": lambda rows: float((rows.values == 0).sum()),
    "median": lambda rows: _mean([float(np.median(part)) for part in rows.by_prompt()]),
    "upper_median": lambda rows: float(np.sort(rows.values)[len(rows) // 2]),
    "max": lambda rows: _mean([float(part.max()) for part in rows.by_prompt()]),
    "mode": lambda rows: _mean([_mode(part) for part in rows.by_prompt()]),
    "perplexity": lambda rows: _perplexity(float(rows.values.mean())),
}
"""Aggregations by name. The mean, median, maximum and mode are over the trials of a prompt, then averaged."""

WEIGHTED: Mapping[str, Callable[[float], float]] = {
    "weighted_perplexity": _perplexity,
    "bits_per_byte": lambda mean: -mean / math.log(2),
}
"""Aggregations of a sum of scores over a sum of weights."""
