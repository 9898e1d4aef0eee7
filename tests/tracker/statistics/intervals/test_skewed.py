"""Bootstrap-t of scores without bounds against a plain computation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tracker.statistics.intervals import skewed
from tracker.statistics.intervals.skewed import skewed_intervals

RNG = np.random.default_rng(8)


def bootstrap_t(y: np.ndarray, level: float) -> tuple[float, float]:
    n, rank = len(y), round((1 - level) / 2 * (skewed.N_DRAWS + 1))
    studentized = []
    for rows in np.random.default_rng(skewed.SEED).integers(0, n, (skewed.N_DRAWS, n)):
        drawn = y[rows]
        error = drawn.std() / np.sqrt(n - 1)
        difference = drawn.mean() - y.mean()
        studentized.append(difference / error if error > 0 else np.copysign(np.inf, difference))
    studentized.sort()
    error = y.std(ddof=1) / np.sqrt(n)
    return y.mean() - studentized[-rank] * error, y.mean() - studentized[rank - 1] * error


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("n", [12, 60])
def test_intervals_are_those_of_a_plain_bootstrap(n: int, level: float) -> None:
    Y = np.column_stack([RNG.exponential(size=n), RNG.normal(1e6, 1, n), RNG.lognormal(0, 2, n)])
    low, high = skewed_intervals(Y, level)
    for j in range(3):
        assert (low[j], high[j]) == pytest.approx(bootstrap_t(Y[:, j], level), rel=1e-9)


def test_columns_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    Y = RNG.exponential(size=(30, 5))
    together = np.array(skewed_intervals(Y))
    monkeypatch.setattr(skewed, "MAX_COLUMNS", 2)
    assert np.array(skewed_intervals(Y)) == pytest.approx(together, rel=1e-12)


@pytest.mark.parametrize(
    ("Q", "level"),
    [
        (np.repeat([0.0, 1.0], [9, 1])[:, None] * 3 + 5, 0.95),
        (RNG.exponential(size=(3, 4)), 0.95),
        (RNG.exponential(size=(40, 4)), 0.999),
        (RNG.exponential(size=(skewed.MAX_DRAWN + 1, 2)), 0.95),
    ],
    ids=["nearly all equal", "three scores", "a high level", "many scores"],
)
def test_halls_transformation_takes_its_place(Q: np.ndarray, level: float) -> None:
    low, high = skewed_intervals(Q, level)
    n, error = len(Q), Q.std(axis=0, ddof=1) / np.sqrt(len(Q))
    skewness = ((Q - Q.mean(axis=0)) ** 3).mean(axis=0) / Q.std(axis=0, ddof=1) ** 3
    a = skewness / np.sqrt(n)
    for end, sign in ((low, 1), (high, -1)):
        t = (Q.mean(axis=0) - end) / error
        transformed = t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6
        assert transformed == pytest.approx(sign * stats.t.ppf((1 + level) / 2, n - 1), rel=1e-6)


@pytest.mark.parametrize("n", [3, 5, 10, 20, 50])
@pytest.mark.parametrize(
    ("values", "shares"),
    [([2, 5], [0.9, 0.1]), ([0, 10, 20], [0.9, 0.05, 0.05]), ([1, 2, 3, 4, 5], [0.025] * 4 + [0.9])],
)
def test_tied_and_nearly_tied_scores_have_intervals_of_a_few_ranges(values, shares, n: int) -> None:
    for jitter in (0, 1e-8, 1e-4):
        Y = RNG.choice(values, (n, 1000), p=shares) + jitter * RNG.standard_normal((n, 1000))
        Y = Y[:, np.ptp(Y, axis=0) > 0.5]
        low, high = skewed_intervals(Y)
        assert (high - low < 12 * np.ptp(Y, axis=0)).all()
        assert ((low < Y.mean(axis=0)) & (Y.mean(axis=0) < high)).all()


def test_equal_scores_and_single_scores_have_no_interval() -> None:
    assert np.isnan(skewed_intervals(np.full((5, 1), 2.0))).all()
    assert np.isnan(skewed_intervals(np.ones((1, 1)))).all()


@pytest.mark.parametrize(("n", "least"), [(10, 0.92), (50, 0.935)])
def test_coverage_of_skewed_scores(n: int, least: float) -> None:
    Y = RNG.exponential(size=(n, 4000))
    low, high = skewed_intervals(Y)
    t = stats.t.ppf(0.975, n - 1) * Y.std(axis=0, ddof=1) / np.sqrt(n)
    coverage = np.mean((low <= 1) & (high >= 1))
    assert coverage >= least
    assert coverage > np.mean(np.abs(Y.mean(axis=0) - 1) <= t)
