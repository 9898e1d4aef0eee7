"""Where distances between prompts are dense, and below which distance two prompts are called similar.

Each distance is spread over the four nearest points of an even grid so that every cubic polynomial keeps its mean;
a cosine transform, whose functions are even, then smooths the counts by the Gaussian and reflects them at 0 in one
step. With `STEPS` points in a bandwidth the density is that of the sum over all distances to 1e-6 of its maximum.

Source: Gupta et al. 2024, section 3.4 and appendix A.1; Silverman 1982, "Kernel density estimation using the fast
Fourier transform"; Fan & Marron 1994, "Fast implementations of nonparametric curve estimators" (binning).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct, next_fast_len

from tracker.statistics.jit import jit

STEPS = 32
"""Points of the grid in one bandwidth."""
REACH = 9.0
"""Bandwidths after which the Gaussian has no weight left."""
MAX_POINTS = 2**24
"""Longest grid: above it the bandwidth is rejected."""
RESOLUTION = 1e-6
"""Share of the largest density by which the density must fall on both sides of a maximum: its own accuracy."""
FINENESS = 100
"""Thresholds are multiples of a bandwidth divided by this."""
PLATEAU_TOLERANCE = 1e-13
"""Share of the largest density within which neighbouring points of the grid are equal: below `TIE_TOLERANCE`, as the
grid is so fine that a top is nearly flat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Density:
    """Kernel density of distances.

    Where the distances do not spread (fewer than two, or all equal) there is none: the arrays are empty and the
    bandwidth is 0.

    Attributes:
        grid: ``(g,)`` ascending from 0, in the unit of the distances; evenly spaced, but for a gap after 0 where no
            distance is near 0.
        density: ``(g,)``, at least 0; its integral is 1.
        bandwidth: standard deviation of the Gaussian kernel, in the unit of the distances.
        maxima: ``(m,)`` positions of local maxima, ascending; 0 is one of them where the density falls from there.
    """

    grid: NDArray[np.float64]
    density: NDArray[np.float64]
    bandwidth: float
    maxima: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """The distance strictly below which two prompts are similar.

    Attributes:
        value: in the unit of the distances, above 0; None where the density has no usable maximum.
        reason: the end of a sentence: which maximum it is, or why there is none and what to change.
        n_usable: local maxima above 0.
        is_unimodal: whether exactly one of them is usable.
        is_crowded_at_zero: whether there is one at 0 besides, which cannot be a threshold.
    """

    value: float | None
    reason: str
    n_usable: int
    is_unimodal: bool
    is_crowded_at_zero: bool


def estimate_density(distances: NDArray[np.float64], factor: float = 0.15) -> Density:
    """The density of distances under a Gaussian kernel, reflected at 0: f(x) + f(-x) for x >= 0.

    A local maximum counts if the density falls from it, on both sides, by more than `RESOLUTION` of its largest value
    before it rises above it again: smaller ones are within the error of the computation. One that is flat
    stands in its middle.

    Args:
        distances: of any shape, at least 0 (rounding may take one below); NaN is not known and left out.
        factor: bandwidth as a multiple of the sample standard deviation of the distances.

    Raises:
        ValueError: ``factor`` is not a positive number; a distance is infinite; the bandwidth is so much smaller than
            the range of the distances that the grid would have more than `MAX_POINTS` points.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise ValueError(f"The bandwidth factor must be a positive number, not {factor}.")
    known = np.ravel(distances).astype(np.float64, copy=False)
    known = known[~np.isnan(known)] if np.isnan(known).any() else known
    bandwidth, low, high = _spread(known, factor)
    if bandwidth == 0:
        return Density(grid=np.empty(0), density=np.empty(0), bandwidth=0.0, maxima=np.empty(0))
    step = bandwidth / STEPS
    start = max(0.0, low - REACH * bandwidth)
    points = (high - start) / step + REACH * STEPS
    if points > MAX_POINTS:
        enough = 1.1 * factor * points / MAX_POINTS
        raise ValueError(
            f"A bandwidth of {bandwidth:.3g} is too small for distances between {low:.3g} and {high:.3g}: "
            f"its grid would have {points:.2g} points. Choose a factor of {enough:.2g} or more."
        )
    smooth = _smooth(_counts(known, start, step, next_fast_len(int(np.ceil(points)), real=True) + 1), STEPS)
    smooth /= known.size * step
    maxima = start + step * _maxima(smooth)
    grid = start + step * np.arange(smooth.size, dtype=np.float64)
    if start > 0:
        grid, smooth = np.concatenate([[0.0], grid]), np.concatenate([[0.0], smooth])
    return Density(grid=grid, density=smooth, bandwidth=bandwidth, maxima=maxima)


def _spread(known: NDArray[np.float64], factor: float) -> tuple[float, float, float]:
    """Bandwidth, least and largest distance without sign; bandwidth 0 where numbers cannot resolve the spread.

    Raises:
        ValueError: a distance is infinite.
    """
    if known.size < 2:
        return 0.0, 0.0, 0.0
    low, high = float(known.min()), float(known.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("A distance is infinite.")
    bandwidth = factor * float(known.std(ddof=1))
    largest = max(abs(low), abs(high))
    is_resolved = low < high and bandwidth / STEPS > 8 * np.finfo(np.float64).eps * largest
    return bandwidth if is_resolved else 0.0, max(low, 0.0), largest


@jit
def _counts(values: Any, start: float, step: float, n_points: int) -> Any:
    """Each value spread over the two points of the grid on either side, by the cubic through them.

    What falls left of the first point is reflected there; so is a value below 0. The first point counts itself twice,
    being its own reflection.
    """
    counts = np.zeros(n_points)
    for i in range(values.size):
        place = (abs(values[i]) - start) / step
        j = np.int64(place)
        u = place - j
        counts[abs(j - 1)] -= u * (u - 1) * (u - 2) / 6
        counts[j] += (u + 1) * (u - 1) * (u - 2) / 2
        counts[j + 1] -= (u + 1) * u * (u - 2) / 2
        counts[j + 2] += (u + 1) * u * (u - 1) / 6
    counts[0] *= 2
    return counts


def _smooth(counts: NDArray[np.float64], steps: float) -> NDArray[np.float64]:
    """Counts convolved with a Gaussian whose standard deviation is so many steps, reflected at both ends."""
    frequencies = np.arange(counts.size) * (np.pi * steps / (counts.size - 1))
    smooth = idct(dct(counts, type=1) * np.exp(-0.5 * frequencies**2), type=1)
    return np.maximum(np.asarray(smooth, dtype=np.float64), 0.0)


def _maxima(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions of the local maxima, in steps from the first point, between points of the grid too.

    The values are even around the first point, so that one from which they only fall is a maximum.
    """
    largest = float(values.max())
    tops = _tops(values, RESOLUTION * largest)
    return np.array([_position(values, int(top), PLATEAU_TOLERANCE * largest) for top in tops])


@jit
def _tops(values: Any, least: float) -> Any:
    """Highest point of each stretch between two falls by more than ``least``; 0 where no such rise is before it."""
    tops = np.empty(values.size, np.int64)
    n = 0
    is_rising, has_risen = True, False
    top, bottom, lowest = np.int64(0), np.int64(0), values[0]
    for i in range(values.size):
        if is_rising:
            if values[i] > values[top]:
                top = np.int64(i)
                has_risen = has_risen or values[top] - lowest > least
            elif values[top] - values[i] > least:
                tops[n] = top if has_risen else 0
                n += 1
                is_rising, bottom = False, np.int64(i)
            else:
                lowest = min(lowest, values[i])
        elif values[i] < values[bottom]:
            bottom = np.int64(i)
        elif values[i] - values[bottom] > least:
            is_rising, has_risen, top = True, True, np.int64(i)
    return tops[:n]


def _position(values: NDArray[np.float64], top: int, rounding: float) -> float:
    """Where the parabola through the highest point and its neighbours is highest, or the middle of what is flat."""
    if top == 0:
        return 0.0
    first = last = top
    while first > 0 and values[top] - values[first - 1] <= rounding:
        first -= 1
    while values[top] - values[last + 1] <= rounding:
        last += 1
    if first < last:
        return (first + last) / 2
    before, at, after = values[top - 1 : top + 2]
    return float(top + 0.5 * (before - after) / (before - 2 * at + after))


def find_threshold(curve: Density, *, unimodal: Literal["keep", "half"] = "keep") -> Threshold:
    """The first local maximum of the density above 0.

    A maximum at 0 is a crowd of pairs closer to each other than the bandwidth. No distance lies strictly below it, so
    it is passed over. The position is rounded down to a hundredth of the bandwidth: a pair that makes a maximum by
    itself stands in it, and the last digit of its distance must not decide whether it lies below.

    Args:
        curve: of the distances.
        unimodal: where there is one usable maximum only, "keep" takes it, as in the paper, and "half" takes half of
            it, as its authors' code does.
    """
    usable = curve.maxima[curve.maxima > 0]
    is_crowded = len(usable) < len(curve.maxima)
    n = len(usable)
    value: float | None = None
    if n:
        unit = curve.bandwidth / FINENESS
        value = float(np.floor(usable[0] / unit)) * unit / (2 if n == 1 and unimodal == "half" else 1)
        maximum = f"the first of {n} local maxima" if n > 1 else "the only local maximum"
        half = "half of " if n == 1 and unimodal == "half" else ""
        besides = " above 0, besides one at 0, below which no distance lies" if is_crowded else ""
        reason = f"{half}{maximum} of the density{besides}"
    elif is_crowded:
        reason = (
            "the only local maximum of the density is at 0, below all distances; choose a smaller bandwidth, which "
            "may separate the pairs near 0, or set a threshold"
        )
    else:
        reason = (
            "there are fewer than two distances, or they are all equal, so that they have no density; set a threshold"
        )
    return Threshold(value=value, reason=reason, n_usable=n, is_unimodal=n == 1, is_crowded_at_zero=is_crowded)
