"""The most inequalities that weights in one box fulfil at once, decided in exact arithmetic; for a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from analyses.numerics.elections.exact_linear_program import ZERO, maximize_exactly

Vector = Sequence[Fraction]


def find_feasible_weights(
    strictly: Sequence[Vector], weakly: Sequence[Vector], low: Vector, high: Vector
) -> list[Fraction] | None:
    """Weights in a box with d·w < 0 for some rows and d·w ≤ 0 for others; None where there are none.

    Args:
        strictly, weakly: rows.
        low, high: the box.
    """
    n = len(low)
    rows = [[*row, Fraction(1)] for row in strictly] + [[*row, ZERO] for row in weakly]
    limits = [-sum((d * at for d, at in zip(row, low, strict=False)), ZERO) for row in rows]
    for place in range(n):
        rows.append([Fraction(int(place == one)) for one in range(n + 1)])
        limits.append(high[place] - low[place])
    rows.append([ZERO] * n + [Fraction(1)])
    limits.append(Fraction(1))
    found = maximize_exactly([ZERO] * n + [Fraction(1)], rows, limits)
    if found is None or (strictly and found[0] <= 0):
        return None
    return [at + above for at, above in zip(low, found[1], strict=False)]


def maximize_in_box(
    rows: Sequence[Vector],
    worth: Sequence[int],
    worth_tied: Sequence[int],
    low: Vector,
    high: Vector,
    *,
    best: int,
) -> tuple[int, list[Fraction] | None]:
    """The largest worth above ``best`` and its weights; ``best`` and None where nothing exceeds it.

    Args:
        rows: d·w < 0, each.
        worth: of a row that holds strictly; not negative.
        worth_tied: of a row with d·w = 0; at most ``worth``.
        low, high: the box.
        best: what is to be exceeded.
    """
    order = sorted(range(len(rows)), key=lambda row: -worth[row])
    weights: list[Fraction] | None = None

    def choose(depth: int, sure: int, strictly: list[Vector], weakly: list[Vector]) -> None:
        nonlocal best, weights
        if sure + sum(worth[row] for row in order[depth:]) <= best:
            return
        if depth == len(order):
            best, weights = sure, find_feasible_weights(strictly, weakly, low, high)
            return
        row = order[depth]
        for gain, more_strictly, more_weakly in (
            (worth[row], [*strictly, rows[row]], weakly),
            (worth_tied[row], strictly, [*weakly, rows[row]]),
        ):
            if gain and find_feasible_weights(more_strictly, more_weakly, low, high) is not None:
                choose(depth + 1, sure + gain, more_strictly, more_weakly)
        choose(depth + 1, sure, strictly, weakly)

    choose(0, 0, [], [])
    return best, weights
