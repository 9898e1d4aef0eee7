"""Group related models around representatives that are not related to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.statistics.ranking import overflow_exponent


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFamilies:
    """Families of models.

    Attributes:
        representative: ``(k,)`` column of the model that stands for the family of each model.
    """

    representative: NDArray[np.int64]

    @property
    def kept(self) -> NDArray[np.int64]:
        """Columns of the representatives, ascending: one model per family."""
        return np.unique(self.representative)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Columns of each family, its representative first; the largest family first."""
        groups = [
            (kept, *(column for column in np.flatnonzero(self.representative == kept).tolist() if column != kept))
            for kept in self.kept.tolist()
        ]
        return tuple(sorted(groups, key=lambda group: (-len(group), group)))


def group_models(
    labels: Sequence[str],
    excess: NDArray[np.float64] | None,
    near_copies: NDArray[np.bool_] | None,
    priority: NDArray[np.float64],
) -> ModelFamilies:
    """Group models with equal labels, and near-copies.

    The models are visited in the order of their priority. One that is related to an earlier representative joins it, by
    label before agreement; any other becomes a representative. So no two representatives are related, and chains of
    near-copies do not join families.

    Args:
        labels: ``k`` labels of families; '' is no family.
        excess: ``(k, k)`` excess agreement, which decides between several representatives; None for none.
        near_copies: ``(k, k)`` whether two models are near-copies; None if pairs are not compared.
        priority: ``(k,)``; the largest comes first, then the first column; NaN comes last.
    """
    k = len(labels)
    representative = np.arange(k)
    order = np.argsort(-np.nan_to_num(priority, nan=-np.inf), kind="stable").tolist()
    kept: list[int] = []
    by_label: dict[str, int] = {}
    for column in order:
        label = labels[column]
        copies = [] if near_copies is None else np.array(kept, dtype=np.int64)[near_copies[column, kept]].tolist()
        if label and label in by_label:
            representative[column] = by_label[label]
        elif copies:
            agreement = np.zeros(len(copies)) if excess is None else np.nan_to_num(excess[column, copies])
            representative[column] = copies[int(np.argmax(agreement))]
        else:
            kept.append(column)
        if label:
            by_label.setdefault(label, int(representative[column]))
    return ModelFamilies(representative=representative)


def compute_typicality(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far the scores of each model correlate with the mean scores of the other models.

    Of near-copies the one with added noise has the smaller correlation.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.

    Returns:
        ``(k,)`` in [-1, 1]; NaN for constant scores.
    """
    Q = np.ldexp(Q, -overflow_exponent(Q))
    is_measured = ~np.isnan(Q)
    n, total = is_measured.sum(axis=1), np.where(is_measured, Q, 0.0).sum(axis=1)
    typicality = np.full(Q.shape[1], np.nan)
    for column in range(Q.shape[1]):
        rows = is_measured[:, column] & (n > 1)
        x = Q[rows, column]
        rest = (total[rows] - x) / (n[rows] - 1)
        x, rest = x - x.mean() if x.size else x, rest - rest.mean() if x.size else rest
        scale = np.sqrt((x @ x) * (rest @ rest))
        if scale > 0:
            typicality[column] = (x @ rest) / scale
    return typicality


def compute_priority(Q: NDArray[np.float64], *, higher_is_better: bool) -> NDArray[np.float64]:
    """Return the order in which models may represent a family: the best mean first, of those that are measured enough.

    Models with less than half of the prompts of the most complete one come last.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.
        higher_is_better: whether large scores are good.

    Returns:
        ``(k,)`` ranks as numbers, the largest first.
    """
    n = (~np.isnan(Q)).sum(axis=0)
    sums = np.nansum(Q, axis=0)
    mean = np.divide(sums, n, out=np.full(len(n), -np.inf), where=n > 0)
    mean = np.where(n > 0, mean if higher_is_better else -mean, -np.inf)
    order = np.lexsort((-np.arange(len(n)), mean, 2 * n >= n.max(initial=0)))
    priority = np.empty(len(n))
    priority[order] = np.arange(len(n), dtype=np.float64)
    return priority
