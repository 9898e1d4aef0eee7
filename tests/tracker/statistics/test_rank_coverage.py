"""How often all rank intervals hold the true ranks at once, for tasks that are strata, clusters or ignored."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.rank_intervals import rank_intervals, rank_spans

ABILITIES = np.array([0.1, 0.12, 0.15, 0.3, 0.35, 0.4, 0.6, 0.62, 0.9, 0.95])
N_TABLES = 10_000


def group(kind: str, tasks: np.ndarray) -> Grouping:
    names = tasks.astype(str)
    alone = np.full(len(tasks), "")
    return {"none": group_rows(alone), "fixed": group_rows(alone, names), "random": group_rows(names)}[kind]


def rank_coverage(kind: str, sizes: list[int], n_tables: int, spread: float = 0.4) -> float:
    """Share of tables in which every interval holds the model's true rank; of tied models, each possible rank.

    Models have a better or worse level in each task. Under ``fixed`` these levels are the same in every table, and the
    truth is the mean over them; under ``random`` they are drawn anew; under ``none`` there are none.
    """
    rng, tasks = np.random.default_rng([1, len(sizes)]), np.repeat(np.arange(len(sizes)), sizes)
    groups, k = group(kind, tasks), len(ABILITIES)
    local = ABILITIES + (0 if kind == "none" else spread) * rng.standard_normal((len(sizes), k))
    content = []
    for _ in range(n_tables):
        if kind == "random":
            local = ABILITIES + spread * rng.standard_normal((len(sizes), k))
        z = rng.standard_normal((len(tasks), 1))
        Q = (local[tasks] + 0.7 * rng.standard_normal((len(tasks), k)) > z).astype(float)
        means = ndtr(local / np.sqrt(1.49))[tasks].mean(axis=0) if kind == "fixed" else ABILITIES
        low, high = rank_spans(Q, groups, bounds=(0, 1))
        true = 1 + (means[:, None] > means).sum(axis=0)
        content.append(bool(((low <= true) & (true <= high)).all()))
    return float(np.mean(content))


@pytest.mark.parametrize("kind", ["none", "fixed", "random"])
def test_all_ranks_lie_in_their_intervals_at_once(kind):
    assert rank_coverage(kind, [30] * 9, 150) >= 0.9


@pytest.mark.soak
@pytest.mark.parametrize("sizes", [[12] * 9, [135, 129, 113, 110, 97, 92, 84, 82, 80, 79, 72, 50, 41, 38]], ids=len)
@pytest.mark.parametrize("kind", ["none", "fixed", "random"])
def test_they_do_so_in_94_5_percent_of_tables(kind, sizes, capsys):
    result = rank_coverage(kind, sizes, N_TABLES)
    with capsys.disabled():
        print(f"\nall ranks at once, tasks {kind}, {len(sizes)} tasks of {min(sizes)} to {max(sizes)}: {result:.2%}")
    assert result >= 0.945


def test_two_very_different_models_have_separate_ranks_with_fixed_tasks_and_not_with_random_ones():
    """41 models on nine tasks of grade-school mathematics, the best with 97 % and one with 75 %."""
    rng, sizes = np.random.default_rng(8), np.array([30, 60, 90, 120, 150, 180, 210, 230, 249])
    tasks = np.repeat(np.arange(9), sizes)
    rates = np.linspace(0.967, 0.747, 41) + 0.0 * tasks[:, None]
    difficulty = 0.06 * rng.standard_normal(9)
    Q = (rng.random(rates.shape) < np.clip(rates - np.abs(difficulty)[tasks, None] * (rates < 0.9), 0, 1)).astype(float)
    fixed, random = (rank_intervals(Q, group(kind, tasks), n_resamples=0) for kind in ("fixed", "random"))
    assert fixed.rank_high[0] < fixed.rank_low[40]
    assert (random.rank_high - random.rank_low).mean() > (fixed.rank_high - fixed.rank_low).mean()
