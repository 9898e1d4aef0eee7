"""Policies for scores that were not measured, before models are ranked: nothing is ever left out silently.

Policies:
    unranked: a model that lacks a score keeps its mean over the rest, and has no rank.
    fail: no leaderboard while anything is missing.
    complete: only the rows that every model shown was measured on.
    worst: a missing score counts as the worst that the metric allows.
    impute: a missing score is guessed from the model's and the row's other scores.
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
    """What a missing score means.

    Attributes:
        name: of the policy.
        unit: what the rows are, ``prompt`` or ``task``.
        worst, best: the metric's bounds in the order of merit; None where it has none.
        metric: its name.
    """

    name: Policy = "unranked"
    unit: str = "prompt"
    worst: float | None = None
    best: float | None = None
    metric: str = ""

    def __post_init__(self) -> None:
        """Raise `SelectionError` where there is no such policy."""
        if self.name not in POLICIES:
            raise SelectionError(f"No way {self.name!r} to settle what is missing. There are: {', '.join(POLICIES)}.")


@dataclass(frozen=True, kw_only=True)
class FilledScores:
    """A matrix after the policy.

    Attributes:
        Q: ``(n_kept, k)`` scores; NaN only under ``unranked``, or in columns that are not ranked.
        kept: ``(n,)`` whether a row stays.
        warnings: what was left out or filled in, and what follows from it.
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
        Q: ``(n, k)`` scores, NaN = not measured.
        policy: what to do.
        models: name of each column.
        is_ranked: ``(k,)`` columns that are to be ranked; None means all. The others help to impute.

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
            f"Scores are missing, of {len(Q):,} {policy.unit}s: {names}. Leave those models out with --models, or say "
            "what a missing score means: --missing complete, worst, impute or unranked."
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
        raise SelectionError(f"No {unit} was put to every model. Lacking most: {names}. Leave those out with --models.")
    warning = (
        f"Only the {kept.sum():,} of {len(Q):,} {unit}s that every model was measured on count; missing were: {names}."
    )
    return FilledScores(Q=Q[kept], kept=kept, warnings=(warning,))


def _fill_worst(
    Q: NDArray[np.float64], policy: MissingPolicy, is_ranked: NDArray[np.bool_], names: str
) -> FilledScores:
    if policy.worst is None:
        raise SelectionError(
            f"The metric {policy.metric} has no bound, so no worst score. Say its bounds when you ingest (--bounds LOW "
            "HIGH), or choose another --missing."
        )
    warning = (
        f"Missing scores count as {policy.worst:g}, the worst there is: {names}. The means of these models are the "
        "worst they could be, and errors and intervals are around that, as if it had been measured."
    )
    return _all_rows(fill_missing(Q, is_ranked, policy.worst), warning)


def _fill_imputed(
    Q: NDArray[np.float64], policy: MissingPolicy, is_ranked: NDArray[np.bool_], names: str
) -> FilledScores:
    values = impute(Q)
    if policy.worst is not None and policy.best is not None:
        values = np.clip(values, min(policy.worst, policy.best), max(policy.worst, policy.best))
    if np.isnan(values[:, is_ranked]).any():
        raise SelectionError(f"Too much is missing to guess it: {names}. Choose --missing complete, or other models.")
    warning = (
        f"Missing scores are guessed from the other scores of the model and of the {policy.unit}: {names}. Errors and "
        "intervals take the guesses for measurements, so they are too narrow for these models."
    )
    return _all_rows(fill_missing(Q, is_ranked, values), warning)


def _describe(incomplete: Sequence[tuple[str, int]]) -> str:
    ordered = sorted(incomplete, key=lambda model: (-model[1], model[0]))
    return join_names((f"{name} {n:,}" for name, n in ordered), MAX_NAMES, noun="more models")
