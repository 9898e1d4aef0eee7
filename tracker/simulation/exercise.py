"""A question made from numbers and names drawn at random.

A kind of question is a function from `Dice` to an `Exercise`: it draws its facts and returns the question,
the right option, and wrong options that a hasty reader would choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question before its options are put in order.

    Attributes:
        text: the question.
        right: the right option.
        wrong: at least three wrong ones, all different.
    """

    text: str
    right: str
    wrong: tuple[str, ...]


class Dice:
    """Draws of the kinds that questions need."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def number(self, low: int, high: int, step: int = 1) -> int:
        """A multiple of ``step`` between ``low`` and ``high``, both possible."""
        return int(self.rng.integers(-(-low // step), high // step + 1)) * step

    def sample(self, pool: Sequence[str], n: int) -> list[str]:
        """``n`` different words."""
        return [pool[i] for i in self.rng.choice(len(pool), size=n, replace=False)]

    def choose(self, pool: Sequence[str]) -> str:
        """One word."""
        return pool[int(self.rng.integers(len(pool)))]

    def shuffle(self, items: Iterable[str]) -> list[str]:
        """The same words in another order."""
        words = list(items)
        return [words[i] for i in self.rng.permutation(len(words))]


def number_exercise(text: str, right: int, mistakes: Iterable[int], unit: str = "") -> Exercise:
    """A question whose answer is a number: wrong options are the results of mistakes, then near numbers."""
    near = (right + sign * step for step in (1, 2, 10, 3, 5) for sign in (1, -1))
    wrong = [n for n in dict.fromkeys((*mistakes, *near)) if n != right and n >= 0]
    suffix = f" {unit}" if unit else ""
    return Exercise(text, f"{right}{suffix}", tuple(f"{n}{suffix}" for n in wrong[:4]))


def name_exercise(text: str, right: str, names: Iterable[str]) -> Exercise:
    """A question whose options are names; those other than the right one are wrong."""
    return Exercise(text, right, tuple(name for name in names if name != right))
