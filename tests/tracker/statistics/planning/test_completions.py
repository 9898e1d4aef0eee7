"""The largest errors and variances that missing scores allow, held to all completions or many drawn ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.means import design_variance
from tracker.statistics.pairwise_differences import compare_all_pairs
from tracker.statistics.planning.completions import largest_stderr, largest_trial_variance, variance_range

N = 12
CLUSTERS = np.array(list("aaabbbbccdde"))
GROUPS = {
    "plain": None,
    "clusters": group_rows(CLUSTERS),
    "strata": group_rows(np.full(N, ""), np.array(["s"] * 7 + ["t"] * 5)),
    "clusters in strata": group_rows(CLUSTERS, np.array(["s"] * 7 + ["t"] * 5)),
}


def stderr(values: np.ndarray, groups: Grouping | None, correction: str) -> float:
    """The error of a mean, by the code for pairs: a column against one of zeros."""
    pairs = compare_all_pairs(np.column_stack([values, np.zeros(N)]), groups, correction)
    return float((pairs.stderr if groups is None else pairs.stderr_clustered)[0, 1])


@pytest.mark.parametrize("correction", ["CR1", "CR2"])
@pytest.mark.parametrize("design", GROUPS)
def test_no_deviation_has_a_larger_error(design: str, correction: str) -> None:
    rng, groups = np.random.default_rng(2), GROUPS[design]
    reach = rng.random(N) * (rng.random(N) < 0.5)
    [bound] = largest_stderr(reach[:, None], groups, correction)
    errors = [stderr(reach * signs, groups, correction) for signs in rng.choice([-1.0, 1.0], (200, N))]
    assert 0.5 * bound < max(errors) <= bound + 1e-12
    middle = rng.normal(size=N)
    for signs in rng.uniform(-1, 1, (50, N)):
        assert stderr(middle + reach * signs, groups, correction) <= stderr(middle, groups, correction) + bound + 1e-12


def test_strata_have_the_error_of_the_leaderboard() -> None:
    values = np.random.default_rng(1).normal(size=N)
    groups = GROUPS["strata"]
    expected = np.sqrt(design_variance(values[:, None], groups, np.full(N, 1 / N))[0])
    assert stderr(values, groups, "CR2") == pytest.approx(expected)


@pytest.mark.parametrize("n_missing", [0, 1, 4])
@pytest.mark.parametrize("values", [[0.0, 0.2, 1.0], [0.9, 1.0], [0.5]])
def test_the_range_of_a_variance_is_that_of_its_completions(values: list[float], n_missing: int) -> None:
    if len(values) + n_missing < 2:
        return
    grid = np.linspace(0, 1, 5) if n_missing < 4 else np.array([0.0, 0.5, 1.0])
    every = [np.var([*values, *more], ddof=1) for more in product(grid, repeat=n_missing)]
    smallest, largest = variance_range(np.array(values), n_missing, (0.0, 1.0))
    assert largest == pytest.approx(max(every))
    assert smallest <= min(every) + 1e-12
    assert smallest == pytest.approx(np.var([*values, *[np.mean(values)] * n_missing], ddof=1))


@pytest.mark.parametrize("n_trials", [2, 3, 4, 5])
def test_no_trials_vary_more(n_trials: int) -> None:
    every = [np.var(trials, ddof=1) for trials in product([-1.0, 0.5, 2.0], repeat=n_trials)]
    assert largest_trial_variance(n_trials, (-1.0, 2.0)) == pytest.approx(max(every))
