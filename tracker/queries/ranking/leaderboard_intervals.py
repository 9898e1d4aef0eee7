"""Compute rank intervals of a leaderboard, and groups of models that are not significantly different."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracker.queries.clusters import TASK, Clusters
from tracker.queries.ranking.interval_warnings import list_rank_interval_warnings
from tracker.queries.ranking.leaderboard_result import Leaderboard, RankInterval
from tracker.statistics.grouping import group_rows
from tracker.statistics.rank_intervals import rank_intervals

MAX_TESTED_MODELS = 2000
"""Models whose pairs are tested: twenty matrices of all pairs take about 600 MB."""


def explain_too_many(n_models: int) -> str:
    """Return why the pairs of so many models are not tested."""
    return (
        f"{n_models:,} models have {n_models * (n_models - 1) // 2:,} pairs, and at most {MAX_TESTED_MODELS:,} models "
        "are tested. Select fewer with --models."
    )


def add_rank_intervals(board: Leaderboard, clusters: Clusters | None, *, n_resamples: int, seed: int) -> Leaderboard:
    """Return the leaderboard with rank intervals and groups of the ranked models, or with the reason for none.

    Args:
        board: means, errors and ranks.
        clusters: clusters of the prompts; None for their tasks.
        n_resamples: number of resamples of prompts, or of whole clusters, for bootstrap ranks; 0 for none.
        seed: seed of the resamples.
    """
    if reason := _unavailable(board):
        return replace(board, no_rank_intervals=reason)
    assert board.scores is not None
    scores = board.scores
    if np.isinf(scores.Q).any():
        return replace(board, no_rank_intervals="some scores are infinite")
    groups = group_rows(scores.tasks if clusters is None else clusters.align(scores.prompt_ids))
    by = TASK if clusters is None else clusters.field
    ranks = rank_intervals(
        scores.Q,
        groups,
        bounds=scores.bounds,
        higher_is_better=scores.higher_is_better,
        n_resamples=n_resamples,
        seed=seed,
    )
    ends = zip(ranks.rank_low, ranks.rank_high, ranks.bootstrap_low, ranks.bootstrap_high, strict=True)
    return replace(
        board,
        rank_intervals={
            model: RankInterval(
                low=float(low),
                high=float(high),
                bootstrap_low=None if np.isnan(drawn_low) else float(drawn_low),
                bootstrap_high=None if np.isnan(drawn_high) else float(drawn_high),
            )
            for model, (low, high, drawn_low, drawn_high) in zip(scores.models, ends, strict=True)
        },
        groups=tuple(tuple(scores.models[column] for column in group) for group in ranks.groups),
        rank_interval_warnings=tuple(list_rank_interval_warnings(ranks, scores.models, groups, by)),
    )


def _unavailable(board: Leaderboard) -> str:
    """Return why there are no rank intervals; '' if there are."""
    if board.scores is None:
        return "scores are of whole tasks"
    if board.weights:
        return "prompts are weighted"
    if board.missing == "impute" and any(row.coverage < 1 for row in board.rows):
        return "scores are imputed, and imputed scores cannot be tested"
    n_ranked = sum(row.rank is not None for row in board.rows)
    if n_ranked < 2:
        return "fewer than two models have a rank"
    return explain_too_many(n_ranked).rstrip(".") if n_ranked > MAX_TESTED_MODELS else ""
