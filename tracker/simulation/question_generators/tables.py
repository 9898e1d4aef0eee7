"""Reading a short table of sales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracker.simulation.exercise import Dice, Exercise, name_exercise, number_exercise
from tracker.simulation.vocabulary import GOODS, MONTHS, TOWNS


@dataclass(frozen=True, slots=True)
class _Table:
    towns: list[str]
    months: list[str]
    cells: list[list[int]]
    goods: str

    def __str__(self) -> str:
        rows = [["Town", *self.months], *([t, *map(str, row)] for t, row in zip(self.towns, self.cells, strict=True))]
        head = f"The table shows how many {self.goods} were sold in four towns."
        return "\n".join((head, "", *(" | ".join(row) for row in rows), "")) + "\n"


def _table(dice: Dice) -> _Table:
    first = dice.number(0, 8)
    while True:
        cells = dice.rng.integers(11, 99, size=(4, 4))
        totals = np.concatenate([cells.sum(axis=0), cells.sum(axis=1)])
        if len(np.unique(totals)) == len(totals):
            break
    return _Table(dice.sample(TOWNS, 4), list(MONTHS[first : first + 4]), cells.tolist(), dice.choose(GOODS))


def _column_total(dice: Dice) -> Exercise:
    table, k = _table(dice), dice.number(0, 3)
    totals = [sum(row[j] for row in table.cells) for j in range(4)]
    text = f"{table}How many {table.goods} did the four towns sell together in {table.months[k]}?"
    return number_exercise(text, totals[k], (*(t for t in totals if t != totals[k]), totals[k] + 10))


def _best_town(dice: Dice) -> Exercise:
    table = _table(dice)
    totals = [sum(row) for row in table.cells]
    text = f"{table}Which town sold the most {table.goods} over the four months?"
    return name_exercise(text, table.towns[int(np.argmax(totals))], table.towns)


def _difference(dice: Dice) -> Exercise:
    table, k = _table(dice), dice.number(0, 3)
    more, less = (int(i) for i in dice.rng.permutation(4)[:2])
    if table.cells[more][k] < table.cells[less][k]:
        more, less = less, more
    x, y = table.cells[more][k], table.cells[less][k]
    month = table.months[k]
    text = f"{table}How many {table.goods} did {table.towns[more]} sell in {month} beyond those of {table.towns[less]}?"
    return number_exercise(text, x - y, (x + y, x, y, x - y + 10))


def _worst_month(dice: Dice) -> Exercise:
    table = _table(dice)
    totals = [sum(row[j] for row in table.cells) for j in range(4)]
    text = f"{table}In which month did the four towns together sell the fewest {table.goods}?"
    return name_exercise(text, table.months[int(np.argmin(totals))], table.months)


def _row_total(dice: Dice) -> Exercise:
    table, i = _table(dice), dice.number(0, 3)
    totals = [sum(row) for row in table.cells]
    text = f"{table}How many {table.goods} did {table.towns[i]} sell over the four months?"
    return number_exercise(text, totals[i], (*(t for t in totals if t != totals[i]), totals[i] - 10))


KINDS = (_column_total, _best_town, _difference, _worst_month, _row_total)
