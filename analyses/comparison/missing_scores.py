"""The difference of two models if every missing score is set for or against the first."""

from __future__ import annotations

import numpy as np

from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.statistics.grouping import group_rows
from tracker.statistics.pairwise_differences import compare_worst_cases


def describe_worst_cases(
    scores: PerformanceMatrix, clusters: Clusters, models: tuple[str, str], level: float
) -> list[str]:
    """Return a warning about the range of the difference, if a score of the two is missing and can have any value.

    Args:
        scores: of all models.
        clusters: of the prompts.
        models: names of the two.
        level: confidence level of the tests.
    """
    pair = scores.Q[:, [scores.models.index(name) for name in models]]
    is_measured = ~np.isnan(pair)
    rows = np.asarray(is_measured.any(axis=1))
    if scores.bounds is None or is_measured[rows].all():
        return []
    groups = group_rows(clusters.align(scores.prompt_ids[rows]))
    worst, best = scores.bounds
    pairs = compare_worst_cases(pair[rows], None if groups.problem else groups, "CR2", worst=worst, best=best)
    sign = 1.0 if scores.higher_is_better else -1.0
    least, most = sign * float(pairs.difference[0, 1]), -sign * float(pairs.difference[1, 0])
    pvalues = pairs.pvalues if groups.problem else pairs.pvalues_clustered
    verdict = "missing scores can decide the comparison"
    for name, is_better, pvalue in ((models[0], least > 0, pvalues[0, 1]), (models[1], most < 0, pvalues[1, 0])):
        if is_better and pvalue <= 1 - level:
            verdict = f"{name} is significantly better whatever the missing scores are"
    n_missing = int((~is_measured[rows]).sum())
    return [
        f"{n_missing:,} scores are missing. On all {int(rows.sum()):,} prompts the difference is therefore from "
        f"{least:.4f} to {most:.4f}: {verdict}."
    ]
