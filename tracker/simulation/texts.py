"""The simulated benchmark's prompts: distinct questions, and small edits of some of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from tracker.simulation.exercise import Dice, Exercise
from tracker.simulation.question_generators import arithmetic, dates, geography, logic, tables, units
from tracker.simulation.vocabulary import PEOPLE, TOWNS

N_CHOICES = 4
LETTERS = "ABCD"
MAX_SHARED_WORDS = 0.8

KINDS: Mapping[str, Sequence[Callable[[Dice], Exercise]]] = {
    "arithmetic": arithmetic.KINDS,
    "dates": dates.KINDS,
    "geography": geography.KINDS,
    "logic": logic.KINDS,
    "tables": tables.KINDS,
    "units": units.KINDS,
}
TASKS = tuple(KINDS)
OPENING = "Work this out: "
CLOSING = " Choose one answer."


@dataclass(frozen=True, slots=True)
class Edit:
    """What is changed in a question whose meaning stays.

    Attributes:
        renamed: whether another name takes the place of a person's or a town's.
        opened: whether it begins with `OPENING`.
        closed: whether it ends with `CLOSING`.
    """

    renamed: bool = False
    opened: bool = False
    closed: bool = False


EDITS = (
    Edit(renamed=True),
    Edit(opened=True),
    Edit(renamed=True, closed=True),
    Edit(closed=True),
    Edit(renamed=True, opened=True),
    Edit(opened=True, closed=True),
    Edit(renamed=True, opened=True, closed=True),
)
"""The edits of one question, in turn; no two of them can give the same text."""


@dataclass(frozen=True, slots=True)
class MultipleChoiceQuestion:
    """A multiple-choice question.

    Attributes:
        text: the question.
        choices: the options, all different.
        answer: position of the right one.
    """

    text: str
    choices: tuple[str, ...]
    answer: int

    @property
    def letter(self) -> str:
        """Letter of the right option."""
        return LETTERS[self.answer]


def make_questions(task: str, groups: NDArray[np.int64], rng: np.random.Generator) -> list[MultipleChoiceQuestion]:
    """One question per prompt of a task.

    Args:
        task: one of `TASKS`.
        groups: ``(n,)`` prompts that share a number that is not negative are one question and edits of it.
        rng: where the facts come from.

    Raises:
        ValueError: a group has more prompts than there are edits, and one.
    """
    dice, kinds = Dice(rng), cycle(KINDS[task])
    word_sets: list[frozenset[str]] = []
    first: dict[int, Exercise] = {}
    edits: dict[int, int] = {}
    questions = []
    for group in groups.tolist():
        if group in first:
            exercise = _edit(first[group], edits[group], dice)
            edits[group] += 1
        else:
            exercise = _make_exercise(next(kinds), word_sets, dice)
            if group >= 0:
                first[group], edits[group] = exercise, 0
        questions.append(_shuffle_options(exercise, dice))
    return questions


def distinct_words(text: str) -> frozenset[str]:
    """The different words and numbers of a text, in small letters."""
    return frozenset(re.findall(r"\w+", text.lower()))


def _make_exercise(kind: Callable[[Dice], Exercise], word_sets: list[frozenset[str]], dice: Dice) -> Exercise:
    """A question of a kind that shares at most `MAX_SHARED_WORDS` of its words with any before it."""
    while True:
        exercise = kind(dice)
        bag = distinct_words(exercise.text)
        if all(len(bag & words) <= MAX_SHARED_WORDS * len(bag | words) for words in word_sets):
            word_sets.append(bag)
            return exercise


def _edit(exercise: Exercise, number: int, dice: Dice) -> Exercise:
    """The same question after an edit; the first is number 0."""
    if number >= len(EDITS):
        raise ValueError(f"A group has more than {len(EDITS) + 1} prompts; only {len(EDITS)} edits are known.")
    edit, edited = EDITS[number], exercise
    if edit.renamed:
        edited = _rename(edited, dice)
    text = (OPENING if edit.opened else "") + edited.text + (CLOSING if edit.closed else "")
    return Exercise(text, edited.right, edited.wrong)


def _rename(exercise: Exercise, dice: Dice) -> Exercise:
    """The same question with a name that it does not have in place of one that it has."""
    old = dice.choose([name for name in (*PEOPLE, *TOWNS) if re.search(rf"\b{name}\b", exercise.text)])
    new = dice.choose([name for name in (PEOPLE if old in PEOPLE else TOWNS) if name not in exercise.text])
    text, right, *wrong = (
        re.sub(rf"\b{old}\b", new, part) for part in (exercise.text, exercise.right, *exercise.wrong)
    )
    return Exercise(text, right, tuple(wrong))


def _shuffle_options(exercise: Exercise, dice: Dice) -> MultipleChoiceQuestion:
    choices = dice.shuffle((exercise.right, *dice.sample(exercise.wrong, N_CHOICES - 1)))
    return MultipleChoiceQuestion(exercise.text, tuple(choices), choices.index(exercise.right))
