"""Aggregations of harnesses: the rows of a task, and the number computed from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

WITH_NUMBER = re.compile(r"(?P<name>pass@|early_pass@|pass\^|at_least_)(?P<k>\d{1,6})")


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The scores of some tasks under one metric, as the harness counts them.

    Attributes:
        values: ``(n,)`` float64, finite.
        prompts: ``(n,)`` int64 number of the prompt of each.
        trials: ``(n,)`` int64.
        tasks: ``(n,)`` int64 number of the task of each.
        weights: ``(n,)`` by name of a weighted metric.
        groups: ``(n,)`` int64 number of the group of each, by field of the prompts.
    """

    values: NDArray[np.float64]
    prompts: NDArray[np.int64]
    trials: NDArray[np.int64]
    tasks: NDArray[np.int64]
    weights: Mapping[str, NDArray[np.float64]]
    groups: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def join(cls, parts: Sequence[TaskRows]) -> TaskRows:
        """Return the rows of all parts, with the weights and groups that all of them have."""
        names = [name for name in parts[0].weights if all(name in part.weights for part in parts)]
        fields = [name for name in parts[0].groups if all(name in part.groups for part in parts)]
        return cls(
            values=np.concatenate([part.values for part in parts]),
            prompts=np.concatenate([part.prompts for part in parts]),
            trials=np.concatenate([part.trials for part in parts]),
            tasks=np.concatenate([part.tasks for part in parts]),
            weights={name: np.concatenate([part.weights[name] for part in parts]) for name in names},
            groups={name: np.concatenate([part.groups[name] for part in parts]) for name in fields},
        )

    def select(self, chosen: NDArray[np.bool_]) -> TaskRows:
        """Return some of the rows."""
        return TaskRows(
            values=self.values[chosen],
            prompts=self.prompts[chosen],
            trials=self.trials[chosen],
            tasks=self.tasks[chosen],
            weights={name: weights[chosen] for name, weights in self.weights.items()},
            groups={name: groups[chosen] for name, groups in self.groups.items()},
        )

    def by_group(self, name: str) -> list[TaskRows]:
        """Return the rows of each group; none if the groups are unknown."""
        numbers = self.groups.get(name)
        return [] if numbers is None else [self.select(numbers == number) for number in np.unique(numbers)]

    def by_prompt(self) -> list[NDArray[np.float64]]:
        """Return the scores of each prompt, in the order of the trials."""
        order = np.argsort(self.trials, kind="stable")
        return _split(self.values[order], self.prompts[order])

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
        aggregation: name of the aggregation; those of `WITH_K` end with a number.
        metric: metric without filter, by which weights are named.
    """
    with np.errstate(all="ignore"):
        if (numbers := reduce(rows, aggregation)) is not None:
            return float(numbers.mean()) if len(numbers) else math.nan
        if aggregation in WEIGHTED:
            weights = rows.weights.get(metric)
            return math.nan if weights is None else WEIGHTED[aggregation](rows.values.sum() / weights.sum())
        if aggregation == "weighted_sum":
            weights = rows.weights.get(metric)
            return math.nan if weights is None else float((rows.values * weights).sum())
        return float(UNWEIGHTED[aggregation](rows))


def reduce(rows: TaskRows, aggregation: str) -> NDArray[np.float64] | None:
    """Return the numbers that an aggregation averages, one for each prompt where it is defined; None if it is no mean.

    ``row_mean`` averages the rows themselves.
    """
    if aggregation in ("mean", "row_mean"):
        return rows.prompt_means() if aggregation == "mean" else rows.values
    if match := WITH_NUMBER.fullmatch(aggregation):
        estimate, k = WITH_K[match["name"]], int(match["k"])
        numbers = [estimate(values, k) for values in rows.by_prompt()]
    elif aggregation in OF_TRIALS:
        numbers = [OF_TRIALS[aggregation](values) for values in rows.by_prompt()]
    else:
        return None
    return np.array([number for number in numbers if not math.isnan(number)])


def summarize(rows: TaskRows, aggregation: str, statistic: str, clusters: str = "") -> float:
    """Return a statistic of the numbers that an aggregation averages; NaN if it is undefined.

    Args:
        rows: at least one row.
        aggregation: name of an aggregation that is a mean.
        statistic: ``mean``, ``n`` (how many numbers), or a name in `SPREADS`.
        clusters: field of the prompts by whose values a standard error is clustered.
    """
    numbers = reduce(rows, aggregation)
    if numbers is None:
        return math.nan
    if statistic == "n":
        return float(len(numbers))
    if statistic == "mean":
        return float(numbers.mean()) if len(numbers) else math.nan
    if clusters:
        return _clustered_stderr([reduce(part, aggregation) for part in rows.by_group(clusters)])
    return SPREADS[statistic](numbers) if len(numbers) > 1 else math.nan


def _clustered_stderr(parts: Sequence[NDArray[np.float64] | None]) -> float:
    """Return the clustered standard error of the mean, with the correction for few clusters.

    Source: Miller 2024, "Adding Error Bars to Evals", appendix A.
    """
    clusters = [part for part in parts if part is not None and len(part)]
    if len(clusters) < 2:
        return math.nan
    numbers = np.concatenate(clusters)
    squares = math.fsum(float((part - numbers.mean()).sum()) ** 2 for part in clusters)
    return math.sqrt(squares * len(clusters) / (len(clusters) - 1)) / len(numbers)


def sample_stderr(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of independent scores; NaN for fewer than two."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _pass_at_k(values: NDArray[np.float64], k: int) -> float:
    """Return the probability that one of k trials, drawn without replacement, passes: has a score of at least 1.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.
    """
    n, n_passed = len(values), int((values >= 1.0).sum())
    return 1.0 - math.comb(n - n_passed, k) / math.comb(n, k) if n >= k else math.nan


def _early_pass_at_k(values: NDArray[np.float64], k: int) -> float:
    """Return pass@k of early versions of Inspect: only a score of 1 passes, and fewer than k trials give 1."""
    n_failed = int((values != 1.0).sum())
    return 1.0 - math.comb(n_failed, k) / math.comb(len(values), k) if n_failed >= k else 1.0


def _pass_k(values: NDArray[np.float64], k: int) -> float:
    """Return the probability that all of k trials, drawn without replacement, pass.

    Source: Yao et al. 2024, "tau-bench", section 4.
    """
    n, n_passed = len(values), int((values >= 1.0).sum())
    return math.comb(n_passed, k) / math.comb(n, k) if n >= k else math.nan


def _at_least_k(values: NDArray[np.float64], k: int) -> float:
    return float((values >= 1.0).sum() >= k)


def _mode(values: NDArray[np.float64]) -> float:
    """Return the most frequent score, the first one of equally frequent ones."""
    scores = values.tolist()
    return float(max(scores, key=scores.count))


def _majority(values: NDArray[np.float64]) -> float:
    """Return the score of more than half of the trials; NaN if there is none."""
    mode = _mode(values)
    return mode if 2 * int((values == mode).sum()) > len(values) else math.nan


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _split(values: NDArray[np.float64], groups: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return np.split(values[order], starts)


def _perplexity(mean: float) -> float:
    return float(np.exp(-np.float64(mean)))


WITH_K: Mapping[str, Callable[[NDArray[np.float64], int], float]] = {
    "pass@": _pass_at_k,
    "early_pass@": _early_pass_at_k,
    "pass^": _pass_k,
    "at_least_": _at_least_k,
}
"""Aggregations of the trials of a prompt that hold a number, averaged over prompts."""

OF_TRIALS: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "median": lambda values: float(np.median(values)),
    "max": lambda values: float(values.max()),
    "mode": _mode,
    "majority": _majority,
}
"""Aggregations of the trials of a prompt, averaged over prompts."""

SPREADS: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "stderr": sample_stderr,
    "std": lambda numbers: float(np.std(numbers, ddof=1)),
    "var": lambda numbers: float(np.var(numbers, ddof=1)),
    "population_var": lambda numbers: float(np.var(numbers)),
}
"""Statistics of the numbers that are averaged, beside their mean."""

UNWEIGHTED: Mapping[str, Callable[[TaskRows], float]] = {
    "trial_mean": lambda rows: _mean([float(part.mean()) for part in _split(rows.values, rows.trials)]),
    "task_mean": lambda rows: _mean([float(part.mean()) for part in _split(rows.values, rows.tasks)]),
    "sum": lambda rows: float(rows.values.sum()),
    "n_zeros": lambda rows: float((rows.values == 0).sum()),
    "upper_median": lambda rows: float(np.sort(rows.values)[len(rows) // 2]),
    "perplexity": lambda rows: _perplexity(float(rows.values.mean())),
}
"""Further aggregations by name."""

WEIGHTED: Mapping[str, Callable[[float], float]] = {
    "weighted_perplexity": _perplexity,
    "bits_per_byte": lambda mean: -mean / math.log(2),
}
"""Aggregations of a sum of scores over a sum of weights."""
