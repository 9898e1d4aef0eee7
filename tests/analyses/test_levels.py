"""Level of the tests of two models, of two runs, of single tasks and of near-copies, on tables without a difference.

Every analysis with a p-value names here where its level is measured: `make soak` prints it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from analyses.numerics.comparing.paired_comparison import PairedComparison, compare_models
from analyses.numerics.comparing.run_steps import compare_runs
from analyses.numerics.comparing.task_differences import task_differences
from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.related.error_agreement import LEVEL, compare_errors

N_TABLES = 2000
MEASURED_IN = {
    "comparison": "test_levels.py",
    "drift": "test_drift_power.py",
    "mixed_model": "numerics/mixed/test_mixed_model_calibration.py",
    "prompt_clusters": "test_cluster_calibration.py",
    "prompt_correlation": "test_calibration.py",
    "rank_intervals": "../tracker/statistics/test_rank_coverage.py",
    "semantic_similarity": "test_semantic_calibration.py",
}
TESTS = Path(__file__).parent
EVEN, UNEVEN = [40] * 14, [20, 40, 80, 120, 160, 230, 300, 460]
DESIGNS = {
    "0 and 1, no tasks": ([200], "none"),
    "0 and 1, fixed tasks": ([30] * 9, "fixed"),
    "0 and 1, 14 clusters of 40": (EVEN, "random"),
    "0 and 1, clusters of 20 to 460": (UNEVEN, "random"),
    "skewed, no tasks": ([60], "none"),
    "skewed, fixed tasks": ([12] * 9, "fixed"),
    "skewed, 14 clusters of 40": (EVEN, "random"),
}
VALID = {
    "none": ("pvalue", "naive", "flips", "mcnemar"),
    "fixed": ("pvalue", "stratified", "flips", "mcnemar"),
    "random": ("pvalue", "clustered", "cr2", "clustered.flips"),
}
"""Tests whose assumptions hold under each choice of task effects."""
UPPER_SIDE_ONLY = ("flips", "mcnemar", "clustered.flips")
"""Discrete tests."""


def groups_of(sizes: list[int], kind: str) -> tuple[Grouping, np.ndarray]:
    tasks = np.repeat(np.arange(len(sizes)), sizes)
    names, alone = tasks.astype(str), np.full(len(tasks), "")
    grouping = {"none": group_rows(alone), "fixed": group_rows(alone, names), "random": group_rows(names)}[kind]
    return grouping, tasks


def null_pair(rng: np.random.Generator, tasks: np.ndarray, kind: str, *, binary: bool) -> np.ndarray:
    """Scores of two models whose means over these tasks, or over others like them, are equal; ``(n, 2)``."""
    n, by_task = len(tasks), rng.normal(0, 0.4, (tasks.max() + 1, 2 if kind == "random" else 1))
    level = by_task[tasks] + rng.normal(0, 1, (n, 1))
    if binary:
        return (level + rng.normal(0, 0.7, (n, 2)) > 0).astype(float)
    return level + rng.gamma(2.0, 0.5, (n, 2))


def pvalues_of(pair: PairedComparison) -> dict[str, float]:
    estimates = {"naive": pair.naive, "stratified": pair.stratified, "clustered": pair.clustered, "cr2": pair.uneven}
    values = {name: estimate.pvalue for name, estimate in estimates.items() if estimate is not None}
    if not pair.is_even:
        values.pop("clustered", None)  # the summary uses CR2
    if pair.flips_clustered is not None:
        values["clustered.flips"] = pair.flips_clustered.pvalue
    by_prompt = {"flips": pair.flips.pvalue, "mcnemar": pair.mcnemar}
    return {"pvalue": pair.pvalue, **values, **{name: p for name, p in by_prompt.items() if not np.isnan(p)}}


def levels_of(design: str, n_tables: int) -> dict[str, float]:
    sizes, kind = DESIGNS[design]
    rng, (groups, tasks), low, n_measured = np.random.default_rng(11), groups_of(sizes, kind), Counter(), Counter()
    for seed in range(n_tables):
        Q = null_pair(rng, tasks, kind, binary=design.startswith("0"))
        pair = compare_models(Q[:, 0], Q[:, 1], groups, n_resamples=99, seed=seed)
        for name, pvalue in pvalues_of(pair).items():
            n_measured[name] += 1
            low[name] += pvalue <= 0.05
    assert set(n_measured.values()) == {n_tables}
    return {name: low[name] / n_tables for name in n_measured if name in VALID[kind]}


def test_every_analysis_with_a_pvalue_has_a_measured_level():
    sources = (TESTS.parents[1] / "analyses").glob("*/*.py")
    packages = {path.parent.name for path in sources if "pvalue" in path.read_text(encoding="utf-8")}
    assert packages - {"numerics", "presentation"} == set(MEASURED_IN)
    for file in MEASURED_IN.values():
        assert "soak" in (TESTS / file).read_text(encoding="utf-8"), file


@pytest.mark.soak
@pytest.mark.parametrize("design", DESIGNS)
def test_the_level_of_comparisons(design):
    levels = levels_of(design, N_TABLES)
    print(f"\ncomparison, {design}: " + ", ".join(f"{name} {level:.2%}" for name, level in levels.items()))
    is_discrete = design.startswith("0") and DESIGNS[design][1] != "random"  # the summary is McNemar's test
    for name, level in levels.items():
        assert level <= 0.07, name
        assert level >= 0.032 or name in UPPER_SIDE_ONLY or (name == "pvalue" and is_discrete), name


@pytest.mark.soak
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("kind", ["none", "random"])
def test_the_level_of_drift(kind, binary):
    rng, (groups, tasks), low = np.random.default_rng(12), groups_of(EVEN, kind), 0
    for _ in range(N_TABLES):
        low += compare_runs(null_pair(rng, tasks, kind, binary=binary), [[0, 1]], groups)[0].pvalue <= 0.05
    print(f"\ndrift, task effects {kind}, {'0 and 1' if binary else 'skewed'}: level {low / N_TABLES:.2%}")
    assert 0.032 <= low / N_TABLES <= 0.07


@pytest.mark.soak
@pytest.mark.parametrize("binary", [True, False])
def test_the_family_wise_level_of_single_tasks(binary):
    """McNemar's test is discrete: if one more outcome of each task were rejected, the level would exceed 5 %."""
    rng, (_, tasks), low, one_more = np.random.default_rng(13), groups_of([40] * 9, "fixed"), 0, 0
    for _ in range(N_TABLES):
        Q = null_pair(rng, tasks, "fixed", binary=binary)
        counts = np.array([np.bincount(tasks, sign * (Q[:, 0] - Q[:, 1]) > 0) for sign in (1, -1)])
        fewer, number = counts.min(axis=0), counts.sum(axis=0)
        one_more += bool((2 * binom.cdf(fewer - 1, number, 0.5)[fewer > 0] <= 0.05 / 9).any())
        options = {"is_binary": binary, "level": 0.95}
        rows = task_differences(Q[:, 0], Q[:, 1], Q[:, 0] - Q[:, 1], tasks.astype(str), None, **options)
        low += min(row.holm for row in rows) <= 0.05
    beyond = f", {one_more / N_TABLES:.2%} with one more outcome of each task" if binary else ""
    print(f"\nany of nine tasks, {'0 and 1' if binary else 'skewed'}: level {low / N_TABLES:.2%}{beyond}")
    assert low / N_TABLES <= 0.07
    assert low / N_TABLES >= 0.032 or (binary and one_more / N_TABLES > 0.05)


@pytest.mark.soak
@pytest.mark.parametrize("shape", [(100, 3), (500, 3), (100, 4), (500, 4), (100, 6), (200, 12), (500, 12)])
def test_the_family_wise_level_of_near_copies(shape):
    """Independent models and prompts that differ; a near-copy also needs an excess of a third, which is rare.

    The test is discrete: with one more disagreement, the pairs that are then rejected would exceed 5 %.
    """
    rng, significant, one_more, n_copies = np.random.default_rng(14), 0, 0, 0
    n, k = shape
    for _ in range(N_TABLES):
        odds = rng.normal(0, 1, (1, k)) - rng.normal(0, 1.5, (n, 1))
        errors = compare_errors((rng.random(shape) < 1 / (1 + np.exp(-odds))).astype(float))
        significant += np.nanmin(errors.holm) <= LEVEL
        fewer = replace(errors, disagreements=errors.disagreements - 1)
        one_more += np.nanmin(fewer.holm) <= LEVEL
        n_copies += errors.near_copies.any()
    texts = f"any pair significant {significant / N_TABLES:.2%}, any near-copy {n_copies / N_TABLES:.2%}"
    texts += f"; {one_more / N_TABLES:.2%} if one more disagreement were rejected"
    print(f"\nnear-copies, {n} x {k}: {texts}")
    assert max(significant, n_copies) / N_TABLES <= 0.07
    assert significant / N_TABLES >= 0.032 or one_more / N_TABLES > 0.05
