"""Conversions between measures, some of them invented."""

from __future__ import annotations

from tracker.simulation.exercise import Dice, Exercise, number_exercise
from tracker.simulation.vocabulary import LIQUIDS, MEASURES, PEOPLE, SERVICES, TIMBERS, TOWNS


def _lengths(dice: Dice) -> Exercise:
    a, town, piece = dice.choose(PEOPLE), dice.choose(TOWNS), dice.choose(TIMBERS)
    n, m, cm = dice.number(3, 28), dice.number(1, 9), dice.number(5, 95)
    text = (
        f"A {piece} from {town} is {m} m {cm} cm long. {a} lays {n} of that kind end to end. "
        "How many centimetres does the row measure?"
    )
    each = 100 * m + cm
    return number_exercise(text, n * each, (n * (10 * m + cm), n * 100 * m + cm, n * each + 100, (n - 1) * each))


def _seconds(dice: Dice) -> Exercise:
    a, town = dice.choose(PEOPLE), dice.choose(TOWNS)
    h, m, s = dice.number(1, 9), dice.number(2, 58), dice.number(2, 58)
    right = 3600 * h + 60 * m + s
    text = f"{a} repaired a pump in {town}, and it ran for {h} h {m} min {s} s. For how many seconds did it run?"
    return number_exercise(text, right, (60 * h + m, right - s, 1000 * h + 60 * m + s, right + 3600))


def _measures(dice: Dice) -> Exercise:
    town, (u, v, w) = dice.choose(TOWNS), dice.sample(MEASURES, 3)
    k, m, a, b = dice.number(3, 16), dice.number(3, 24), dice.number(2, 30), dice.number(2, 30)
    text = (
        f"In the old measures of {town}, one {u} is {k} {v} and one {v} is {m} {w}. "
        f"How many {w} are {a} {u} and {b} {v}?"
    )
    return number_exercise(text, (a * k + b) * m, (a * k + b * m, a * k * m + b, (a + b) * m, (a + b) * k * m))


def _speed(dice: Dice) -> Exercise:
    (t, u), ride, fast = dice.sample(TOWNS, 2), dice.choose(SERVICES), dice.number(12, 180, 12)
    minutes = dice.number(10, 240, 5)
    far = fast * minutes // 60
    text = (
        f"A {ride} covers the {far} km from {t} to {u} in {minutes} minutes at a steady speed. "
        "What is that speed in kilometres per hour?"
    )
    return number_exercise(text, fast, (far, fast + 12, fast // 2, fast * 2), "km/h")


def _bottles(dice: Dice) -> Exercise:
    a, town, drink = dice.choose(PEOPLE), dice.choose(TOWNS), dice.choose(LIQUIDS)
    litres, ml = dice.number(12, 160), dice.number(150, 1450, 50)
    right, rest = divmod(1000 * litres, ml)
    text = (
        f"{a} of {town} draws {drink} from a barrel of {litres} litres into bottles of {ml} ml each. "
        "How many bottles can be filled to the brim?"
    )
    return number_exercise(text, right, (right + (rest > 0), 100 * litres // ml, right - 2, right + 5))


KINDS = (_lengths, _seconds, _measures, _speed, _bottles)
