"""Diversity of several benchmarks against their sensitivity: how the two go together, and along which lines.

Source: Zhang & Hardt 2024, figures 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

MIN_POINTS = 3
"""Fewer lie on any line."""
NORMAL_975 = 1.959963984540054
BELOW, UNDECIDED, ABOVE = -1, 0, 1


@dataclass(frozen=True, kw_only=True)
class Association:
    """How two numbers go together; NaN where that is not defined.

    Attributes:
        n: points.
        pearson: Pearson's correlation; NaN with fewer than three points, or where either number is the same in all.
        low, high: 95 % interval of it by Fisher's transformation; NaN with three points, or all on a straight line.
        spearman: Pearson's correlation of the ranks.
        slope: of the least-squares line through the origin; NaN with fewer than three points, or all at 0.
    """

    n: int
    pearson: float
    low: float
    high: float
    spearman: float
    slope: float


def format_correlation(correlation: float) -> str:
    """A correlation in digits; 1 is written only where it is 1."""
    if 0.9995 <= abs(correlation) < 1:
        return "above 0.999" if correlation > 0 else "below -0.999"
    return f"{correlation:.3f}"


def association(x: NDArray[np.float64], y: NDArray[np.float64]) -> Association:
    """Correlations and the line through the origin.

    Args:
        x: ``(n,)`` finite.
        y: ``(n,)`` finite.
    """
    from scipy.stats import rankdata

    n, nan = len(x), float("nan")
    if n < MIN_POINTS:
        return Association(n=n, pearson=nan, low=nan, high=nan, spearman=nan, slope=nan)
    r, sum_of_squares = _pearson(x, y), float(x @ x)
    low = high = nan
    if n > MIN_POINTS and abs(r) < 1:
        low, high = np.tanh(np.arctanh(r) + np.array([-1, 1]) * NORMAL_975 / np.sqrt(n - 3)).tolist()
    slope = float(x @ y) / sum_of_squares if sum_of_squares > 0 else nan
    return Association(n=n, pearson=r, low=low, high=high, spearman=_pearson(rankdata(x), rankdata(y)), slope=slope)


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """NaN where either is constant; kept within [-1, 1], and exactly there where rounding is all that is missing."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    dx, dy = x - x.mean(), y - y.mean()
    dx, dy = dx / np.linalg.norm(dx), dy / np.linalg.norm(dy)
    r = float(dx @ dy)
    return float(np.sign(r)) if 1 - abs(r) < 4 * len(x) * np.finfo(np.float64).eps else r


@dataclass(frozen=True, kw_only=True)
class TradeoffPanel:
    """Benchmarks as points: diversity, and the largest change of one kind that was found.

    Attributes:
        system: ``cardinal`` or ``ordinal``.
        change: ``tau`` or ``mrc``.
        names: one for each point.
        is_simulated: ``(n,)`` whether it is none of a real benchmark's tasks.
        diversity: ``(n,)``.
        sensitivity: ``(n,)`` largest change with a witness.
        upper_bound: ``(n,)`` what is proven not to be exceeded; ``sensitivity`` where that is exact.
        constant, random: which points are these baselines; None where they are not there.
    """

    system: str
    change: str
    names: tuple[str, ...]
    is_simulated: NDArray[np.bool_]
    diversity: NDArray[np.float64]
    sensitivity: NDArray[np.float64]
    upper_bound: NDArray[np.float64]
    constant: int | None = None
    random: int | None = None

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        """``(n,)`` whether the sensitivity is known."""
        return np.asarray(self.upper_bound <= self.sensitivity)

    @cached_property
    def association(self) -> Association:
        """Of all points, as in the paper: diversity with the sensitivity found."""
        return association(self.diversity, self.sensitivity)

    @cached_property
    def benchmark_association(self) -> Association:
        """The same without what was simulated."""
        is_real = ~self.is_simulated
        return association(self.diversity[is_real], self.sensitivity[is_real])

    def baseline_line(self, values: NDArray[np.float64]) -> tuple[float, float] | None:
        """Slope and intercept of the line from Constant to Random; None where one is missing or they do not differ.

        Args:
            values: ``sensitivity`` or ``upper_bound``.
        """
        if self.constant is None or self.random is None:
            return None
        width = float(self.diversity[self.random] - self.diversity[self.constant])
        if width == 0:
            return None
        slope = float(values[self.random] - values[self.constant]) / width
        return slope, float(values[self.constant]) - slope * float(self.diversity[self.constant])

    @property
    def sides(self) -> NDArray[np.int64] | None:
        """``(n,)`` `BELOW` the line between the baselines (a better trade-off), `ABOVE` it, or `UNDECIDED`.

        Undecided is what the bounds leave open, those of the baselines included, and the baselines themselves.
        """
        lower, upper = self.baseline_line(self.sensitivity), self.baseline_line(self.upper_bound)
        if lower is None or upper is None:
            return None
        heights = np.stack([slope * self.diversity + intercept for slope, intercept in (lower, upper)])
        sides = np.where(
            self.upper_bound < heights.min(axis=0),
            BELOW,
            np.where(self.sensitivity > heights.max(axis=0), ABOVE, UNDECIDED),
        )
        sides[self.constant] = sides[self.random] = UNDECIDED
        return sides
