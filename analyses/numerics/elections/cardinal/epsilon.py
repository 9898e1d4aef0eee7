"""The least weight that a task may be given."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from analyses.numerics.elections.exact_scores import ExactScores, decimal_fraction

DEFAULT_EPSILON = Fraction(1, 100)
"""What Zhang & Hardt 2024 begin with."""


def automatic_epsilon(scores: ExactScores) -> Fraction:
    """The least of 0.01 and the smallest over the largest standard deviation of a task.

    Args:
        scores: complete; tasks that tie all models do not count.

    Source: Zhang & Hardt 2024, section 5.
    """
    is_constant = np.asarray((scores.numerators == scores.numerators[:, :1]).all(axis=1), dtype=np.bool_)
    if is_constant.all():
        return DEFAULT_EPSILON
    T = scores.T[~is_constant]
    # Each task by its own power of two, so that no square overflows or vanishes.
    exponents = np.frexp(np.abs(T).max(axis=1))[1]
    deviations = np.ldexp(T, -exponents[:, None]).std(axis=1, ddof=1)
    sd: list[Fraction] = [
        Fraction(deviation) * Fraction(2) ** exponent
        for deviation, exponent in zip(deviations.tolist(), exponents.tolist(), strict=True)
    ]
    return min(DEFAULT_EPSILON, min(sd) / max(sd))


def round_up_to_float(epsilon: Fraction) -> float:
    """The smallest float that is not printed as less than epsilon.

    Args:
        epsilon: in (0, 1].
    """
    nearest = float(epsilon)
    return nearest if decimal_fraction(nearest) >= epsilon else float(np.nextafter(nearest, 2.0))
