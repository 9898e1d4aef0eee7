"""Linear programs in exact arithmetic, for a few inequalities that floats cannot decide."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

ZERO = Fraction(0)


def maximize_exactly(
    objective: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], limits: Sequence[Fraction]
) -> tuple[Fraction, list[Fraction]] | None:
    """The x ≥ 0 with rows · x ≤ limits that has the largest objective · x, and that number; None where there is no x.

    The two-phase simplex method with Bland's rule, which ends always.

    Args:
        objective: ``(n,)``; bounded on the feasible x.
        rows: ``(k, n)``.
        limits: ``(k,)``.
    """
    n, k = len(objective), len(rows)
    # basic variable i = table[i][0] + Σ table[i][1 + j] · nonbasic j; the last column is the auxiliary variable
    table = [[limit, *(-entry for entry in row), Fraction(1)] for limit, row in zip(limits, rows, strict=True)]
    basic, free = list(range(n, n + k)), [*range(n), -1]
    if min(limits, default=ZERO) < 0:
        goal = [ZERO] * (n + 1) + [Fraction(-1)]
        _pivot(table, goal, basic, free, min(range(k), key=lambda row: table[row][0]), n)
        _climb(table, goal, basic, free)
        if goal[0] < 0:
            return None
        if -1 in basic:
            row = basic.index(-1)
            column = next(index for index in range(n + 1) if table[row][1 + index] != 0)
            _pivot(table, goal, basic, free, row, column)
    auxiliary_index = free.index(-1)
    free.pop(auxiliary_index)
    for entries in table:
        entries.pop(1 + auxiliary_index)
    goal = [ZERO] * (n + 1)
    for variable, coefficient in enumerate(objective):
        if variable in free:
            goal[1 + free.index(variable)] += coefficient
        else:
            goal = [
                total + coefficient * entry for total, entry in zip(goal, table[basic.index(variable)], strict=True)
            ]
    _climb(table, goal, basic, free)
    x = [ZERO] * n
    for variable, entries in zip(basic, table, strict=True):
        if variable < n:
            x[variable] = entries[0]
    return goal[0], x


def _climb(table: list[list[Fraction]], goal: list[Fraction], basic: list[int], free: list[int]) -> None:
    while entering := [index for index in range(len(free)) if goal[1 + index] > 0]:
        column = min(entering, key=lambda index: free[index])
        leaving = [row for row in range(len(basic)) if table[row][1 + column] < 0]
        row = min(
            leaving, key=lambda basic_row: (table[basic_row][0] / -table[basic_row][1 + column], basic[basic_row])
        )
        _pivot(table, goal, basic, free, row, column)


def _pivot(
    table: list[list[Fraction]], goal: list[Fraction], basic: list[int], free: list[int], row: int, column: int
) -> None:
    """Exchange a basic with a nonbasic variable."""
    pivot_index = 1 + column
    pivot_row = table[row]
    divisor = -pivot_row[pivot_index]
    pivot_row[pivot_index] = Fraction(-1)
    table[row] = pivot_row = [entry / divisor for entry in pivot_row]
    for entries in (*(row_entries for index, row_entries in enumerate(table) if index != row), goal):
        factor = entries[pivot_index]
        if factor:
            entries[pivot_index] = ZERO
            for index, entry in enumerate(pivot_row):
                if entry:
                    entries[index] += factor * entry
    basic[row], free[column] = free[column], basic[row]
