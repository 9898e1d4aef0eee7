"""Errors of means with imputed scores, held to a regression on dummies and to the effect of single rows."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray

from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals.means import estimate_means
from tracker.statistics.missing_scores import impute, linearize_imputed
from tracker.statistics.paired_differences import estimate_mean

N, K = 60, 5


def draw(seed: int = 0, missing: float = 0.2) -> NDArray[np.float64]:
    """Scores of 0 and 1 with gaps in all columns but one."""
    rng = np.random.default_rng(seed)
    Q = (rng.random((N, K)) < 0.3 + 0.5 * rng.random((N, 1))).astype(float)
    Q[rng.random((N, K)) < missing] = np.nan
    Q[:, 2] = rng.random(N) < 0.5
    return Q


def fill(Q: NDArray[np.float64], *, clipped: bool = False) -> NDArray[np.float64]:
    fitted = np.clip(impute(Q), 0, 1) if clipped else impute(Q)
    return np.where(np.isnan(Q), fitted, Q)


def linearized(Q: NDArray[np.float64], **options: bool) -> NDArray[np.float64]:
    return linearize_imputed(Q, fill(Q, **options), np.ones(Q.shape[1], dtype=np.bool_))


def mean_of_weighted_rows(Q: NDArray[np.float64], counts: NDArray[np.float64], *, clipped: bool) -> NDArray[np.float64]:
    """Means of the imputed table in which each row occurs so many times, by weighted least squares on dummies."""
    p, j = np.nonzero(~np.isnan(Q))
    design = np.hstack([np.eye(N)[p], np.eye(K)[j]])
    root = np.sqrt(counts[p])[:, None]
    effects = np.linalg.lstsq(root * design, root[:, 0] * Q[p, j], rcond=None)[0]
    fitted = effects[:N, None] + effects[N:]
    filled = np.where(np.isnan(Q), np.clip(fitted, 0, 1) if clipped else fitted, Q)
    return np.asarray(counts @ filled / counts.sum())


class TestAgainstReference:
    def test_errors_of_differences_are_those_of_a_regression_on_dummies_clustered_by_row(self) -> None:
        Q = draw()
        p, j = np.nonzero(~np.isnan(Q))
        design = np.hstack([np.eye(N)[p], np.eye(K)[j][:, 1:]])
        fit = sm.OLS(Q[p, j], design).fit(cov_type="cluster", cov_kwds={"groups": p, "use_correction": False})
        columns = linearized(Q)
        for column in range(1, K):
            d = columns[:, column] - columns[:, 0]
            assert d.mean() == pytest.approx(fit.params[N + column - 1], abs=1e-9)
            assert d.std() / np.sqrt(N) == pytest.approx(fit.bse[N + column - 1], rel=1e-6)

    @pytest.mark.parametrize("clipped", [False, True])
    def test_each_row_moves_the_means_by_its_share(self, clipped: bool) -> None:
        Q, step = draw(1), 1e-5
        columns, ones = linearized(Q, clipped=clipped), np.ones(N)
        base = mean_of_weighted_rows(Q, ones, clipped=clipped)
        assert columns.mean(axis=0) == pytest.approx(base)
        for row in (0, 7, 31):
            moved = mean_of_weighted_rows(Q, ones + step * (np.arange(N) == row), clipped=clipped)
            assert (columns[row] - base) / N == pytest.approx((moved - base) / step, abs=1e-6)


class TestLaws:
    def test_complete_columns_stay(self) -> None:
        Q = draw(2)
        assert np.array_equal(linearized(Q)[:, 2], Q[:, 2])
        complete = np.nan_to_num(Q)
        assert linearized(complete) is not None
        assert np.array_equal(linearized(complete), complete)

    def test_intervals_of_values_beyond_the_bounds_are_cut_to_them(self) -> None:
        values = np.column_stack([np.linspace(-0.1, 1.3, 12), np.arange(12) % 2])
        groups = group_rows(np.full(12, ""))
        free, cut = estimate_means(values, groups), estimate_means(values, groups, bounds=(0.0, 1.0))
        assert cut.low[0] == pytest.approx(max(free.low[0], 0.0), rel=1e-12)
        assert cut.high[0] == pytest.approx(min(free.high[0], 1.0), rel=1e-12)
        assert cut.low[1] == estimate_means(values[:, 1:], groups, bounds=(0.0, 1.0)).low[0]


def levels(n_tables: int, missing: float, seed: int = 0) -> tuple[float, float]:
    """Share of tables of two equal models, among six, that differ at 5 %: by errors with the imputation, and without.

    Hard prompts have fewer scores, so that the shared prompts are not a sample of all.
    """
    rng, rejected = np.random.default_rng(seed), np.zeros(2)
    for _ in range(n_tables):
        easy = rng.random((200, 1))
        Q = (rng.random((200, 6)) < 0.2 + 0.6 * easy).astype(float)
        Q[:, :2][rng.random((200, 2)) < 2 * missing * (1 - easy)] = np.nan
        filled = fill(Q, clipped=True)
        for place, table in enumerate((linearize_imputed(Q, filled, np.ones(6, dtype=np.bool_)), filled)):
            rejected[place] += estimate_mean(table[:, 0] - table[:, 1], scale=1.0).pvalue <= 0.05
    return float(rejected[0] / n_tables), float(rejected[1] / n_tables)


def test_the_level_on_few_tables() -> None:
    with_imputation, without = levels(150, 0.3)
    assert 0.005 <= with_imputation <= 0.11
    assert with_imputation <= without


@pytest.mark.soak
@pytest.mark.parametrize("missing", [0.05, 0.3])
def test_the_level_on_2000_tables(missing: float) -> None:
    with_imputation, without = levels(2000, missing)
    print(f"\nimputed scores, {missing:.0%} missing: level {with_imputation:.1%}; without the imputation {without:.1%}")
    assert 0.032 <= with_imputation <= 0.07
