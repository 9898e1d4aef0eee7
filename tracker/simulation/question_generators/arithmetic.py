"""Word problems with whole numbers."""

from __future__ import annotations

from tracker.simulation.exercise import Dice, Exercise, number_exercise
from tracker.simulation.vocabulary import GOODS, MONTHS, PEOPLE, TOWNS


def _shopping(dice: Dice) -> Exercise:
    a, (g, h), town = dice.choose(PEOPLE), dice.sample(GOODS, 2), dice.choose(TOWNS)
    n, p, m, q = dice.number(3, 29), dice.number(4, 60), dice.number(3, 29), dice.number(4, 60)
    text = (
        f"{a} buys {n} {g} at {p} crowns each and {m} {h} at {q} crowns each in {town}. "
        f"How many crowns does {a} pay in all?"
    )
    return number_exercise(text, n * p + m * q, ((n + m) * (p + q), n * p + q, n * q + m * p, n + p + m + q))


def _packing(dice: Dice) -> Exercise:
    a, g, town = dice.choose(PEOPLE), dice.choose(GOODS), dice.choose(TOWNS)
    k, boxes = dice.number(7, 31), dice.number(9, 40)
    rest = dice.number(1, k - 1)
    text = (
        f"{a} packs {k * boxes + rest} {g} into boxes of {k} for the market in {town}. "
        f"How many {g} are left over once no further box can be filled?"
    )
    return number_exercise(text, rest, (boxes, k - rest, boxes + 1))


def _workshop(dice: Dice) -> Exercise:
    g, town = dice.choose(GOODS), dice.choose(TOWNS)
    r, h, d = dice.number(6, 45), dice.number(4, 11), dice.number(3, 24)
    lost = dice.number(11, r * h)
    text = (
        f"A workshop in {town} makes {r} {g} an hour. It works {h} hours a day for {d} days, "
        f"and then {lost} of the {g} are lost in a flood. How many {g} remain?"
    )
    return number_exercise(text, r * h * d - lost, (r * h * d, r * h * d + lost, r * h * (d - 1), r * d - lost))


def _price(dice: Dice) -> Exercise:
    g, town, month = dice.choose(GOODS), dice.choose(TOWNS), dice.choose(MONTHS)
    p, x = dice.number(100, 980, 20), dice.number(5, 60, 5)
    rise = p * x // 100
    fall = dice.number(3, 90)
    text = (
        f"A crate of {g} in {town} cost {p} crowns. In {month} its price rose by {x} percent, "
        f"and later it fell by {fall} crowns. What does the crate cost after both changes?"
    )
    return number_exercise(text, p + rise - fall, (p + x - fall, p + rise, p + rise + fall, p - rise - fall), "crowns")


def _sharing(dice: Dice) -> Exercise:
    (a, b), g, town = dice.sample(PEOPLE, 2), dice.choose(GOODS), dice.choose(TOWNS)
    k, each, gift = dice.number(3, 12), dice.number(5, 48), dice.number(4, 70)
    had = gift + k * each
    text = (
        f"{a} had {had} {g}, gave {gift} of them to {b}, and shared the rest equally among {k} cousins "
        f"from {town}. How many {g} did each cousin get?"
    )
    return number_exercise(text, each, (had // k, (had + gift) // k, each + k, k * each))


KINDS = (_shopping, _packing, _workshop, _price, _sharing)
