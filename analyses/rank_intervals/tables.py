"""Ranks with their intervals, and every pair of models, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from analyses.presentation.table_columns import number_column
from tracker.recording.finding import RankedModels
from tracker.statistics.rank_intervals import RankIntervals


def list_rankings(ranks: RankIntervals, models: Sequence[str]) -> RankedModels:
    """The models with their means, ranks and both intervals."""
    return RankedModels(
        models=tuple(models),
        score=ranks.mean,
        rank=ranks.rank,
        low=ranks.low,
        high=ranks.high,
        rank_low=ranks.rank_low.astype(np.float64),
        rank_high=ranks.rank_high.astype(np.float64),
    )


def list_by_model(ranks: RankIntervals, models: Sequence[str]) -> pa.Table:
    """One row for each model, the best first."""
    order = np.argsort(ranks.rank, kind="stable")
    columns = ("mean", "low", "high", "rank")
    return pa.table(
        {"model": pa.array([models[column] for column in order], pa.string())}
        | {name: number_column(getattr(ranks, name)[order]) for name in columns}
        | {
            "rank_low": ranks.rank_low[order],
            "rank_high": ranks.rank_high[order],
            "bootstrap_low": number_column(ranks.bootstrap_low[order]),
            "bootstrap_high": number_column(ranks.bootstrap_high[order]),
            "n_better": (ranks.rank_low - 1)[order],
            "n_worse": (len(models) - ranks.rank_high)[order],
        }
    )


def list_by_pair(ranks: RankIntervals, models: Sequence[str]) -> pa.Table:
    """One row for every two models, the one with the better mean first; McNemar where scores are 0 and 1."""
    order = np.argsort(ranks.rank, kind="stable")
    i, j = np.triu_indices(len(order), 1)
    i, j = order[i], order[j]
    pairs, mcnemar = ranks.pairs, ranks.pairs.pvalues_mcnemar
    columns = {
        "model": pa.array([models[column] for column in i.tolist()], pa.string()),
        "other": pa.array([models[column] for column in j.tolist()], pa.string()),
        "n": pairs.n[i, j],
        "difference": number_column(pairs.difference[i, j]),
        "stderr": number_column(pairs.stderr[i, j]),
        "stderr_clustered": number_column(pairs.stderr_clustered[i, j]),
        "pvalue": number_column(ranks.pvalues[i, j]),
        "holm": number_column(ranks.holm[i, j]),
        "separable": ranks.better[i, j] | ranks.better[j, i],
    }
    if mcnemar is not None and pairs.only_first is not None and pairs.only_second is not None:
        columns |= {
            "n_only_model": pairs.only_first[i, j],
            "n_only_other": pairs.only_second[i, j],
            "mcnemar_pvalue": number_column(mcnemar[i, j]),
        }
    return pa.table(columns)


def list_by_group(ranks: RankIntervals, models: Sequence[str]) -> pa.Table:
    """List each model of each group without a significant difference; a model may be in several."""
    rows = [
        (number, place, column) for number, group in enumerate(ranks.groups, 1) for place, column in enumerate(group, 1)
    ]
    return pa.table(
        {
            "group": pa.array([number for number, _, _ in rows], pa.int64()),
            "model": pa.array([models[column] for _, _, column in rows], pa.string()),
            "rank": pa.array([float(ranks.rank[column]) for _, _, column in rows], pa.float64()),
        }
    )
