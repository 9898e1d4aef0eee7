"""The density of 1.4 million distances, beside SciPy's `gaussian_kde` and statsmodels' by FFT.

statsmodels by FFT is the stronger peer. SciPy sums over all distances at each point of a grid: it is timed at a few
points, and its time is scaled to 1,000 points, enough to find maxima. The time of Suffrage includes the maxima. All
estimates are reflected at 0: SciPy is evaluated at x and -x, which doubles its time, and statsmodels is fitted to the
distances and their mirror images.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde
from statsmodels.nonparametric.kde import KDEUnivariate

from analyses.numerics.filtering.similar_prompts.density import estimate_density
from benchmarks._costs import seconds

N_DISTANCES = 1_400_000
N_TIMED, N_POINTS = 20, 1000
N_COMPARED = 40


def distances(n: int) -> np.ndarray:
    """SIMULATED: some near-duplicates, and all others around 0.45."""
    rng = np.random.default_rng(0)
    near = np.abs(rng.normal(0.06, 0.02, n // 50))
    return np.concatenate([near, np.clip(rng.normal(0.45, 0.12, n - near.size), 0.001, 2)])


def _difference(values: np.ndarray, factor: float) -> float:
    """Largest difference from SciPy's density, as a share of the maximum, at even points and all maxima."""
    estimate = estimate_density(values, factor)
    places = np.linspace(0, estimate.grid.size - 1, N_COMPARED).astype(int)
    places = np.union1d(places, np.searchsorted(estimate.grid, estimate.maxima))
    peer, at = gaussian_kde(values, bw_method=factor), estimate.grid[places]
    return float(np.abs(estimate.density[places] - peer(at) - peer(-at)).max() / estimate.density.max())


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each bandwidth and peer."""
    values = distances(N_DISTANCES)
    both = np.concatenate([values, -values])
    estimate_density(values)
    for factor in (0.02, 0.15, 1.0):
        seconds_ours = seconds(lambda f=factor: estimate_density(values, f), times=5)
        estimate = estimate_density(values, factor)
        at = np.linspace(0, estimate.grid[-1], N_TIMED)
        kernels = gaussian_kde(values, bw_method=factor)

        def scipy_at_some(peer: gaussian_kde = kernels, x: np.ndarray = at) -> np.ndarray:
            return np.asarray(peer(x) + peer(-x))

        def by_fft(bandwidth: float = estimate.bandwidth, n: int = estimate.grid.size) -> None:
            KDEUnivariate(both).fit(kernel="gau", fft=True, bw=bandwidth, gridsize=2 * n, cut=9)

        name = f"density of {N_DISTANCES:,} distances, factor {factor:g}"
        peer = seconds(scipy_at_some) * N_POINTS / N_TIMED
        yield {
            "name": f"{name}, beside scipy gaussian_kde",
            "note": f"ours at {estimate.grid.size:,} points; the peer is scaled from {N_TIMED} points to {N_POINTS:,}",
            "ours_s": round(seconds_ours, 4),
            "peer_s": round(peer, 2),
            "ratio": round(peer / seconds_ours),
            "largest_difference": float(f"{_difference(values, factor):.1e}"),
        }
        peer = seconds(by_fft, times=3)
        yield {
            "name": f"{name}, beside statsmodels by FFT",
            "note": f"both at about {estimate.grid.size:,} points from 0 up, none scaled",
            "ours_s": round(seconds_ours, 4),
            "peer_s": round(peer, 3),
            "ratio": round(peer / seconds_ours, 1),
        }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
