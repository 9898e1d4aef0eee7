"""Which ranks can be told apart?

A leaderboard gives every model a rank, whether or not the prompts suffice for it. Here every two models are compared
on the same prompts, with errors that know of clusters; from the pairs that remain apart after Holm's correction follow
intervals that hold all ranks at once, and groups of models that cannot be told apart.

Source: Mogstad et al. 2024, section 3; Miller 2024; every number is defined in docs/statistics/rank-intervals.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import validate
from analyses.rank_intervals import figures, tables
from analyses.rank_intervals import summary as wording
from tracker.queries.clusters import Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.interval_warnings import unclustered_reason
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, analysis
from tracker.statistics.grouping import group_rows
from tracker.statistics.rank_intervals import RankIntervals, rank_intervals

SCHEME = "rank-intervals"


@dataclass(frozen=True, kw_only=True)
class SeparableRanks(Finding):
    """What can be said of ranks.

    Attributes:
        models: name of each column.
        n_prompts: every model was measured on all of them.
        n_clusters: clusters of these prompts; 0 where errors are not clustered.
        cluster: what makes a cluster.
        n_left_out: models without a rank, since scores are missing.
        unclustered: why errors are not clustered; '' where they are.
        ranks: everything found.
    """

    models: tuple[str, ...]
    n_prompts: int
    n_clusters: int
    cluster: str
    n_left_out: int
    unclustered_reason: str
    ranks: RankIntervals

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then pairs, widths and groups."""
        found = self.ranks
        width = found.rank_high - found.rank_low + 1
        grouped = [len(group) for group in found.groups]
        drawn: Metric = Undefined("nothing was resampled")
        if not np.isnan(found.bootstrap_low).any():
            drawn = float((found.bootstrap_high - found.bootstrap_low + 1).mean())
        return {
            "n_models": float(len(self.models)),
            "n_left_out": float(self.n_left_out),
            "n_prompts": float(self.n_prompts),
            "n_clusters": Undefined(self.unclustered_reason) if self.unclustered_reason else float(self.n_clusters),
            "n_pairs": float(found.n_pairs),
            "n_separable_pairs": float(found.n_separable_pairs),
            "share_separable": found.n_separable_pairs / found.n_pairs,
            "n_may_lead": float((found.rank_low == 1).sum()),
            "n_certain_ranks": float((width == 1).sum()),
            "width.mean": float(width.mean()),
            "width.widest": float(width.max()),
            "width.bootstrap": drawn,
            "n_groups": float(len(grouped)),
            "largest_group": float(max(grouped, default=1)),
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Matrices of pairs, in the order of the models in ``rankings``."""
        pairs = self.ranks.pairs
        return {
            "difference": pairs.difference,
            "stderr": pairs.stderr_clustered if self.ranks.is_clustered else pairs.stderr,
            "pvalue": self.ranks.pvalues,
            "holm": self.ranks.holm,
            "better": self.ranks.better,
        }

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(self.ranks, self.models, self.cluster, self.n_left_out)


@analysis
def analyze(
    scores: PerformanceMatrix,
    clusters: Clusters,
    *,
    level: Annotated[float, "with which all intervals of ranks hold at once, and each bootstrap interval"] = 0.95,
    n_resamples: Annotated[
        int, "resamples of the prompts, or of whole clusters, for bootstrap ranks; 0 for none"
    ] = 2000,
    seed: Annotated[int, "of the resamples"] = 0,
) -> Report:
    """Tell the ranks of models apart.

    Args:
        scores: models that lack a score for any prompt are left out, with a note; at least 2 must be left.
        clusters: which prompts depend on each other.
        level: of the intervals.
        n_resamples: for bootstrap ranks.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: fewer than two models are complete, scores are infinite, or an option is out of range.
    """
    complete = np.asarray(~np.isnan(scores.Q).any(axis=0))
    left_out = [name for name, there in zip(scores.models, complete.tolist(), strict=True) if not there]
    kept = replace(
        scores,
        Q=np.ascontiguousarray(scores.Q[:, complete]),
        models=tuple(name for name, there in zip(scores.models, complete.tolist(), strict=True) if there),
        run_ids=scores.run_ids[complete],
    )
    validate(wording.problems(kept.Q, len(left_out), n_resamples=n_resamples, level=level, seed=seed))
    groups = group_rows(clusters.align(kept.prompt_ids))
    ranks = rank_intervals(
        kept.Q,
        groups,
        higher_is_better=kept.higher_is_better,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
    )
    found = SeparableRanks(
        models=kept.models,
        n_prompts=kept.n_prompts,
        n_clusters=groups.n_groups if ranks.is_clustered else 0,
        cluster=clusters.field,
        n_left_out=len(left_out),
        unclustered_reason=unclustered_reason(groups, clusters.field),
        ranks=ranks,
    )
    return Report(
        found,
        rankings={
            SCHEME: RankedModels(
                models=kept.models,
                score=ranks.mean,
                rank=ranks.rank,
                low=ranks.low,
                high=ranks.high,
                rank_low=ranks.rank_low.astype(np.float64),
                rank_high=ranks.rank_high.astype(np.float64),
            )
        },
        tables={
            "models": tables.by_model(ranks, kept.models),
            "pairs": tables.by_pair(ranks, kept.models),
            "groups": tables.by_group(ranks, kept.models),
        },
        figures={
            "ranks": partial(figures.ranks, ranks, kept.models),
            "separable": partial(figures.separable, ranks, kept.models),
        },
        warnings=wording.warnings(ranks, kept.models, groups, clusters.field, left_out=left_out),
    )
