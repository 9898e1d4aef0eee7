"""Coverage of the effects of models, and the level of the tests of covariates, on simulated tables."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_tables import draw_table
from scipy.special import stdtr
from scipy.stats import norm

from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.effects import effects_on_tasks
from analyses.numerics.mixed.gaussian import fit_gaussian
from analyses.numerics.mixed.laplace import fit_logistic


class CoverageCounts:
    """Shares of intervals that hold the truth, over simulated tables."""

    def __init__(self) -> None:
        self.effects: dict[str, list[float]] = {"these": [], "other": []}
        self.ranks: dict[str, list[bool]] = {"these": [], "other": []}

    def add(self, place: str, result, truth: np.ndarray) -> None:
        truth = truth - truth.mean()
        reach = norm.ppf(0.975) * result.stderr
        self.effects[place].append(float((np.abs(truth - result.effect) <= reach).mean()))
        rank = 1 + (truth[:, None] < truth).sum(axis=1)
        self.ranks[place].append(bool(((result.rank_low <= rank) & (rank <= result.rank_high)).all()))


@pytest.mark.soak
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("shape", [(120, 10, 6), (60, 5, 4), (300, 20, 14)])
def test_intervals_of_effects_hold_on_500_tables(shape, binary):
    n, k, n_tasks = shape
    coverage = CoverageCounts()
    for seed in range(500):
        table = draw_table(seed, shape, (0.5, 0.5, 0.3, 1.0, 1.0), missing=0.1, binary=binary)
        fit = (fit_logistic if binary else fit_gaussian)(build_design(table.Q, table.tasks))
        weights = np.bincount(table.tasks) / n
        for place, part, truth in (("these", weights, weights @ table.level), ("other", None, table.model)):
            coverage.add(place, effects_on_tasks(fit, part, higher_is_better=True, level=0.95), truth)
    figures = {
        place: (round(float(np.mean(coverage.effects[place])), 4), round(float(np.mean(coverage.ranks[place])), 3))
        for place in ("these", "other")
    }
    name = "logistic" if binary else "gaussian"
    print(f"\n{name} {n} x {k}, {n_tasks} tasks: coverage of effects, and of all ranks together: {figures}")
    for effects, ranks in figures.values():
        assert effects >= 0.92
        assert ranks >= 0.945


@pytest.mark.soak
def test_the_level_of_the_test_of_few_shot_examples():
    rng = np.random.default_rng(0)
    rejected = {"few-shot": 0, "length": 0}
    for seed in range(2000):
        table = draw_table(seed, (40, 10, 4), (0.6, 0.4, 0.3, 0.8, 1.0), missing=0.1)
        design = build_design(
            table.Q,
            table.tasks,
            model_covariates=rng.normal(size=(10, 1)),
            prompt_covariates=rng.normal(size=(40, 1)),
        )
        fit = fit_gaussian(design)
        t = np.abs(fit.fixed[1:]) / fit.fixed_error[1:]
        pvalues = 2 * stdtr(np.maximum(fit.fixed_degrees[1:], 1), -t)
        for name, pvalue in zip(rejected, pvalues, strict=True):
            rejected[name] += pvalue <= 0.05
    levels = {name: count / 2000 for name, count in rejected.items()}
    print(f"\nlevel of Wald tests at 5 % on 2,000 null tables: {levels}")
    for level in levels.values():
        assert 0.032 <= level <= 0.07
