"""Days, weekdays, times of day and ages."""

from __future__ import annotations

from datetime import date, timedelta

from tracker.simulation.exercise import Dice, Exercise, name_exercise, number_exercise
from tracker.simulation.vocabulary import MONTHS, PEOPLE, TOWNS, WEEKDAYS


def _day(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _some_day(dice: Dice) -> date:
    return date(2021, 1, 1) + timedelta(days=dice.number(0, 5000))


def _course(dice: Dice) -> Exercise:
    a, town, first, n = dice.choose(PEOPLE), dice.choose(TOWNS), _some_day(dice), dice.number(9, 95)
    ends = [_day(first + timedelta(days=n + shift)) for shift in (-1, 0, -2, 1, 6)]
    text = (
        f"{a} takes a course of {n} days in {town}. Its first day is {_day(first)} and it takes place every day. "
        "On which date is its last day?"
    )
    return Exercise(text, ends[0], tuple(ends[1:]))


def _interval(dice: Dice) -> Exercise:
    a, town, first, n = dice.choose(PEOPLE), dice.choose(TOWNS), _some_day(dice), dice.number(15, 330)
    text = (
        f"{a} leaves {town} on {_day(first)} and returns on {_day(first + timedelta(days=n))}. "
        "How many days after the departure is the return?"
    )
    return number_exercise(text, n, (n + 1, n - 1, n + 2, n - 2), "days")


def _weekday(dice: Dice) -> Exercise:
    a, town, first, n = dice.choose(PEOPLE), dice.choose(TOWNS), _some_day(dice), dice.number(10, 300)
    start = WEEKDAYS[first.weekday()]
    right = WEEKDAYS[(first.weekday() + n) % 7]
    text = (
        f"In {town}, {_day(first)} is a {start}. The holiday of {a} starts {n} days later. "
        "On which day of the week does it start?"
    )
    return name_exercise(text, right, dice.shuffle(WEEKDAYS))


def _arrival(dice: Dice) -> Exercise:
    a, (t, u) = dice.choose(PEOPLE), dice.sample(TOWNS, 2)
    start, h, m = dice.number(0, 24 * 60 - 1), dice.number(2, 14), dice.number(3, 58)
    times = [(start + 60 * h + m + shift) % 1440 for shift in (0, -60, 60, 40, -40)]
    options = [f"{t // 60:02}:{t % 60:02}" for t in times]
    text = (
        f"{a} boards a train that leaves {t} at {start // 60:02}:{start % 60:02} and needs {h} hours and {m} minutes "
        f"to reach {u}. At what time does it arrive?"
    )
    return Exercise(text, options[0], tuple(options[1:]))


def _ages(dice: Dice) -> Exercise:
    (a, b), town, times = dice.sample(PEOPLE, 2), dice.choose(TOWNS), dice.number(2, 5)
    older, gap = dice.number(1930, 2005), dice.number(2, 9) * (times - 1)
    right = older + times * gap // (times - 1)
    text = (
        f"{a} of {town} was born in {older}, and {b} in {older + gap}. In which year does {a} reach {times} times "
        f"the age that {b} reaches in the same year?"
    )
    return number_exercise(text, right, (older + gap, older + times * gap, right + gap, right - 1))


KINDS = (_course, _interval, _weekday, _arrival, _ages)
