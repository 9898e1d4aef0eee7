"""Intervals of all ranks at once: the finding, and how it is computed from scores and clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.rank_intervals.families import FamilyRanks
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.interval_warnings import explain_unclustered
from tracker.queries.ranking.leaderboard_intervals import find_task_spans
from tracker.recording.finding import Finding, Metric, Undefined
from tracker.statistics.grouping import Grouping
from tracker.statistics.rank_intervals import RankIntervals


@dataclass(frozen=True, kw_only=True)
class SeparableRanks(Finding):
    """Ranks with intervals, and the pairs that differ significantly.

    Attributes:
        models: name of each column.
        n_prompts: prompts that any model was measured on.
        n_clusters: clusters of these prompts; 0 where errors are not clustered.
        cluster: what makes a cluster.
        is_stratified: whether tasks are strata of the errors.
        n_excluded: models without a rank, since too many scores are missing.
        n_missing: missing scores of the ranked models.
        unclustered_reason: why errors are not clustered; '' where they are.
        ranks: everything ranks.
        one_per_family: the ranks with one model per family; None where they were not computed.
        task_spans: by model, the rank intervals on these tasks, and on other tasks like these; empty without two named
            tasks, or if task effects are none.
    """

    models: tuple[str, ...]
    n_prompts: int
    n_clusters: int
    cluster: str
    is_stratified: bool
    n_excluded: int
    n_missing: int
    unclustered_reason: str
    ranks: RankIntervals
    one_per_family: FamilyRanks | None = None
    task_spans: tuple[Mapping[str, tuple[int, int]], Mapping[str, tuple[int, int]]] = ({}, {})

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then pairs, widths and groups."""
        ranks = self.ranks
        width = ranks.rank_high - ranks.rank_low + 1
        grouped = [len(group) for group in ranks.groups]
        drawn: Metric = Undefined("nothing was resampled")
        if not np.isnan(ranks.bootstrap_low).any():
            drawn = float((ranks.bootstrap_high - ranks.bootstrap_low + 1).mean())
        return {
            "n_models": float(len(self.models)),
            "n_excluded": float(self.n_excluded),
            "n_missing": float(self.n_missing),
            "n_prompts": float(self.n_prompts),
            "n_clusters": Undefined(self.unclustered_reason) if self.unclustered_reason else float(self.n_clusters),
            "n_pairs": float(ranks.n_pairs),
            "n_separable_pairs": float(ranks.n_separable_pairs),
            "share_separable": ranks.n_separable_pairs / ranks.n_pairs,
            "n_may_lead": float((ranks.rank_low == 1).sum()),
            "first.holm": ranks.first_holm,
            "n_certain_ranks": float((width == 1).sum()),
            "width.mean": float(width.mean()),
            "width.widest": float(width.max()),
            "width.bootstrap": drawn,
            "n_groups": float(len(grouped)),
            "largest_group": float(max(grouped, default=1)),
            **({} if self.one_per_family is None else self.one_per_family.metrics),
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Matrices of pairs, in the order of the models in ``ranks``."""
        pairs = self.ranks.pairs
        return {
            "difference": pairs.difference,
            "stderr": pairs.stderr_clustered if self.ranks.is_clustered else pairs.stderr,
            "pvalue": self.ranks.pvalues,
            "holm": self.ranks.holm,
            "better": self.ranks.better,
        }


def separable_ranks(
    scores: PerformanceMatrix, clusters: Clusters, groups: Grouping, ranks: RankIntervals
) -> SeparableRanks:
    """The finding.

    Args:
        scores: of the models that are ranked.
        clusters: which prompts depend on each other.
        groups: the clusters of these prompts.
        ranks: as computed.
    """
    return SeparableRanks(
        models=scores.models,
        n_prompts=scores.n_prompts,
        n_clusters=groups.n_groups if ranks.is_clustered else 0,
        cluster=clusters.field,
        is_stratified=ranks.is_clustered and groups.n_strata > 1,
        n_excluded=len(scores.excluded),
        n_missing=int(np.isnan(scores.Q).sum()),
        unclustered_reason=explain_unclustered(groups, clusters.field),
        ranks=ranks,
        task_spans=find_task_spans(scores, clusters, ranks),
    )
