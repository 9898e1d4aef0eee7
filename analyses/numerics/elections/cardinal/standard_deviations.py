"""Standard deviations of tasks as fractions, in exact ratio wherever they have one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from analyses.numerics.elections.exact_scores import decimal_fraction


def exact_standard_deviations(rows: Sequence[Sequence[int]], denominator: int) -> list[Fraction]:
    """Standard deviation (ddof 1) of each row; 1 for a row of equal numbers.

    A standard deviation is the root of a fraction. The first of a kind is rounded to a float and is what that is
    printed as; others whose variance over its variance is the square of a fraction keep that ratio exactly, so that
    standardised scores which tie do so here as well.

    Args:
        rows: integers, at least two in each row.
        denominator: of all of them.
    """
    kinds: list[tuple[int, Fraction]] = []
    deviations = []
    for row in rows:
        lowest = min(row)
        above = [value - lowest for value in row]
        # the variance, in a unit that all rows share
        variance = len(row) * sum(value * value for value in above) - sum(above) ** 2
        if variance == 0:
            deviations.append(Fraction(1))
            continue
        for known_variance, deviation in kinds:
            root = isqrt(variance * known_variance)
            if root * root == variance * known_variance:
                deviations.append(deviation * Fraction(root, known_variance))
                break
        else:
            deviations.append(decimal_fraction(_rounded(above, denominator)))
            kinds.append((variance, deviations[-1]))
    return deviations


def _rounded(above: list[int], denominator: int) -> float:
    """The standard deviation, by shares of the range, so that no square leaves the floats; never 0."""
    share = float(np.std([value / max(above) for value in above], ddof=1))
    exactly = Fraction(share) * max(above) / denominator
    return float(min(max(exactly, Fraction(sys.float_info.min)), Fraction(sys.float_info.max)))
