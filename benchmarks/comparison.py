"""All pairs of models compared at once, beside loops over pairs through NumPy and statsmodels.

For every two models, all compute the exact McNemar test, standard errors clustered by task with their p-values, and
Holm's correction of both. The stronger peer sums each pair's differences by cluster with `np.bincount` and calls SciPy
for the tests. The loop through statsmodels runs on the first pairs and its time is scaled; the note gives their number.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from analyses.numerics.comparing.bootstrap import bca_interval, jackknife_means, resampled_means
from benchmarks._costs import seconds
from benchmarks._tables import binary_table, continuous_table
from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.multiple_testing import holm_values
from tracker.statistics.pairwise_differences import compare_all_pairs
from tracker.statistics.rank_intervals import rank_intervals

SIZES = (1351, 1299, 1132, 1101, 969, 924, 844, 818, 798, 789, 717, 499, 410, 381)
"""Prompts of MMLU-Pro's categories."""
MAX_PAIRS = 60
"""Pairs that the loop goes through."""


def _clusters() -> Grouping:
    return group_rows(np.repeat([f"{place:02}" for place in range(len(SIZES))], SIZES))


def _compare(Q: np.ndarray, groups: Grouping) -> tuple[np.ndarray, ...]:
    result = compare_all_pairs(Q, groups)
    i, j = np.triu_indices(Q.shape[1], 1)
    mcnemar = result.pvalues_mcnemar
    assert mcnemar is not None
    tests = mcnemar[i, j], result.pvalues_clustered[i, j]
    return result.stderr_clustered[i, j], *tests, *map(holm_values, tests)


def _loop(Q: np.ndarray, codes: np.ndarray, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, ...]:
    import statsmodels.api as sm
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

    errors, exact, clustered = [], [], []
    for i, j in pairs:
        both = ~np.isnan(Q[:, i] - Q[:, j])
        d = (Q[:, i] - Q[:, j])[both]
        table = [[0, int((d > 0).sum())], [int((d < 0).sum()), 0]]
        exact.append(float(mcnemar(table, exact=True).pvalue))
        fit = sm.OLS(d, np.ones(len(d))).fit(cov_type="cluster", cov_kwds={"groups": codes[both]}, use_t=True)
        errors.append(float(fit.bse[0]))
        clustered.append(float(fit.pvalues[0]))
    holm = [multipletests(p, method="holm")[1] for p in (exact, clustered)]
    return np.array(errors), np.array(exact), np.array(clustered), *holm


def _by_numpy(Q: np.ndarray, codes: np.ndarray, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, ...]:
    from scipy import stats

    errors, exact, clustered = [], [], []
    for i, j in pairs:
        d = Q[:, i] - Q[:, j]
        both = ~np.isnan(d)
        d, members = d[both], codes[both]
        wins, losses = int((d > 0).sum()), int((d < 0).sum())
        exact.append(min(1.0, 2 * stats.binom.cdf(min(wins, losses), wins + losses, 0.5)) if wins + losses else 1.0)
        sums = np.bincount(members, d - d.mean())
        n, n_clusters = len(d), np.unique(members).size
        error = np.sqrt((sums**2).sum() * n_clusters / (n_clusters - 1)) / n
        errors.append(error)
        clustered.append(2 * stats.t.sf(abs(d.mean() / error), n_clusters - 1))
    tests = np.array(exact), np.array(clustered)
    return np.array(errors), *tests, *map(holm_values, tests)


def _pairs(Q: np.ndarray, groups: Grouping, name: str) -> Iterator[dict[str, Any]]:
    every = list(itertools.combinations(range(Q.shape[1]), 2))
    first = every[:MAX_PAIRS]
    results = _compare(Q, groups)
    expected_results = _loop(Q, groups.codes, first)
    for result, expected in zip(results[:3], expected_results[:3], strict=True):
        assert np.allclose(result[: len(first)], expected, rtol=0, atol=1e-10)
    own_seconds = seconds(lambda: _compare(Q, groups), 5)
    peer = seconds(lambda: _loop(Q, groups.codes, first)) * len(every) / len(first)
    subject = f"McNemar, clustered errors and Holm of {len(every):,} pairs, {name}"
    for result, expected in zip(results, _by_numpy(Q, groups.codes, every), strict=True):
        assert np.allclose(result, expected, rtol=0, atol=1e-10)
    by_numpy = seconds(lambda: _by_numpy(Q, groups.codes, every), 2)
    yield {
        "name": f"{subject}, beside a loop through NumPy",
        "ours_s": round(own_seconds, 4),
        "peer_s": round(by_numpy, 3),
        "ratio": round(by_numpy / own_seconds, 1),
        "note": "numbers agree to 1e-10",
    }
    yield {
        "name": f"{subject}, beside statsmodels",
        "ours_s": round(own_seconds, 4),
        "peer_s": round(peer, 2),
        "ratio": round(peer / own_seconds, 1),
        "note": f"the peer's seconds are of {len(first)} pairs scaled; numbers agree to 1e-10",
    }


def measurements() -> Iterator[dict[str, Any]]:
    """One line for each table."""
    groups, rng = _clusters(), np.random.default_rng(0)
    Q = binary_table(len(groups.codes), 29)
    yield from _pairs(Q, groups, f"{len(Q):,} × 29, as large as MMLU-Pro")
    gaps = np.where(rng.random(Q.shape) < 0.02, np.nan, Q)
    yield from _pairs(gaps, groups, f"{len(Q):,} × 29 with gaps")
    yield {
        "name": f"rank intervals, {len(Q):,} × 29, 2,000 resamples of clusters",
        "ours_s": round(seconds(lambda: rank_intervals(Q, groups), 3), 4),
    }
    alone = group_rows(np.full(len(Q), ""))
    yield {
        "name": f"rank intervals, {len(Q):,} × 29, 2,000 resamples of prompts",
        "ours_s": round(seconds(lambda: rank_intervals(Q, alone), 1), 3),
    }
    yield _bca(continuous_table(2000, 2))


def _bca(Q: np.ndarray) -> dict[str, Any]:
    import scipy.stats

    d, ones = Q[:, 0] - Q[:, 1], np.ones(len(Q))

    def run() -> tuple[float, float]:
        drawn = resampled_means(d, ones, n_resamples=9999, seed=0)
        return bca_interval(drawn, float(d.mean()), jackknife_means(d, ones))

    def peer() -> Any:
        return scipy.stats.bootstrap((d,), np.mean, method="BCa", n_resamples=9999, batch=500, rng=0)

    width = np.diff(run()).item()
    assert np.allclose(run(), tuple(peer().confidence_interval), atol=0.05 * width)
    own_seconds, peer_seconds = seconds(run, 3), seconds(peer)
    return {
        "name": f"BCa interval of a mean of {len(d):,} differences, 9,999 resamples",
        "ours_s": round(own_seconds, 3),
        "peer_s": round(peer_seconds, 3),
        "ratio": round(peer_seconds / own_seconds, 1),
        "note": "the peer is scipy.stats.bootstrap",
    }


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
