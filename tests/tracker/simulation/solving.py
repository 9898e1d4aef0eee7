"""Solves the simulated prompts from their text alone, by ways other than those that made them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction

SOLVERS: list[tuple[re.Pattern[str], Callable[..., object]]] = []


def solves(pattern: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Register the solver of the questions that match a pattern wholly; it gets the groups and the options."""

    def register(solver: Callable[..., object]) -> Callable[..., object]:
        SOLVERS.append((re.compile(pattern, re.DOTALL), solver))
        return solver

    return register


def solve(text: str, choices: Sequence[str]) -> str:
    """The right option; fails unless exactly one kind of question matches."""
    plain = re.sub(r" Choose one answer\.$", "", re.sub(r"^Work this out: ", "", text))
    matches = [(m, solver) for pattern, solver in SOLVERS if (m := pattern.fullmatch(plain))]
    assert len(matches) == 1, f"{len(matches)} solvers for {plain!r}"
    match, solver = matches[0]
    return str(solver(choices, *(int(g) if g and g.isdigit() else g for g in match.groups())))


def day(text: str) -> date:
    return datetime.strptime(text, "%d %B %Y").date()


N = r"(\d+)"
W = r"([A-Z]\w+)"
D = r"(\d+ [A-Z]\w+ \d{4})"


@solves(rf"\w+ buys {N} \w+ at {N} crowns each and {N} \w+ at {N} crowns each in \w+\. How many crowns does .*")
def shopping(_, n, p, m, q):
    return sum([p] * n) + sum([q] * m)


@solves(rf"\w+ packs {N} \w+ into boxes of {N} for the market.*left over once no further box can be filled\?")
def packing(_, n, k):
    while n >= k:
        n -= k
    return n


@solves(rf"A workshop in \w+ makes {N} \w+ an hour. It works {N} hours a day for {N} days, and then {N} of .* remain\?")
def workshop(_, r, h, d, lost):
    return sum(r for _ in range(d) for _ in range(h)) - lost


@solves(
    rf"A crate .* cost {N} crowns\. In \w+ its price rose by {N} percent, and later it fell by {N} crowns\. What .*"
)
def price(_, p, x, fall):
    return f"{p * Fraction(100 + x, 100) - fall} crowns"


@solves(rf"\w+ had {N} \w+, gave {N} of them to \w+, and shared the rest equally among {N} cousins .*each cousin get\?")
def sharing(_, had, gift, k):
    return Fraction(had - gift, k)


@solves(rf"\w+ takes a course of {N} days in \w+\. Its first day is {D} and it takes place every day\. On which .*")
def course(_, n, first):
    last = [day(first) + timedelta(days=i) for i in range(n)][-1]
    return f"{last.day} {last:%B} {last.year}"


@solves(rf"\w+ leaves \w+ on {D} and returns on {D}\. How many days after the departure is the return\?")
def interval(_, first, last):
    return f"{day(last).toordinal() - day(first).toordinal()} days"


@solves(rf"In \w+, {D} is a {W}\. The holiday of \w+ starts {N} days later\. On which day of the week does it start\?")
def weekday(_, first, name, n):
    assert f"{day(first):%A}" == name
    return f"{day(first) + timedelta(days=n):%A}"


@solves(
    r"\w+ boards a train that leaves \w+ at (\d\d:\d\d) and needs (\d+) hours and (\d+) minutes to reach \w+\. At .*"
)
def arrival(_, start, h, m):
    return f"{datetime.strptime(start, '%H:%M') + timedelta(hours=h, minutes=m):%H:%M}"


@solves(rf"{W} of \w+ was born in {N}, and {W} in {N}\. In which year does \w+ reach {N} times the age that .*")
def ages(_, _a, older, _b, younger, times):
    (year,) = [y for y in range(younger + 1, 2400) if y - older == times * (y - younger)]
    return year


@solves(
    rf"In \w+, {W} lies {N} km due north of {W}, and {W} lies {N} km due east of {W}\. How far .* as the crow flies\?"
)
def crow(_, u, x, _t, _v, y, u_again):
    assert u == u_again
    assert math.hypot(x, y).is_integer()
    return f"{int(math.hypot(x, y))} km"


@solves(
    rf"The province of \w+ covers {N} square kilometres and has {N} inhabitants, of whom {N} live in .*does it have\?"
)
def density(_, area, inhabitants, capital):
    assert capital < inhabitants
    return Fraction(inhabitants, area)


@solves(rf"From .*walks {N} km north, {N} km east, {N} km south and {N} km west\. Where does the walk end, .*")
def walk(_, north, east, south, west):
    x, y = east - west, north - south
    assert x == 0
    return f"{abs(y)} km {'north' if y > 0 else 'south'}"


@solves(r"Four rivers of \w+ meet near \w+: (.*)\. Which of them is the ([\w ]+)\?")
def rivers(_, items, wanted_rank):
    matches = sorted(((int(n), river) for river, n in re.findall(r"(the \w+) \((\d+) km\)", items)), reverse=True)
    assert len({n for n, _ in matches}) == 4
    return matches[{"longest": 0, "second longest": 1, "second shortest": 2, "shortest": 3}[wanted_rank]][1]


@solves(rf"On a map of \w+ at a scale of 1 : {N}, the towns \w+ and \w+ are {N} cm apart\. How many kilometres .*")
def map_scale(_, scale, cm):
    return f"{Fraction(scale * cm, 100_000)} km"


@solves(r"Four friends from \w+ compare themselves\. (.*) Who is the (second )?(\w+est) of the four\?")
def order(choices, clues, second, _most):
    pairs = re.findall(r"(\w+) is \w+ than (\w+)\.", clues)
    (only,) = [p for p in itertools.permutations(choices) if all(p.index(x) < p.index(y) for x, y in pairs)]
    return only[1 if second else 0]


@solves(r"\w+ finds the numbers ([\d, ]+) carved into a door .*")
def series(_, items):
    a, b, c, d = map(int, items.split(", "))
    (rule,) = [(m, k) for m in range(1, 50) for k in [b - m * a] if m * b + k == c and m * c + k == d]
    return rule[0] * d + rule[1]


@solves(rf"Whenever it rains in {W}, {W} takes the (\w+)\. Whenever \w+ takes the \w+, {W} stays in {W}\. (.*) What .*")
def implication(choices, t, a, ride, b, u, today):
    """The one option that holds in every world in which the rules and today's fact hold."""

    def holds(statement: str, world: dict[str, bool]) -> bool:
        positive = {
            f"it rains in {t}.": world["rain"],
            f"it does not rain in {t}.": not world["rain"],
            f"{a} takes the {ride}.": world["ride"],
            f"{a} does not take the {ride}.": not world["ride"],
            f"{b} stays in {u}.": world["stay"],
            f"{b} is not in {u}.": not world["stay"],
            f"{b} takes the {ride}.": world["b rides"],
            f"{a} stays in {u}.": world["a stays"],
        }
        first = statement[0].lower() + statement[1:]
        return positive[statement if statement in positive else first]

    names = ("rain", "ride", "stay", "b rides", "a stays")
    worlds = [dict(zip(names, bits, strict=True)) for bits in itertools.product([False, True], repeat=5)]
    fact = today.removeprefix("Today ")
    possible = [w for w in worlds if (not w["rain"] or w["ride"]) and (not w["ride"] or w["stay"]) and holds(fact, w)]
    (certain,) = [choice for choice in choices if all(holds(choice, w) for w in possible)]
    return certain


@solves(rf"\w+ delivers letters to the houses ([\d, ]+) of a street .*can be divided by {N} but not by {N}\?")
def divisible(_, items, p, q):
    return len([n for n in map(int, items.split(", ")) if not n % p and n % q])


@solves(rf"Every (\w+) in \w+ is a (\w+), and no (\w+) there is a (\w+)\. {W} lives in \w+ and is a (\w+)\. Which .*")
def syllogism(choices, x, y, y_again, z, a, z_again):
    """The one option that is true of every town in which the premises are."""
    assert (y, z) == (y_again, z_again)
    kinds = [(i, j, k) for i, j, k in itertools.product([0, 1], repeat=3) if j >= i and not (j and k)]
    certain = []
    for choice in choices:
        if choice.startswith("Every"):  # of the callings y and x: a town with a y that is no x denies it
            true = all(i for i, j, _ in kinds if j)
        else:
            comparison, negated = choice.rstrip(".").split()[-1], " not " in choice
            values = {x: 0, y: 1}[comparison]
            true = all(bool(kind[values]) != negated for kind in kinds if kind[2])
            assert choice.startswith(f"{a} is ")
        certain += [choice] * true
    (only,) = certain
    return only


@solves(rf"A \w+ from \w+ is {N} m {N} cm long\. \w+ lays {N} of that kind end to end\. How many centimetres .*")
def lengths(_, m, cm, n):
    return n * 100 * m + n * cm


@solves(rf".*it ran for {N} h {N} min {N} s\. For how many seconds did it run\?")
def seconds(_, h, m, s):
    return int(timedelta(hours=h, minutes=m, seconds=s).total_seconds())


@solves(
    rf"In the old measures .*, one (\w+) is {N} (\w+) and one (\w+) is {N} (\w+)\. How many (\w+) are {N} .*and {N} .*"
)
def measures(_, _u, k, v, v_again, m, w, wanted_rank, a, b):
    assert (v, w) == (v_again, wanted_rank)
    return a * k * m + b * m


@solves(rf"A \w+ covers the {N} km from \w+ to \w+ in {N} minutes at a steady speed\. What is that speed .*")
def speed(_, far, minutes):
    return f"{Fraction(far) / Fraction(minutes, 60)} km/h"


@solves(rf"\w+ of \w+ draws \w+ from a barrel of {N} litres into bottles of {N} ml each\. How many bottles .*")
def bottles(_, litres, ml):
    return math.floor(Fraction(litres * 1000, ml))


@solves(r"The table shows how many \w+ were sold in four towns\.\n\nTown \| (.*)\n\n([^\n]*)")
def tables(_, rows, question):
    import pandas as pd

    months, *lines = [line.split(" | ") for line in rows.split("\n")]
    frame = pd.DataFrame({line[0]: map(int, line[1:]) for line in lines}, index=months).T
    assert frame.shape == (4, 4)
    if m := re.search(r"sell together in (\w+)\?", question):
        return frame[m[1]].sum()
    if "Which town sold the most" in question:
        return frame.sum(axis=1).idxmax()
    if "sell the fewest" in question:
        return frame.sum(axis=0).idxmin()
    if m := re.search(r"did (\w+) sell in (\w+) beyond those of (\w+)\?", question):
        return frame.loc[m[1], m[2]] - frame.loc[m[3], m[2]]
    m = re.search(r"did (\w+) sell over the four months\?", question)
    assert m
    return frame.loc[m[1]].sum()
