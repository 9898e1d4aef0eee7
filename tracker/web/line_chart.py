"""A chart of lines with intervals, as the places of its marks; a template draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 720.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 14.0, 12.0, 34.0
"""Space around the lines, for the labels of the axes."""
N_TICKS = 5
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Distances between labels, times a power of ten."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """A line.

    Attributes:
        name: its label.
        x, y: of its points.
        low, high: ends of the interval at each point; None without one.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]


def draw_lines(series: Sequence[Series], label_x: Callable[[float], str]) -> dict[str, Any]:
    """Return places of points, intervals and labels.

    Args:
        series: at least one line with a point.
        label_x: returns the label of a value on the horizontal axis.
    """
    xs = sorted({value for line in series for value in line.x})
    ends = [v for line in series for part in (line.y, line.low, line.high) for v in part if v is not None]
    ticks = choose_ticks(min(ends), max(ends))
    low, high = min(ticks[0], *ends), max(ticks[-1], *ends)
    span_x, span_y = (xs[-1] - xs[0]) or 1.0, (high - low) or 1.0

    def place_x(value: float) -> float:
        share = (value - xs[0]) / span_x if len(xs) > 1 else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def place_y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (value - low) / span_y * (HEIGHT - TOP - BOTTOM), 1)

    drawn = []
    for line in series:
        points = [
            {
                "x": place_x(x), "y": place_y(y), "value": y, "label": label_x(x),
                "low": None if a is None else place_y(a), "high": None if b is None else place_y(b),
            }
            for x, y, a, b in zip(line.x, line.y, line.low, line.high, strict=True)
        ]  # fmt: skip
        drawn.append({"name": line.name, "points": points})
    labelled = xs if len(xs) <= N_TICKS else [xs[round(i * (len(xs) - 1) / (N_TICKS - 1))] for i in range(N_TICKS)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "bottom": HEIGHT - BOTTOM,
        "lines": drawn,
        "ticks_x": [{"place": place_x(value), "label": label_x(value)} for value in _spread(labelled, place_x)],
        "ticks_y": [{"place": place_y(value), "label": f"{value:.6g}"} for value in ticks],
    }


def choose_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from a range; the range's ends are within or just beside them."""
    if not high > low:
        return [low]
    raw = (high - low) / N_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * part for part in STEPS if power * part >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)] or [low]


def _spread(values: Sequence[float], place: Callable[[float], float], gap: float = 90.0) -> list[float]:
    """Return values whose places are so far apart that their labels do not overlap."""
    kept: list[float] = []
    for value in values:
        if not kept or place(value) - place(kept[-1]) >= gap:
            kept.append(value)
    return kept
