"""The models that the leaderboard of a selection ranks first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.queries.performance import load_performance_matrix
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.ranking.ranked_means import RankingOptions, rank_by_tasks
from tracker.queries.resolution import find_benchmark, find_metric
from tracker.queries.selected_runs.runs import select_runs
from tracker.queries.selection import Selection, Unit
from tracker.queries.task_matrix import load_task_matrix

UNITS: tuple[Unit, ...] = ("prompt", "task")


def find_leaders(session: Session, selection: Selection) -> tuple[str, ...]:
    """Return the models with the best rank on the leaderboard: equal weights, no filter, the default policy.

    Args:
        session: the store.
        selection: the selection; its weights, filter and policy for missing scores are ignored.

    Returns:
        Names; empty if the leaderboard ranks none.
    """
    plain = replace(selection, weights=None, filter=None, missing=None, cluster=None, encoder=None, against=None)
    try:
        plain = choose_policy(session, plain, default="bounds", units=UNITS, treats_tasks=True)
        benchmark = find_benchmark(session, plain.benchmark)
        metric, unit = find_metric(session, benchmark, plain, UNITS)
        every = replace(plain, models=(), missing=None)
        selected = [run.id for run in select_runs(session, benchmark, metric, None, plain)]
        if unit == "prompt":
            scores = load_performance_matrix(session, every)
            is_ranked = np.isin(scores.run_ids, selected)
            return scores.treat_missing(plain.missing, plain.least_coverage, is_ranked=is_ranked).leaders
        options = RankingOptions(
            missing=plain.missing or "bounds",
            min_coverage=plain.least_coverage,
            run_ids=frozenset(selected),
            worst=metric.worst,
            best=metric.best,
        )
        return rank_by_tasks(load_task_matrix(session, every), options).leaders
    except SelectionError:
        return ()
