"""Coverage of the effects of models, and the level of the tests of covariates, on simulated tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from mixed_tables import draw_table
from threadpoolctl import threadpool_limits

from analyses.mixed_model.covariates import FAMILY, FEW_SHOT, LENGTH, CodedCovariates, check_covariates
from analyses.numerics.mixed.design import build_design
from analyses.numerics.mixed.effects import adjust_pairs, difference_pvalues, effects_on_tasks
from analyses.numerics.mixed.gaussian import fit_gaussian
from analyses.numerics.mixed.laplace import fit_logistic
from tracker.statistics.grouping import group_rows
from tracker.statistics.rank_intervals import rank_spans

N_TABLES = 2000


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in the analysis: more threads of BLAS slow small matrices down."""
    with threadpool_limits(1, user_api="blas"):
        yield


class CoverageCounts:
    """Shares of intervals that hold the truth, over simulated tables."""

    def __init__(self) -> None:
        self.effects: dict[str, list[float]] = {"these": [], "other": []}
        self.ranks: dict[str, list[bool]] = {"these": [], "other": []}

    def add(self, place: str, result, truth: np.ndarray) -> None:
        truth = truth - truth.mean()
        low, high = result.intervals(0.95)
        self.effects[place].append(float(((low <= truth) & (truth <= high)).mean()))
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


SPREADS = {
    ".4 for all": np.full(8, 0.4),
    ".8 for two, .1 for six": np.array([0.8, 0.8, *[0.1] * 6]),
    "1 for one, .1 for seven": np.array([1.0, *[0.1] * 7]),
}
"""Standard deviation of model × task of each model."""


@pytest.mark.soak
@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize(
    ("shape", "missing", "binary"),
    [((140, 8, 14), 0.0, False), ((60, 8, 6), 0.1, False), ((60, 8, 4), 0.1, False), ((280, 8, 14), 0.0, True)],
)
def test_ranks_on_other_tasks_hold_whatever_the_spread_of_each_model_over_tasks(shape, missing, binary, name):
    """Eight models in pairs of equal ones: a wrong rank interval is one that a false difference has shortened."""
    n_tables, model, deviation = 600, np.repeat(np.arange(4.0), 2), SPREADS[name]
    true_low, true_high = 1 + (model > model[:, None]).sum(axis=1), 8 - (model < model[:, None]).sum(axis=1)
    wrong, on_leaderboard, hold, width = [], [], [], np.zeros(2)
    with_one_variance, is_worse = [], model[:, None] <= model
    for seed in range(n_tables):
        table = draw_table(seed, shape, (0.0, 0.4, deviation, 0.8, 1.0), missing=missing, binary=binary, model=model)
        fit = (fit_logistic if binary else fit_gaussian)(build_design(table.Q, table.tasks))
        result = effects_on_tasks(fit, None, higher_is_better=True, level=0.95)
        wrong.append(bool(((result.rank_low > true_low) | (result.rank_high < true_high)).any()))
        width += (result.rank_high - result.rank_low + 1).mean() / n_tables, 0
        holm = adjust_pairs(difference_pvalues(result.effect, result.cov, fit.error_degrees))
        with_one_variance.append(bool(((holm <= 0.05) & is_worse & (result.effect[:, None] > result.effect)).any()))
        low, high = result.intervals(0.95)
        hold.append((low <= model - model.mean()) & (model - model.mean() <= high))
        if not missing:
            low, high = rank_spans(table.Q, group_rows(table.tasks.astype(str)))
            on_leaderboard.append(bool(((low > true_low) | (high < true_high)).any()))
            width[1] += (high - low + 1).mean() / n_tables
    n, k, n_tasks = shape
    beside = f"; leaderboard {np.mean(on_leaderboard):.1%} ({width[1]:.1f})" if on_leaderboard else ""
    print(
        f"\n{'logistic' if binary else 'gaussian'} {n} x {k}, {n_tasks} tasks, {name}: tables with a wrong rank "
        f"{np.mean(wrong):.1%} (mean width {width[0]:.1f}){beside}; with one variance for all models "
        f"{np.mean(with_one_variance):.1%}; coverage of effects {np.mean(hold):.1%}, "
        f"of the first model's {np.mean(hold, axis=0)[0]:.1%}"
    )
    assert np.mean(wrong) <= 0.055


def level_of_tests(
    shape: tuple[int, int, int], n_tables: int, *, binary: bool, has_families: bool, is_constant: bool = False
) -> dict[str, float]:
    """Share of tables without an effect of any covariate in which its p-value is at most 0.05.

    Args:
        shape: prompts, models, tasks.
        n_tables: tables.
        binary: whether scores are 0 and 1.
        has_families: whether models come in families of two.
        is_constant: whether few-shot examples are the same within a family.
    """
    n, k, _ = shape
    rng, fit, rejected = np.random.default_rng(0), fit_logistic if binary else fit_gaussian, Counter()
    coded = CodedCovariates(
        few_shot=np.zeros(k),
        length=np.zeros(n),
        families=np.arange(k) // 2 if has_families else None,
        family_names=("",) * ((k + 1) // 2) if has_families else (),
        spreads={FEW_SHOT: 1.0, LENGTH: 1.0},
        excluded={},
    )
    for seed in range(n_tables):
        table = draw_table(seed, shape, (0.6, 0.4, 0.3, 0.8, 1.0), missing=0.1, binary=binary)
        few_shot = rng.normal(size=(k, 1))[np.arange(k) // 2 if is_constant else np.arange(k)]
        covariates = {"model_covariates": few_shot, "prompt_covariates": rng.normal(size=(n, 1))}
        design, without = build_design(table.Q, table.tasks, families=coded.families, **covariates), None
        if has_families:
            active = tuple(name for name in design.active if name != "family")
            without = fit(replace(design, active=active)).log_likelihood
        for test in check_covariates(fit(design), coded, without):
            rejected[test.name] += test.pvalue <= 0.05
    return {name: rejected[name] / n_tables for name in (FEW_SHOT, LENGTH, FAMILY)[: 2 + has_families]}


@pytest.mark.soak
@pytest.mark.parametrize("has_families", [True, False])
@pytest.mark.parametrize(("binary", "k"), [(False, 6), (False, 10), (False, 20), (True, 6), (True, 10), (True, 20)])
def test_the_level_of_tests_of_covariates(binary, k, has_families):
    """The likelihood ratio of a variance has mass 1/2 or more at 0, so its level has an upper side only."""
    levels = level_of_tests((60 if binary else 40, k, 4), N_TABLES, binary=binary, has_families=has_families)
    name, families = "logistic" if binary else "gaussian", "in families of two" if has_families else "alone"
    texts = ", ".join(f"{covariate} {level:.2%}" for covariate, level in levels.items())
    print(f"\n{name}, {k} models {families}: level of the tests at 5 % on {N_TABLES:,} null tables: {texts}")
    assert max(levels.values()) <= 0.07
    assert min(levels[FEW_SHOT], levels[LENGTH]) >= 0.032


@pytest.mark.soak
def test_the_level_where_models_of_a_family_have_equally_many_examples():
    levels = level_of_tests((40, 6, 4), N_TABLES, binary=False, has_families=True, is_constant=True)
    print(f"\ngaussian, 6 models, examples constant in families of two: few_shot {levels[FEW_SHOT]:.2%}")
    assert 0.032 <= levels[FEW_SHOT] <= 0.07
