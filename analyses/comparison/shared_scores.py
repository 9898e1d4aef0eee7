"""The scores of two models on the prompts that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.missing import MissingPolicy, select_participants
from tracker.statistics.grouping import Grouping


@dataclass(frozen=True, kw_only=True)
class IncompleteScores:
    """The scores of two models on the prompts that at least one was measured on.

    Attributes:
        a, b: ``(n,)`` scores of the two; NaN = missing.
        groups: clusters of the prompts.
        bounds: worst and best score.
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    groups: Grouping
    bounds: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class ImputedScores:
    """The scores of two models on the prompts of all models, missing ones imputed.

    Attributes:
        a, b: ``(n,)`` scores of the two for errors, see `linearize_imputed`.
        groups: clusters of the prompts.
        n_missing: imputed scores.
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    groups: Grouping
    n_missing: int


@dataclass(frozen=True, kw_only=True)
class SharedScores:
    """The scores of two models on the prompts that both were measured on.

    Attributes:
        models: the two names.
        scores: of all models, on these prompts.
        a, b: ``(n,)`` scores of the two.
        groups: clusters of the prompts.
        cluster: what makes a cluster.
        n_only: prompts that only the first, or only the second, was measured on.
        incomplete: the scores on all prompts, if missing ones can have any value within bounds; else None.
        imputed: the scores on all prompts, if missing ones are imputed; else None.
    """

    models: tuple[str, str]
    scores: PerformanceMatrix
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    groups: Grouping
    cluster: str
    n_only: tuple[int, int]
    incomplete: IncompleteScores | None = None
    imputed: ImputedScores | None = None

    @property
    def values(self) -> NDArray[np.float64]:
        """Return all scores, and the extremes of missing ones or those in their place."""
        bounds = () if self.incomplete is None else self.incomplete.bounds
        filled = () if self.imputed is None else (self.imputed.a, self.imputed.b)
        return np.concatenate([self.a, self.b, *filled, np.array(bounds, dtype=np.float64)])


def select_pair(models: tuple[str, ...], a: str, b: str) -> tuple[str, str]:
    """Return both names; a missing name is the other one of two models."""
    if a and b:
        return a, b
    rest = [name for name in models if name not in (a, b)]
    return (a or rest.pop(0)), (b or rest.pop(0))


def select_shared(scores: PerformanceMatrix, clusters: Clusters, models: tuple[str, str]) -> SharedScores:
    """The prompts that both models were measured on; under ``bounds`` also those that one was, under ``impute`` all.

    Raises:
        SelectionError: under ``fail``, one of the two lacks scores that the other one has.
    """
    columns = [scores.models.index(name) for name in models]
    pair = scores.without_imputed().Q[:, columns]
    is_measured = ~np.isnan(pair)
    is_shared, rows = np.asarray(is_measured.all(axis=1)), np.asarray(is_measured.any(axis=1))
    if scores.missing == "fail":
        rule = MissingPolicy(name="fail", min_coverage=0.0, metric=scores.metric)
        select_participants(pair[rows], rule, models=models, is_ranked=np.ones(2, dtype=np.bool_))
    kept = scores.rows(is_shared)
    a, b = np.ascontiguousarray(pair[is_shared].T)
    incomplete = None
    if scores.bounds is not None and is_shared.any() and not is_measured[rows].all():
        all_a, all_b = np.ascontiguousarray(pair[rows].T)
        groups = clusters.group(scores.prompt_ids[rows])
        incomplete = IncompleteScores(a=all_a, b=all_b, groups=groups, bounds=scores.bounds)
    imputed = None
    if scores.measured is not None and is_shared.any() and not is_shared.all():
        filled_a, filled_b = np.ascontiguousarray(scores.for_errors[:, columns].T)
        groups = clusters.group(scores.prompt_ids)
        imputed = ImputedScores(a=filled_a, b=filled_b, groups=groups, n_missing=int((~is_measured).sum()))
    return SharedScores(
        models=models,
        scores=kept,
        a=a,
        b=b,
        groups=clusters.group(kept.prompt_ids),
        cluster=clusters.field,
        n_only=(int((is_measured[:, 0] & ~is_shared).sum()), int((is_measured[:, 1] & ~is_shared).sum())),
        incomplete=incomplete,
        imputed=imputed,
    )
