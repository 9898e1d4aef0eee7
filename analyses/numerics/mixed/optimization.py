"""Maximize a likelihood over standard deviations, of which some may be 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
"""The log-likelihood at standard deviations, and twice its derivative by each variance."""

SMALL = 1e-2
"""Standard deviations below this, or below this share of the largest, are compared with 0."""
RESTART = 0.1
"""A standard deviation of 0 where the likelihood grows starts again from here."""
STEP = 1e-3
"""Step of the logarithm in differences of gradients."""
MAX_ROUNDS = 8


LEAST = 1e-3
"""Smallest standard deviation where they are kept off 0."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """Standard deviations of greatest likelihood.

    Attributes:
        sd: ``(m,)`` of all components; 0 where inactive or estimated as 0.
        value: the log-likelihood.
        at_limit: ``(m,)`` whether the likelihood still grows at the upper limit.
        has_converged: whether the gradient is 0 within rounding.
    """

    sd: NDArray[np.float64]
    value: float
    at_limit: NDArray[np.bool_]
    has_converged: bool


def maximize(objective: Objective, start: NDArray[np.float64], *, upper: float, tolerance: float = 1e-7) -> Optimum:
    """Maximize from a starting value; a component that starts at 0 stays 0.

    Args:
        objective: value and derivatives.
        start: ``(m,)`` standard deviations.
        upper: largest standard deviation that is tried.
        tolerance: of the gradient by logarithms, relative to 1 + the absolute value of the likelihood.
    """
    active = np.flatnonzero(start > 0)
    sd = start.copy()
    for _ in range(MAX_ROUNDS):
        sd, value, slope = _climb(objective, sd, active, (0.0, upper), tolerance)
        sd, value, slope = _set_tiny_to_zero(objective, sd, value, slope)
        free = active[(sd[active] > 0) & (sd[active] < upper)]
        accuracy = tolerance * (1 + abs(value))
        rising = active[(sd[active] == 0) & (slope[active] > accuracy)]
        is_level = bool((np.abs(sd[free] ** 2 * slope[free]) <= accuracy).all())
        if is_level and not len(rising):
            break
        sd[rising] = RESTART
    return Optimum(sd, value, (sd >= upper) & (slope > 0), is_level and not len(rising))


def maximize_off_zero(
    objective: Objective, start: NDArray[np.float64], active: NDArray[np.bool_], *, upper: float
) -> NDArray[np.float64]:
    """Return standard deviations that maximize the likelihood times their product.

    The factor keeps every active component off 0, within about one standard error of its estimate.

    Source: Chung et al. 2013, "A nondegenerate penalized likelihood estimator for variance parameters in multilevel
    models", Psychometrika 78.

    Args:
        objective: value and derivatives.
        start: ``(m,)`` standard deviations.
        active: ``(m,)`` components with an effect.
        upper: largest standard deviation that is tried.
    """
    rows = np.flatnonzero(active)

    def penalized(sd: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = objective(sd)
        slope = slope.copy()
        slope[rows] += 1 / sd[rows] ** 2
        return value + float(np.log(sd[rows]).sum()), slope

    begin = np.where(active, np.clip(start, RESTART, upper), 0.0)
    return _climb(penalized, begin, rows, (LEAST, upper), 1e-6)[0]


def _climb(
    objective: Objective,
    sd: NDArray[np.float64],
    active: NDArray[np.int64],
    bounds: tuple[float, float],
    tolerance: float,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Run L-BFGS-B over the standard deviations of the active components."""

    def negative(part: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        point = sd.copy()
        point[active] = part
        value, slope = objective(point)
        return -value, -part * slope[active]

    if len(active):
        result = scipy.optimize.minimize(
            negative,
            sd[active],
            jac=True,
            method="L-BFGS-B",
            bounds=[bounds] * len(active),
            options={"ftol": 1e-14, "gtol": tolerance, "maxiter": 200, "maxls": 40},
        )
        sd = sd.copy()
        sd[active] = result.x
    value, slope = objective(sd)
    return sd, value, slope


def _set_tiny_to_zero(
    objective: Objective, sd: NDArray[np.float64], value: float, slope: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Replace tiny standard deviations by 0 where the likelihood does not fall."""
    for component in np.flatnonzero((sd > 0) & (sd < SMALL * max(1.0, sd.max()))):
        point = sd.copy()
        point[component] = 0.0
        value_there, slope_there = objective(point)
        if value_there >= value - 1e-10 * (1 + abs(value)):
            sd, value, slope = point, value_there, slope_there
    return sd, value, slope


def invert_information(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of estimates from their information; NaN if it is not positive definite."""
    information = (information + information.T) / 2
    if not len(information):
        return information
    values, vectors = np.linalg.eigh(information)
    if values[0] <= 0:
        return np.full_like(information, np.nan)
    return np.asarray((vectors / values) @ vectors.T)
