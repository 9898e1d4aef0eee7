"""Tables of scores whose expected mean is known, one table a column, for measuring how often intervals hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtrit

CHUNK_CELLS = 4_000_000
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(80)

Draw = Callable[[np.random.Generator, int], np.ndarray]


def chunks(n_rows: int, n_tables: int) -> Iterator[int]:
    """Numbers of tables to draw at a time."""
    step = max(1, CHUNK_CELLS // n_rows)
    yield from (min(step, n_tables - start) for start in range(0, n_tables, step))


def cluster_sizes(kind: str, n_clusters: int) -> np.ndarray:
    """Sizes of clusters: ``even``, ``20-460``, or ``55 %`` of the prompts in the first."""
    if kind == "even":
        return np.full(n_clusters, 60)
    if kind == "20-460":
        return np.round(np.linspace(20, 460, n_clusters)).astype(int)
    total = 60 * n_clusters
    rest = round(0.45 * total / (n_clusters - 1))
    return np.array([total - rest * (n_clusters - 1)] + [rest] * (n_clusters - 1))


def logit_of_mean(mean: float, sd: float) -> float:
    """The log-odds around which normal effects give a mean probability."""
    low, high = -20.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        value = (NODE_WEIGHTS * expit(middle + sd * NODES)).sum() / NODE_WEIGHTS.sum()
        low, high = (middle, high) if value < mean else (low, middle)
    return low


def clustered_scores(sizes: np.ndarray, mean: float, sd: float) -> Draw:
    """Scores of 0 and 1 in clusters whose log-odds vary; the effects are independent of the sizes."""
    codes, center = np.repeat(np.arange(len(sizes)), sizes), logit_of_mean(mean, sd)

    def draw(rng: np.random.Generator, k: int) -> np.ndarray:
        rates = expit(center + sd * rng.standard_normal((len(sizes), k))).astype(np.float32)
        return (rng.random((len(codes), k), dtype=np.float32) < rates[codes]).astype(np.float64)

    return draw


@dataclass(frozen=True)
class BoundedScores:
    """A distribution of scores in [0, 1].

    Attributes:
        name: for the printed table.
        mean: its expectation.
        draw: ``(rng, (n, k))`` to scores.
    """

    name: str
    mean: float
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def trials(number: int, a: float, b: float) -> BoundedScores:
    """Means of trials, where the chance of success varies by prompt."""
    return BoundedScores(
        f"{number} trials, Beta({a:g}, {b:g})",
        a / (a + b),
        lambda rng, shape: rng.binomial(number, rng.beta(a, b, shape)) / number,
    )


def atoms(zeros: float, ones: float, a: float, b: float) -> BoundedScores:
    """Shares of exact zeros and ones; the rest is continuous."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        u, y = rng.random(shape), rng.beta(a, b, shape)
        return np.where(u < zeros, 0.0, np.where(u < zeros + ones, 1.0, y))

    mean = ones + (1 - zeros - ones) * a / (a + b)
    return BoundedScores(f"{zeros:.0%} zeros, {ones:.0%} ones, Beta({a:g}, {b:g})", mean, draw)


BOUNDED = (
    trials(3, 0.5, 0.5),
    trials(5, 2, 1),
    trials(10, 0.3, 0.1),
    trials(10, 9.5, 0.5),
    trials(3, 19, 1),
    atoms(0.2, 0.5, 1, 1),
    atoms(0.0, 0.9, 1, 1),
    atoms(0.9, 0.0, 1, 5),
    atoms(0.0, 0.97, 5, 1),
    atoms(0.0, 0.0, 20, 20),
    atoms(0.0, 0.0, 0.5, 10),
)


def student_interval(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean ± t · standard error, which leaderboards commonly print."""
    n, mean = len(Y), Y.mean(axis=0)
    reach = stdtrit(n - 1, 0.975) * Y.std(axis=0, ddof=1) / np.sqrt(n)
    return mean - reach, mean + reach


def bootstrap_t_interval(Y: np.ndarray, rng: np.random.Generator, n_resamples: int = 399):
    """The studentized bootstrap."""
    n, mean, error = len(Y), Y.mean(axis=0), Y.std(axis=0, ddof=1) / np.sqrt(len(Y))
    counts = rng.multinomial(n, np.full(n, 1 / n), n_resamples).astype(float)
    drawn = counts @ Y / n
    spread = np.sqrt(np.maximum(counts @ Y**2 / n - drawn**2, 1e-12) / (n - 1))
    low, high = np.quantile((drawn - mean) / spread, [0.025, 0.975], axis=0)
    return np.clip(mean - high * error, 0, 1), np.clip(mean - low * error, 0, 1)


def capital_interval(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hedged capital of Waudby-Smith and Ramdas 2024 with predictable plug-in bets, on a grid of means."""
    n, k = Y.shape
    grid, rows = np.linspace(0.0005, 0.9995, 400), np.arange(1, n + 1)[:, None]
    centers = (0.5 + Y.cumsum(axis=0)) / (rows + 1)
    spread = (0.25 + ((Y - centers) ** 2).cumsum(axis=0)) / (rows + 1)
    bets = np.sqrt(2 * np.log(2 / 0.05) / (n * np.vstack([np.full(k, 0.25), spread[:-1]])))
    low, high = np.empty(k), np.empty(k)
    for j in range(k):
        d, bet = Y[:, [j]] - grid, bets[:, [j]]
        up = np.log1p(np.minimum(bet, 0.5 / grid) * d).sum(axis=0)
        down = np.log1p(-np.minimum(bet, 0.5 / (1 - grid)) * d).sum(axis=0)
        kept = grid[np.maximum(up, down) + np.log(0.5) < np.log(20)]
        low[j], high[j] = kept.min() - 0.00125, kept.max() + 0.00125
    return low, high
