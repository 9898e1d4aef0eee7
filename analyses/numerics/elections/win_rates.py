"""How often a model beats the others: win rates of a field, in whole numbers.

Two rules are in use. ``pairwise`` (Zhang & Hardt 2024, equation 2): against each model of the field, the share of the
tasks both have that are strictly won; their mean over the field, oneself counted with no win. A tie is nobody's win.
``per_task`` (HELM): on each task, the share of the opponents who have it that are beaten, a tie being half; the mean
over the tasks the model has. A task on which it has no opponent gives no rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.exact_scores import ExactScores

WinRateRule = Literal["pairwise", "per_task"]
WIN_RATE_RULES: tuple[WinRateRule, ...] = get_args(WinRateRule)

MAX_INT64_SUM = 2**62
"""Whole numbers whose sums stay below this are kept as int64, others as Python integers."""


@dataclass(frozen=True, kw_only=True)
class PairwiseWins:
    """Shares of tasks won, model against model, over one denominator.

    Attributes:
        wins: ``(n_models, n_models)`` numerators: int64, or Python integers (dtype object) where a sum over a row would
            not fit. Row against column; 0 where no task is shared, and on the diagonal.
        denominator: of all of them: the least common multiple of the numbers of shared tasks.
    """

    wins: NDArray[Any]
    denominator: int


def rank_codes(scores: ExactScores) -> NDArray[np.int32]:
    """``(n_tasks, n_models)``: larger is better, equal is equal, decided on exact scores; 0 where not measured."""
    codes = np.zeros(scores.T.shape, dtype=np.int32)
    for row, is_present, code_row in zip(scores.numerators, scores.present, codes, strict=True):
        code_of_value = {value: i for i, value in enumerate(sorted(set(row[is_present])), start=1)}
        code_row[is_present] = [code_of_value[value] for value in row[is_present]]
    return codes


def count_pairwise_wins(codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Tasks won, and tasks shared, model against model.

    Args:
        codes: ``(n_tasks, n_models)`` of `rank_codes`.

    Returns:
        Two ``(n_models, n_models)``, row against column.
    """
    n_models = codes.shape[1]
    won = np.zeros((n_models, n_models), dtype=np.int32)
    # Whoever has no score wins nothing as a row and, coded above everyone, loses nothing as a column.
    as_column = np.where(codes == 0, np.iinfo(np.int32).max, codes)
    for row, column in zip(codes, as_column, strict=True):
        won += row[:, None] > column[None, :]
    is_present = (codes > 0).astype(np.float32)
    return won, np.asarray(is_present.T @ is_present, dtype=np.int32)


def task_units(shared: NDArray[np.int32], *, n_summands: int) -> tuple[NDArray[Any], int]:
    """What one task of so many counts, in whole numbers over one denominator.

    Args:
        shared: numbers of shared tasks.
        n_summands: shares, each up to 1, that will be added up.

    Returns:
        ``(largest of shared + 1,)`` by the number of shared tasks, 0 for none: int64, or Python integers (dtype object)
        where sums would not fit; and the denominator.
    """
    counts = [int(count) for count in np.unique(shared) if count]
    denominator = lcm(1, *counts)
    kind: Any = np.int64 if denominator * max(n_summands, 1) < MAX_INT64_SUM else object
    units = np.zeros(max(counts, default=0) + 1, dtype=kind)
    for count in counts:
        units[count] = denominator // count
    return units, denominator


def pairwise_wins(scores: ExactScores) -> PairwiseWins:
    """How often each model strictly beats each other on the tasks both have.

    Args:
        scores: complete or not.
    """
    won, shared = count_pairwise_wins(rank_codes(scores))
    units, denominator = task_units(shared, n_summands=scores.n_models)
    return PairwiseWins(wins=won.astype(units.dtype) * units[shared], denominator=denominator)


def count_models_beaten(codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """``(n_tasks, n_models)`` how many models each strictly beats on each task.

    Args:
        codes: ``(n_tasks, n_models)`` of `rank_codes`, none 0.
    """
    return np.array([np.searchsorted(np.sort(row), row, side="left") for row in codes], dtype=np.int64)


def task_half_points(codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Half points of each model on each task: two for each opponent beaten, one for each tie.

    Args:
        codes: ``(n_tasks, n_models)`` of `rank_codes`, or of some of its columns.

    Returns:
        ``(n_tasks, n_models)`` points, 0 where not measured, and ``(n_tasks,)`` models that have the task.
    """
    points = np.zeros(codes.shape, dtype=np.int64)
    n_present = np.asarray((codes > 0).sum(axis=1), dtype=np.int64)
    for row, point_row in zip(codes, points, strict=True):
        is_present = row > 0
        ordered = np.sort(row[is_present])
        n_below = np.searchsorted(ordered, row[is_present], side="left")
        point_row[is_present] = n_below + np.searchsorted(ordered, row[is_present], side="right") - 1
    return points, n_present


def win_rates(
    scores: ExactScores, columns: Sequence[int] | NDArray[np.int64] | None = None, *, rule: WinRateRule = "pairwise"
) -> list[Fraction]:
    """Win rates of a field, in [0, 1].

    Args:
        scores: complete or not.
        columns: the models that take part, in this order; None: all.
        rule: see the module.

    Returns:
        One rate per model of ``columns``. By ``per_task``, a model without an opponent on any task has 0.
    """
    field = scores if columns is None else scores.columns(np.asarray(columns, dtype=np.int64))
    if rule == "pairwise":
        pairs = pairwise_wins(field)
        return [Fraction(int(total), pairs.denominator * field.n_models) for total in pairs.wins.sum(axis=1)]
    codes = rank_codes(field)
    points, n_present = task_half_points(codes)
    has_opponents = n_present > 1
    denominator = lcm(1, *{int(count) - 1 for count in n_present[has_opponents]})
    shares = np.array([denominator // (int(count) - 1) for count in n_present[has_opponents]], dtype=object)
    totals = (points[has_opponents].astype(object) * shares[:, None]).sum(axis=0)
    n_tasks = (codes[has_opponents] > 0).sum(axis=0)
    return [
        Fraction(int(total), 2 * denominator * int(count)) if count else Fraction(0)
        for total, count in zip(totals, n_tasks, strict=True)
    ]
