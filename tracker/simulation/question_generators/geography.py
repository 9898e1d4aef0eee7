"""Distances, maps and rivers of countries that do not exist."""

from __future__ import annotations

import numpy as np

from tracker.simulation.exercise import Dice, Exercise, name_exercise, number_exercise
from tracker.simulation.vocabulary import PEOPLE, PROVINCES, RIVERS, TOWNS

TRIPLES = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29))


def _crow(dice: Dice) -> Exercise:
    province, (t, u, v) = dice.choose(PROVINCES), dice.sample(TOWNS, 3)
    scale = dice.number(1, 14)
    triple = TRIPLES[dice.number(0, len(TRIPLES) - 1)]
    x, y, z = (side * scale for side in (triple if dice.number(0, 1) else (triple[1], triple[0], triple[2])))
    text = (
        f"In {province}, {u} lies {x} km due north of {t}, and {v} lies {y} km due east of {u}. "
        f"How far is it from {t} to {v} as the crow flies?"
    )
    return number_exercise(text, z, (x + y, abs(x - y), z + scale, z - scale), "km")


def _density(dice: Dice) -> Exercise:
    province, town, area, density = (
        dice.choose(PROVINCES),
        dice.choose(TOWNS),
        dice.number(300, 5000),
        dice.number(12, 240),
    )
    capital = dice.number(1000, area * density // 2)
    text = (
        f"The province of {province} covers {area} square kilometres and has {area * density} inhabitants, "
        f"of whom {capital} live in its capital {town}. How many inhabitants per square kilometre does it have?"
    )
    return number_exercise(text, density, (density - capital // area, density + 10, density // 2, density * 10))


def _walk(dice: Dice) -> Exercise:
    a, town = dice.choose(PEOPLE), dice.choose(TOWNS)
    north, east, south = dice.number(3, 40), dice.number(2, 40), dice.number(3, 40)
    south += south == north
    ends, away = ("north", "south") if north > south else ("south", "north"), abs(north - south)
    text = (
        f"From the market of {town}, {a} walks {north} km north, {east} km east, {south} km south and {east} km west. "
        "Where does the walk end, seen from the market?"
    )
    wrong = (f"{away} km {ends[1]}", f"{north + south} km {ends[0]}", f"{2 * east} km east", f"{2 * east} km west")
    return Exercise(text, f"{away} km {ends[0]}", wrong)


def _rivers(dice: Dice) -> Exercise:
    province, town, rivers = dice.choose(PROVINCES), dice.choose(TOWNS), dice.sample(RIVERS, 4)
    lengths = [int(n) for n in dice.rng.choice(np.arange(40, 900), size=4, replace=False)]
    place = dice.number(0, 3)
    rank = ("longest", "second longest", "second shortest", "shortest")[place]
    river_list = ", ".join(f"the {river} ({length} km)" for river, length in zip(rivers, lengths, strict=True))
    text = f"Four rivers of {province} meet near {town}: {river_list}. Which of them is the {rank}?"
    right = rivers[int(np.argsort(lengths)[::-1][place])]
    return name_exercise(text, f"the {right}", (f"the {river}" for river in rivers))


def _map(dice: Dice) -> Exercise:
    province, (t, u) = dice.choose(PROVINCES), dice.sample(TOWNS, 2)
    scale, distance = dice.number(50_000, 600_000, 50_000), dice.number(2, 48, 2)
    right = scale * distance // 100_000
    text = (
        f"On a map of {province} at a scale of 1 : {scale}, the towns {t} and {u} are {distance} cm apart. "
        "How many kilometres are they apart in the country?"
    )
    return number_exercise(text, right, (right * 10, right * 2, right + distance, scale // 10_000), "km")


KINDS = (_crow, _density, _walk, _rivers, _map)
