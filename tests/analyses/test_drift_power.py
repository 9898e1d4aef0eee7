"""Power and level of the test of a change between runs, which is about the prompts of the benchmark."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from analyses.numerics.comparing.run_steps import compare_runs
from tracker.queries.clusters import Clusters
from tracker.statistics.grouping import group_rows

N_TABLES = 2000


def rejections(change: float, n_tables: int) -> dict[str, float]:
    """Share of pairs of runs that differ at 5 %, by default, with tasks as clusters, and by McNemar's test.

    Every prompt has a chance of being answered; the second run loses some of it, in some tasks more than in others.
    """
    rng, tasks = np.random.default_rng(3), np.repeat([f"t{i}" for i in range(9)], 120)
    chance = rng.beta(0.5, 0.25, len(tasks))
    lost = change * np.repeat(rng.uniform(0, 2, 9), 120)
    clusters = Clusters.of_tasks(np.arange(len(tasks)), tasks)
    groups = group_rows(clusters.align(clusters.prompt_ids)), group_rows(tasks)
    counts = np.zeros(3)
    for _ in range(n_tables):
        Q = (rng.random((len(tasks), 2)) < np.column_stack([chance, np.clip(chance - lost, 0, 1)])).astype(float)
        steps = [compare_runs(Q, [[0, 1]], group)[0] for group in groups]
        up, down = int((Q[:, 1] > Q[:, 0]).sum()), int((Q[:, 1] < Q[:, 0]).sum())
        pvalues = [*(step.pvalue for step in steps), binomtest(up, up + down).pvalue]
        counts += np.array(pvalues) <= 0.05
    return dict(zip(("default", "random", "McNemar"), counts / n_tables, strict=True))


def test_the_default_is_mcnemars_test():
    result = rejections(0.03, 40)
    assert result["default"] == result["McNemar"]


@pytest.mark.soak
def test_power_and_level():
    power, level = rejections(0.03, N_TABLES), rejections(0.0, N_TABLES)
    print(f"\ndrift, power: {power}; level: {level}")
    assert abs(power["default"] - power["McNemar"]) <= 0.02
    assert power["default"] > power["random"]
    assert 0.032 <= level["default"] <= 0.07
