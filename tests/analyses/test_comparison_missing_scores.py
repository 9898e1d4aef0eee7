"""The comparison of two models of which scores are missing: its verdict holds whatever they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.stats
from performance_matrices import matrix

from analyses.comparison.method import ModelComparison, compare_pair
from analyses.comparison.shared_scores import select_shared
from analyses.comparison.summary import collect_warnings, summarize
from tracker.queries.clusters import Clusters

RNG = np.random.default_rng(3)


def compared(
    Q: np.ndarray, names: tuple[str, str] = ("model 0", "model 1"), *, lower: bool = False, margin: float | None = None
) -> ModelComparison:
    bounds = (1.0, 0.0) if lower else (0.0, 1.0)
    scores = replace(matrix(Q), worst=bounds[0], best=bounds[1], higher_is_better=not lower)
    scores = scores.treat_missing("bounds", 0.0)
    clusters = Clusters(field="none", prompt_ids=scores.prompt_ids, names=np.full(len(Q), ""))
    shared = select_shared(scores, clusters, names)
    return compare_pair(shared, n_resamples=50, level=0.95, seed=0, margin=margin)


@pytest.mark.parametrize("lower", [False, True])
def test_the_range_is_that_of_all_completions_and_the_worst_case_is_tested(lower: bool) -> None:
    Q = (RNG.random((200, 3)) < [0.9, 0.4, 0.5]).astype(float)
    Q[:6, 0], Q[190:, 1], Q[:, 2] = np.nan, np.nan, np.nan
    worst, best = np.where(np.isnan(Q[:, 0]), 0, Q[:, 0]), np.where(np.isnan(Q[:, 1]), 1, Q[:, 1])
    least = worst.mean() - best.mean()
    most = np.where(np.isnan(Q[:, 0]), 1, Q[:, 0]).mean() - np.where(np.isnan(Q[:, 1]), 0, Q[:, 1]).mean()
    finding = compared(1 - Q if lower else Q, lower=lower)
    metrics = finding.metrics
    assert (metrics["all.n_prompts"], metrics["all.n_missing"]) == (200, 16)
    assert (metrics["all.least"], metrics["all.most"]) == pytest.approx((least, most))
    wins, losses = int((worst > best).sum()), int((worst < best).sum())
    assert finding.pvalue == pytest.approx(scipy.stats.binomtest(wins, wins + losses).pvalue)
    assert metrics["shared.pvalue"] == finding.comparison.pvalue < finding.pvalue < 0.05
    assert finding.interval[0] < least < finding.comparison.best.mean < most < finding.interval[1]
    assert "model 0 is better than model 1" in summarize(finding).headline
    assert "also with missing scores at their bounds" in summarize(finding).headline
    test = next(text for text in summarize(finding).evidence if text.startswith("Test: "))
    assert "exact McNemar. " in test
    assert (
        f"against the model ahead, which has the larger p; on the shared prompts p = {finding.comparison.pvalue:.2g}."
        in test
    )
    assert (
        summarize(finding)
        .caveats[0]
        .startswith(
            "16 scores are missing. On all 200 prompts the advantage of model 0 over model 1 is therefore from "
            f"{least:.4f} to {most:.4f}"
        )
    )
    assert not any("excluded" in text for text in collect_warnings(finding, higher_is_better=not lower, metric="m"))
    turned = compared(1 - Q if lower else Q, ("model 1", "model 0"), lower=lower)
    assert turned.pvalue == finding.pvalue
    assert turned.interval == pytest.approx((-finding.interval[1], -finding.interval[0]))


def test_a_significant_verdict_holds_in_every_completion() -> None:
    significant = 0
    for share in (0.62, 0.75, 0.85, 0.95):
        Q = (RNG.random((40, 2)) < [share, 0.35]).astype(float)
        Q[:2, 0], Q[38:, 1] = np.nan, np.nan
        finding = compared(Q, margin=0.9)
        missing = np.isnan(Q)
        for values in product((0.0, 1.0), repeat=int(missing.sum())):
            whole = Q.copy()
            whole[missing] = values
            completed = compared(whole, margin=0.9)
            assert completed.completions is None
            assert finding.interval[0] <= completed.interval[0] + 1e-9
            assert finding.interval[1] >= completed.interval[1] - 1e-9
            assert finding.pvalue >= completed.pvalue - 1e-9 or finding.pvalue > 0.05
            assert finding.equivalence.pvalue >= completed.equivalence.pvalue - 1e-9
        significant += finding.pvalue <= 0.05
    assert 0 < significant < 4


def test_many_missing_scores_leave_the_verdict_open() -> None:
    Q = (RNG.random((60, 2)) < [0.9, 0.4]).astype(float)
    Q[:25, 0] = np.nan
    finding = compared(Q)
    assert finding.comparison.pvalue < 0.05 < finding.pvalue
    assert summarize(finding).headline.startswith("Undecided, because scores are missing: model 0 is better than")


def test_without_missing_scores_of_the_two_there_is_one_comparison() -> None:
    Q = RNG.random((20, 3))
    Q[:5, 2] = np.nan
    finding = compared(Q)
    assert finding.completions is None
    assert not [name for name in finding.metrics if name.startswith("all.")]
