"""Chances of a sum of independent gamma variables being positive, to ten digits also far in the tails.

Dirichlet weights are independent gamma variables over their sum, so whether a weighted sum of scores exceeds a
threshold is whether ``S = Σ G_i d_i`` is positive, with ``G_i`` gamma of shape ``α_i`` (exponential for ``α_i = 1``).
With ``K(s) = -Σ α_i log(1 - s d_i)``,

    P(S > 0) = 1/(2πi) ∫ exp(K(s)) ds / s    along a vertical line at some 0 < c < 1/max(d).

The line passes near the minimum of ``K(s) - log(s)`` on the real axis, where the integrand is the size of the
answer, so that a chance of 1e-200 has as many digits as one of 0.2. On it ``s = c + i σ sinh(t)`` turns the algebraic
decay of few terms and the Gaussian decay of many into an exponential one, and the trapezoid rule converges
geometrically; its step is halved until two answers agree.

Source: Lugannani & Rice 1980 and Daniels 1987 (saddlepoints of tail integrals); Rice 1973 (trapezoid rule along them).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracker.statistics.jit import INT, jit

NODES = 16
"""Points of the line evaluated at a time."""
FIRST_STEP, HALVINGS = 0.25, 8
AGREEMENT = 1e-8
"""Two steps of which one is half the other, agreeing this well, leave an error of about its square."""
NEGLIGIBLE = 1e-18
MAX_DISTANCE = 300.0
"""Where the integrand has not died out by this t it is a pure exponential, whose remaining sum is known."""
ONE_SIDED = 0.9
"""A chance above this is computed as one minus the other tail, which then has all its digits."""
_SMALL, _LARGE = 2.0**-200, 2.0**300


class Integrand(NamedTuple):
    """What is integrated along the line through the saddle point.

    Attributes:
        a, weight, alpha: ``(m,)`` float64.
        c: the saddle point.
        sigma: width in which the nodes are laid out.
        total: sum of the shapes of all values other than 0.
    """

    a: Any
    alpha: Any
    weight: Any
    c: Any
    sigma: Any
    total: Any


class Nodes(NamedTuple):
    """Memory for `NODES` nodes of the integration: where they lie, and factors of the integrand there."""

    t: Any
    y: Any
    re: Any
    im: Any
    size: Any
    phase: Any
    real: Any
    imaginary: Any


@jit
def saddlepoint(d: Any, alpha: Any) -> Any:
    """Near the minimum of ``K(s) - log(s)`` on ``(0, 1/max(d))``; where exactly does not matter to the integral.

    Args:
        d: ``(m,)`` with a positive entry; Newton's method, kept inside a bracket.
        alpha: ``(m,)`` positive shapes.
    """
    mean, spread, most = 0.0, 0.0, 0.0
    for i in range(d.size):
        mean += alpha[i] * d[i]
        spread += alpha[i] * d[i] * d[i]
        most = max(most, d[i])
    low, high = 0.0, 1.0 / most
    c = min(2.0 / (mean + np.sqrt(mean * mean + 4.0 * spread)), 0.9 * high)
    for _ in range(200):
        slope, curvature = -1.0 / c, 1.0 / (c * c)
        for i in range(d.size):
            a = d[i] / (1.0 - c * d[i])
            slope += alpha[i] * a
            curvature += alpha[i] * a * a
        if slope * slope < 1e-6 * curvature:
            break
        if slope > 0.0:
            high = c
        else:
            low = c
        c -= slope / curvature
        if not low < c < high:
            c = 0.5 * (low + high)
    return c


@jit
def _factors(a: Any, alpha: Any, y: Any, re: Any, im: Any, size: Any, phase: Any) -> None:
    """``Π (1 - i y a_i)**α_i`` at each y, as ``(re + i im) exp(size - i phase)``.

    Terms with α = 1 are multiplied out, eight nodes at a time in one register; others need logarithms.
    """
    re[:] = 1.0
    im[:] = 0.0
    size[:] = 0.0
    phase[:] = 0.0
    since: Any = INT(0)
    for i in range(a.size):
        if alpha[i] == 1.0:
            for k in range(NODES):
                u = y[k] * a[i]
                real = re[k]
                re[k] = real + u * im[k]
                im[k] -= u * real
            since += 1
            if since == 8:
                since = 0
                for k in range(NODES):
                    large = re[k] * re[k] + im[k] * im[k] > _LARGE
                    scale = _SMALL if large else 1.0
                    re[k] *= scale
                    im[k] *= scale
                    size[k] += 200.0 if large else 0.0
    for k in range(NODES):
        size[k] *= np.log(2.0)
    for i in range(a.size):
        if alpha[i] != 1.0 and a[i] != 0.0:
            for k in range(NODES):
                u = y[k] * a[i]
                size[k] += 0.5 * alpha[i] * np.log1p(u * u)
                phase[k] += alpha[i] * np.arctan(u)


@jit
def _resolvent(a: Any, weight: Any, y: Any, real: Any, imaginary: Any) -> None:
    """``Σ weight_i / (1 - i y a_i)`` at each y."""
    real[:] = 0.0
    imaginary[:] = 0.0
    for i in range(a.size):
        for k in range(NODES):
            u = y[k] * a[i]
            share = weight[i] / (1.0 + u * u)
            real[k] += share
            imaginary[k] += share * u


@jit
def _new_nodes() -> Any:
    return Nodes(
        np.empty(NODES), np.empty(NODES), np.empty(NODES), np.empty(NODES), np.empty(NODES), np.empty(NODES),
        np.zeros(NODES), np.zeros(NODES),
    )  # fmt: skip


@jit
def _sum_level(integrand: Any, nodes: Any, first: float, spacing: float, with_density: bool) -> Any:
    """Sums of tail and density over the nodes ``first``, ``first + spacing``, ... until nothing is added."""
    t, y, re, im, size, phase = nodes.t, nodes.y, nodes.re, nodes.im, nodes.size, nodes.phase
    sum_tail, sum_density, reach_tail, reach_density = 0.0, 0.0, 0.0, 0.0
    batch: Any = INT(0)
    while True:
        for k in range(NODES):
            t[k] = first + spacing * (batch * NODES + k)
            y[k] = integrand.sigma * np.sinh(t[k])
        _factors(integrand.a, integrand.alpha, y, re, im, size, phase)
        if with_density:
            _resolvent(integrand.a, integrand.weight, y, nodes.real, nodes.imaginary)
        last_tail, last_density = 0.0, 0.0
        for k in range(NODES):
            half = 0.5 if t[k] == 0.0 else 1.0
            norm = re[k] * re[k] + im[k] * im[k]
            scale = half * np.cosh(t[k]) * np.exp(-size[k]) / norm
            cos, sin = np.cos(phase[k]), np.sin(phase[k])
            f_re, f_im = scale * (re[k] * cos + im[k] * sin), scale * (re[k] * sin - im[k] * cos)
            u = y[k] / integrand.c
            pole = 1.0 + u * u
            last_tail = (f_re + u * f_im) / pole
            last_density = f_re * nodes.real[k] - f_im * nodes.imaginary[k]
            sum_tail += last_tail
            sum_density += last_density
            reach_tail = max(reach_tail, abs(last_tail))
            reach_density = max(reach_density, abs(last_density))
        batch += 1
        size_tail = scale * np.sqrt(norm / pole)
        size_density = scale * np.sqrt(norm) * (abs(nodes.real[NODES - 1]) + abs(nodes.imaginary[NODES - 1]))
        if size_tail <= NEGLIGIBLE * reach_tail and size_density <= NEGLIGIBLE * reach_density:
            break
        if t[NODES - 1] > MAX_DISTANCE:
            rest = 1.0 / np.expm1(integrand.total * spacing)
            sum_tail += rest * last_tail
            sum_density += rest * last_density
            break
    return sum_tail, sum_density


@jit
def _prepare(d: Any, alpha: Any) -> Any:
    """The integrand along the line through the saddle point, and the logarithm of its value there."""
    c = saddlepoint(d, alpha)
    a, weight = np.empty(d.size), np.empty(d.size)
    log_m, lost, spread, widest, total = 0.0, 0.0, 1.0 / (c * c), 1.0 / c, 0.0
    for i in range(d.size):
        a[i] = d[i] / (1.0 - c * d[i])
        weight[i] = alpha[i] / (1.0 - c * d[i])
        spread += alpha[i] * a[i] * a[i]
        widest = max(widest, abs(a[i]))
        if d[i] != 0.0:
            total += alpha[i]
        term = -alpha[i] * np.log1p(-c * d[i]) - lost
        summed = log_m + term
        lost = (summed - log_m) - term
        log_m = summed
    sigma = min(1.0 / np.sqrt(spread), 1.0 / widest)
    return Integrand(a, alpha, weight, c, sigma, total), log_m


@jit
def upper_tail(d: Any, alpha: Any, with_density: bool) -> Any:
    """``P(S > 0)`` and, where ``d = x - t``, the density of the weighted mean of x at t.

    Args:
        d: ``(m,)`` of both signs, none larger than 1 in magnitude and some of about that size.
        alpha: ``(m,)`` positive shapes.
        with_density: whether the density is wanted; 0 is returned in its place otherwise.
    """
    integrand, log_m = _prepare(d, alpha)
    nodes = _new_nodes()
    tail, density, step = 0.0, 0.0, FIRST_STEP
    for level in range(HALVINGS + 1):
        # The first level has the nodes 0, h, 2h, ...; each further one those half-way between all before.
        spacing = FIRST_STEP if level == 0 else 2.0 * step
        first = 0.0 if level == 0 else step
        sum_tail, sum_density = _sum_level(integrand, nodes, first, spacing, with_density)
        if level == 0:
            tail, density = sum_tail * step, sum_density * step
        else:
            finer = 0.5 * tail + sum_tail * step
            finer_density = 0.5 * density + sum_density * step
            agrees = abs(finer - tail) <= AGREEMENT * abs(finer)
            density_agrees = abs(finer_density - density) <= AGREEMENT * abs(finer_density)
            tail, density = finer, finer_density
            if agrees and (density_agrees or not with_density):
                break
        step *= 0.5
    outside = integrand.sigma * np.exp(log_m) / np.pi
    return outside / integrand.c * tail, outside * density


@jit
def both_tails(d: Any, alpha: Any, with_density: bool) -> Any:
    """``P(S > 0)``, ``P(S < 0)`` and the density as of `upper_tail`; each tail has its digits, together they are 1.

    The side on which the mean is not is computed, so that exchanging the signs of ``d`` exchanges the answers.

    Args:
        d: ``(m,)`` finite; of one sign only, the answers are exact; all 0, both chances are 0.5.
        alpha: ``(m,)`` positive shapes.
    """
    largest, mean = 0.0, 0.0
    n_above, n_below = 0, 0
    for i in range(d.size):
        largest = max(largest, abs(d[i]))
        n_above += d[i] > 0.0
        n_below += d[i] < 0.0
    if n_above == 0 and n_below == 0:
        return 0.5, 0.5, 0.0
    if n_below == 0:
        return 1.0, 0.0, 0.0
    if n_above == 0:
        return 0.0, 1.0, 0.0
    for i in range(d.size):
        mean += alpha[i] * (d[i] / largest)
    sign = -1.0 if mean > 0.0 else 1.0
    scaled = np.empty(d.size)
    for turn in range(2):
        if turn == 1:
            sign = -sign
        for i in range(d.size):
            scaled[i] = d[i] * (sign / largest)
        tail, density = upper_tail(scaled, alpha, with_density)
        if tail <= ONE_SIDED:
            break
    density /= largest
    if sign < 0.0:
        return 1.0 - tail, tail, density
    return tail, 1.0 - tail, density
