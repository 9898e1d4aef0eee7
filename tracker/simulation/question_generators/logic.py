"""Orders, series and conclusions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tracker.simulation.exercise import Dice, Exercise, name_exercise, number_exercise
from tracker.simulation.vocabulary import CALLINGS, COMPARISONS, PEOPLE, SERVICES, TOWNS


def _order(dice: Dice) -> Exercise:
    town, people = dice.choose(TOWNS), dice.sample(PEOPLE, 4)
    more, most = COMPARISONS[dice.number(0, len(COMPARISONS) - 1)]
    clues = dice.shuffle(f"{x} is {more} than {y}." for x, y in pairwise(people))
    place = dice.number(0, 1)
    rank = (f"the {most}", f"the second {most}")[place]
    text = f"Four friends from {town} compare themselves. {' '.join(clues)} Who is {rank} of the four?"
    return name_exercise(text, people[place], people)


def _series(dice: Dice) -> Exercise:
    a, town, factor, plus = dice.choose(PEOPLE), dice.choose(TOWNS), dice.number(2, 4), dice.number(1, 19)
    terms = [dice.number(2, 25)]
    for _ in range(4):
        terms.append(factor * terms[-1] + plus)
    text = (
        f"{a} finds the numbers {', '.join(map(str, terms[:4]))} carved into a door in {town}. Each is made from "
        "the one before by the same multiplication and then the same addition. Which number comes next?"
    )
    mistakes = (factor * terms[3], terms[3] + terms[2], 2 * terms[3] - terms[2], terms[4] + factor)
    return number_exercise(text, terms[4], mistakes)


def _implication(dice: Dice) -> Exercise:
    (a, b), (t, u), ride = dice.sample(PEOPLE, 2), dice.sample(TOWNS, 2), dice.choose(SERVICES)
    rules = f"Whenever it rains in {t}, {a} takes the {ride}. Whenever {a} takes the {ride}, {b} stays in {u}."
    if dice.number(0, 1):
        text = f"{rules} Today {b} is not in {u}. What must be true today?"
        wrong = (f"It rains in {t}.", f"{a} takes the {ride}.", f"{b} takes the {ride}.")
        return Exercise(text, f"It does not rain in {t}.", wrong)
    text = f"{rules} Today it rains in {t}. What must be true today?"
    wrong = (f"{b} is not in {u}.", f"{a} stays in {u}.", f"{a} does not take the {ride}.")
    return Exercise(text, f"{b} stays in {u}.", wrong)


def _divisible(dice: Dice) -> Exercise:
    a, town, (p, q) = dice.choose(PEOPLE), dice.choose(TOWNS), dice.rng.choice([2, 3, 5, 7], size=2, replace=False)
    houses = sorted(int(n) for n in dice.rng.choice(np.arange(11, 120), size=9, replace=False))
    right = sum(n % p == 0 and n % q != 0 for n in houses)
    text = (
        f"{a} delivers letters to the houses {', '.join(map(str, houses))} of a street in {town}. "
        f"How many of these numbers can be divided by {p} but not by {q}?"
    )
    return number_exercise(text, right, (sum(n % p == 0 for n in houses), sum(n % q == 0 for n in houses)))


def _syllogism(dice: Dice) -> Exercise:
    a, town, (x, y, z) = dice.choose(PEOPLE), dice.choose(TOWNS), dice.sample(CALLINGS, 3)
    text = (
        f"Every {x} in {town} is a {y}, and no {y} there is a {z}. {a} lives in {town} and is a {z}. "
        "Which statement must be true?"
    )
    wrong = (f"{a} is a {x}.", f"{a} is a {y}.", f"Every {y} in {town} is a {x}.")
    return Exercise(text, f"{a} is not a {x}.", wrong)


KINDS = (_order, _series, _implication, _divisible, _syllogism)
