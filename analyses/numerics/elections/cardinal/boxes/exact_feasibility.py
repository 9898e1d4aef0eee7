"""The most inequalities that weights in one box fulfil at once, decided in exact arithmetic; for a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyses.numerics.elections.exact_linear_program import ZERO, maximize_exactly

Vector = Sequence[Fraction]


def find_feasible_weights(
    strict_rows: Sequence[Vector], weak_rows: Sequence[Vector], low: Vector, high: Vector
) -> list[Fraction] | None:
    """Weights in a box with d·w < 0 for some rows and d·w ≤ 0 for others; None where there are none.

    Args:
        strict_rows, weak_rows: rows.
        low, high: the box.
    """
    n = len(low)
    rows = [[*row, Fraction(1)] for row in strict_rows] + [[*row, ZERO] for row in weak_rows]
    limits = [-sum((d * lower for d, lower in zip(row, low, strict=False)), ZERO) for row in rows]
    for index in range(n):
        rows.append([Fraction(int(index == column)) for column in range(n + 1)])
        limits.append(high[index] - low[index])
    rows.append([ZERO] * n + [Fraction(1)])
    limits.append(Fraction(1))
    solution = maximize_exactly([ZERO] * n + [Fraction(1)], rows, limits)
    if solution is None or (strict_rows and solution[0] <= 0):
        return None
    return [lower + excess for lower, excess in zip(low, solution[1], strict=False)]


def maximize_in_box(
    rows: Sequence[Vector],
    worth: Sequence[int],
    worth_tied: Sequence[int],
    low: Vector,
    high: Vector,
    *,
    incumbent: int,
) -> tuple[int, list[Fraction] | None]:
    """The largest worth above ``incumbent`` and its weights; ``incumbent`` and None where nothing exceeds it.

    Args:
        rows: d·w < 0, each.
        worth: of a row that holds strictly; not negative.
        worth_tied: of a row with d·w = 0; at most ``worth``.
        low, high: the box.
        incumbent: what is to be exceeded.
    """
    order = sorted(range(len(rows)), key=lambda row: -worth[row])
    weights: list[Fraction] | None = None

    def choose(depth: int, certain_worth: int, strict_rows: list[Vector], weak_rows: list[Vector]) -> None:
        nonlocal incumbent, weights
        if certain_worth + sum(worth[row] for row in order[depth:]) <= incumbent:
            return
        if depth == len(order):
            incumbent, weights = certain_worth, find_feasible_weights(strict_rows, weak_rows, low, high)
            return
        row = order[depth]
        for gain, more_strict_rows, more_weak_rows in (
            (worth[row], [*strict_rows, rows[row]], weak_rows),
            (worth_tied[row], strict_rows, [*weak_rows, rows[row]]),
        ):
            if gain and find_feasible_weights(more_strict_rows, more_weak_rows, low, high) is not None:
                choose(depth + 1, certain_worth + gain, more_strict_rows, more_weak_rows)
        choose(depth + 1, certain_worth, strict_rows, weak_rows)

    choose(0, 0, [], [])
    return incumbent, weights
