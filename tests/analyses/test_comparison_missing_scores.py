"""The range of a difference between two models of which scores are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from performance_matrices import matrix

from analyses.comparison.missing_scores import describe_worst_cases
from tracker.queries.clusters import Clusters

RNG = np.random.default_rng(3)


def described(Q: np.ndarray, names: tuple[str, str] = ("model 0", "model 1"), *, lower: bool = False) -> list[str]:
    bounds = (1.0, 0.0) if lower else (0.0, 1.0)
    scores = replace(matrix(Q), worst=bounds[0], best=bounds[1], higher_is_better=not lower)
    scores = scores.treat_missing("bounds", 0.0)
    clusters = Clusters(field="none", prompt_ids=scores.prompt_ids, names=np.full(len(Q), ""))
    return describe_worst_cases(scores, clusters, names, 0.95)


@pytest.mark.parametrize("lower", [False, True])
def test_the_range_is_that_of_all_completions_and_the_worst_case_is_tested(lower: bool) -> None:
    Q = (RNG.random((200, 3)) < [0.9, 0.4, 0.5]).astype(float)
    Q[:6, 0], Q[190:, 1], Q[:, 2] = np.nan, np.nan, np.nan
    worst, best = np.where(np.isnan(Q[:, 0]), 0, Q[:, 0]), np.where(np.isnan(Q[:, 1]), 1, Q[:, 1])
    least = worst.mean() - best.mean()
    most = np.where(np.isnan(Q[:, 0]), 1, Q[:, 0]).mean() - np.where(np.isnan(Q[:, 1]), 0, Q[:, 1]).mean()
    assert scipy.stats.ttest_rel(worst, best).pvalue < 0.05
    assert described(1 - Q if lower else Q, lower=lower) == [
        f"16 scores are missing. On all 200 prompts the difference is therefore from {least:.4f} to {most:.4f}: "
        "model 0 is significantly better whatever the missing scores are."
    ]
    turned = described(1 - Q if lower else Q, ("model 1", "model 0"), lower=lower)[0]
    assert f"from {-most:.4f} to {-least:.4f}: model 0 is significantly better" in turned


def test_many_missing_scores_can_decide() -> None:
    Q = (RNG.random((60, 2)) < [0.9, 0.4]).astype(float)
    Q[:40, 0] = np.nan
    assert described(Q)[0].endswith("missing scores can decide the comparison.")


def test_without_missing_scores_of_the_two_there_is_nothing_to_report() -> None:
    Q = RNG.random((20, 3))
    Q[:5, 2] = np.nan
    assert described(Q) == []
