"""Policies for missing scores before models are ranked; nothing is left out silently.

Policies:

unranked: a model with missing scores has a mean over its scores, but no rank.

fail: raise an error if any score is missing.

complete: use only the rows with a score for every shown model.

worst: replace a missing score by the worst possible score of the metric.

impute: estimate a missing score from the other scores of the model and the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.name_lists import join_names
from tracker.queries.selection import POLICIES, Policy
from tracker.statistics.missing_scores import complete_rows, fill_missing, impute

MAX_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class MissingPolicy:
    """How to treat missing scores.

    Attributes:
        name: name of the policy.
        unit: unit of the rows, ``prompt`` or ``task``.
        worst, best: the metric's bounds in the order of merit; None without bounds.
        metric: its name.
    """

    name: Policy = "unranked"
    unit: str = "prompt"
    worst: float | None = None
    best: float | None = None
    metric: str = ""

    def __post_init__(self) -> None:
        """Raise `SelectionError` if the policy is unknown."""
        if self.name not in POLICIES:
            raise SelectionError(f"No missing-score policy {self.name!r}. Known: {', '.join(POLICIES)}.")


@dataclass(frozen=True, kw_only=True)
class FilledScores:
    """A matrix after the policy.

    Attributes:
        Q: ``(n_kept, k)`` scores; NaN only under ``unranked``, or in columns that are not ranked.
        kept: ``(n,)`` whether a row stays.
        warnings: what was left out or imputed, and the consequences.
    """

    Q: NDArray[np.float64]
    kept: NDArray[np.bool_]
    warnings: tuple[str, ...] = ()


def apply_missing_policy(
    Q: NDArray[np.float64],
    policy: MissingPolicy,
    *,
    models: Sequence[str],
    is_ranked: NDArray[np.bool_] | None = None,
) -> FilledScores:
    """Apply a policy.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.
        policy: the policy.
        models: name of each column.
        is_ranked: ``(k,)`` columns to rank; None means all. The others help to impute.

    Raises:
        SelectionError: scores are missing under ``fail``; no row is complete; the metric has no worst score.
    """
    is_ranked = np.ones(Q.shape[1], dtype=np.bool_) if is_ranked is None else is_ranked
    n_missing = np.isnan(Q).sum(axis=0)
    incomplete = np.flatnonzero(is_ranked & (n_missing > 0))
    if policy.name == "unranked" or not len(incomplete):
        return _all_rows(Q)
    names = _describe([(models[j], int(n_missing[j])) for j in incomplete.tolist()])
    if policy.name == "fail":
        raise SelectionError(
            f"Scores are missing, of {len(Q):,} {policy.unit}s: {names}. Leave those models out with --models, or "
            "choose a policy: --missing complete, worst, impute or unranked."
        )
    if policy.name == "complete":
        return _keep_complete(Q, policy, is_ranked, names)
    if policy.name == "worst":
        return _fill_worst(Q, policy, is_ranked, names)
    return _fill_imputed(Q, policy, is_ranked, names)


def _all_rows(Q: NDArray[np.float64], *warnings: str) -> FilledScores:
    return FilledScores(Q=Q, kept=np.ones(len(Q), dtype=np.bool_), warnings=warnings)


def _keep_complete(
    Q: NDArray[np.float64], policy: MissingPolicy, is_ranked: NDArray[np.bool_], names: str
) -> FilledScores:
    kept, unit = complete_rows(Q, is_ranked), policy.unit
    if not kept.any():
        raise SelectionError(
            f"No {unit} has a score for every model. Most are missing for: {names}. Leave those models out with "
            "--models."
        )
    warning = (
        f"Only the {kept.sum():,} of {len(Q):,} {unit}s with a score for every model are used. Missing scores: {names}."
    )
    return FilledScores(Q=Q[kept], kept=kept, warnings=(warning,))


def _fill_worst(
    Q: NDArray[np.float64], policy: MissingPolicy, is_ranked: NDArray[np.bool_], names: str
) -> FilledScores:
    if policy.worst is None:
        raise SelectionError(
            f"The metric {policy.metric} has no bounds, so no worst score. Declare its bounds when you ingest "
            "(--bounds LOW HIGH), or choose another --missing."
        )
    warning = (
        f"Missing scores are replaced by {policy.worst:g}, the worst possible score: {names}. The means of these "
        "models are lower bounds. Errors and intervals treat the replaced scores as measured."
    )
    return _all_rows(fill_missing(Q, is_ranked, policy.worst), warning)


def _fill_imputed(
    Q: NDArray[np.float64], policy: MissingPolicy, is_ranked: NDArray[np.bool_], names: str
) -> FilledScores:
    values = impute(Q)
    if policy.worst is not None and policy.best is not None:
        values = np.clip(values, min(policy.worst, policy.best), max(policy.worst, policy.best))
    if np.isnan(values[:, is_ranked]).any():
        raise SelectionError(
            f"Too many scores are missing to impute them: {names}. Choose --missing complete, or other models."
        )
    warning = (
        f"Missing scores are imputed from the other scores of the model and of the {policy.unit}: {names}. Errors "
        "and intervals treat imputed scores as measured, so they are too narrow for these models."
    )
    return _all_rows(fill_missing(Q, is_ranked, values), warning)


def _describe(incomplete: Sequence[tuple[str, int]]) -> str:
    ordered = sorted(incomplete, key=lambda model: (-model[1], model[0]))
    return join_names((f"{name} {n:,}" for name, n in ordered), MAX_NAMES, noun="more models")
