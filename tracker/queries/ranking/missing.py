"""What becomes of scores that were not measured, before models are ranked: never silently anything.

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

N_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A matrix after the policy.

    Attributes:
        Q: ``(n_kept, k)`` scores; NaN only under ``unranked``, or in columns that are not shown.
        kept: ``(n,)`` whether a row stays.
        warnings: what was left out or filled in, and what follows from it.
    """

    Q: NDArray[np.float64]
    kept: NDArray[np.bool_]
    warnings: tuple[str, ...] = ()


def settle(
    Q: NDArray[np.float64],
    policy: Policy,
    *,
    models: Sequence[str],
    shown: NDArray[np.bool_] | None = None,
    unit: str = "prompt",
    worst: float | None = None,
    best: float | None = None,
    metric: str = "",
) -> Settled:
    """Apply a policy.

    Args:
        Q: ``(n, k)`` scores, NaN = not measured.
        policy: what to do.
        models: name of each column.
        shown: ``(k,)`` columns that are to be ranked; None means all. The others help to impute.
        unit: what the rows are, in words.
        worst, best: the metric's bounds in the order of merit; None where it has none.
        metric: its name, in words.

    Raises:
        SelectionError: scores are missing under ``fail``; no row is complete; the metric has no worst score; there is
            no such policy.
    """
    if policy not in POLICIES:
        raise SelectionError(f"No way {policy!r} to settle what is missing. There are: {', '.join(POLICIES)}.")
    shown = np.ones(Q.shape[1], dtype=np.bool_) if shown is None else shown
    everything = np.ones(len(Q), dtype=np.bool_)
    missing = np.isnan(Q)
    lacks = missing.sum(axis=0)
    lacking = np.flatnonzero(shown & (lacks > 0))
    if policy == "unranked" or not len(lacking):
        return Settled(Q=Q, kept=everything)
    said = _named([(models[j], int(lacks[j])) for j in lacking.tolist()])
    n = len(Q)
    if policy == "fail":
        raise SelectionError(
            f"Scores are missing, of {n:,} {unit}s: {said}. Leave those models out with --models, or say what a "
            "missing score means: --missing complete, worst, impute or unranked."
        )
    if policy == "complete":
        kept = np.asarray(~missing[:, shown].any(axis=1))
        if not kept.any():
            raise SelectionError(
                f"No {unit} was put to every model. Lacking most: {said}. Leave those out with --models."
            )
        note = f"Only the {kept.sum():,} of {n:,} {unit}s that every model was measured on count; missing were: {said}."
        return Settled(Q=Q[kept], kept=kept, warnings=(note,))
    if policy == "worst":
        if worst is None:
            raise SelectionError(
                f"The metric {metric} has no bound, so no worst score. Say its bounds when you ingest (--bounds LOW "
                "HIGH), or choose another --missing."
            )
        note = (
            f"Missing scores count as {worst:g}, the worst there is: {said}. The means of these models are the worst "
            "they could be, and errors and intervals are around that, as if it had been measured."
        )
        return Settled(Q=np.where(missing & shown, worst, Q), kept=everything, warnings=(note,))
    filled = imputed(Q)
    low, high = (worst, best) if worst is None or best is None or worst <= best else (best, worst)
    if low is not None and high is not None:
        filled = np.clip(filled, low, high)
    if np.isnan(filled[:, shown]).any():
        raise SelectionError(f"Too much is missing to guess it: {said}. Choose --missing complete, or other models.")
    note = (
        f"Missing scores are guessed from the other scores of the model and of the {unit}: {said}. Errors and "
        "intervals take the guesses for measurements, so they are too narrow for these models."
    )
    return Settled(Q=np.where(missing & shown, filled, Q), kept=everything, warnings=(note,))


def imputed(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row effect plus column effect, fitted to the measured cells by least squares, for every cell.

    Args:
        Q: ``(n, k)`` scores, NaN = not measured.

    Returns:
        ``(n, k)`` fitted values; NaN throughout for a row or column without a measured cell. Where the measured cells
        fall into parts that share neither rows nor columns, of all best fits that with the smallest columns' effects.
    """
    seen = ~np.isnan(Q)
    held = np.where(seen, Q, 0.0)
    n_row, n_column = seen.sum(axis=1), seen.sum(axis=0)
    shares = np.divide(seen, n_row[:, None], out=np.zeros(Q.shape), where=n_row[:, None] > 0)
    # The rows' effects are eliminated from the normal equations; what is left has one equation for each column.
    left = np.diag(n_column.astype(np.float64)) - seen.T.astype(np.float64) @ shares
    right = held.sum(axis=0) - shares.T @ held.sum(axis=1)
    column = np.where(n_column > 0, np.linalg.lstsq(left, right, rcond=None)[0], np.nan)
    rest = held.sum(axis=1) - seen @ np.nan_to_num(column)
    row = np.divide(rest, n_row, out=np.full(len(Q), np.nan), where=n_row > 0)
    return np.asarray(row[:, None] + column)


def _named(lacking: Sequence[tuple[str, int]]) -> str:
    ordered = sorted(lacking, key=lambda one: (-one[1], one[0]))
    return join_names((f"{name} {n:,}" for name, n in ordered), N_NAMED, noun="more models")
