"""Scores that a policy puts in place of missing ones, as rows of an export that are marked as such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.exporting.exported_runs import ExportedRuns
from tracker.exporting.formats.scores.answer_columns import Cells
from tracker.queries.ranking.missing import MissingPolicy, treat_rows
from tracker.queries.resolution import BenchmarkKey, find_metric
from tracker.queries.scores import read_averages
from tracker.queries.selection import Policy, Selection

FILLING: tuple[Policy, ...] = ("worst", "impute")
"""Policies that put a score in place of a missing one."""


@dataclass(frozen=True, kw_only=True)
class FilledScores:
    """Scores that are not stored.

    Attributes:
        policy: that they come from.
        cells: by key of the run, on the first trial; a prompt is given by its index among the exported ones.
        warnings: how many there are.
    """

    policy: Policy
    cells: Mapping[int, Cells]
    warnings: tuple[str, ...]


def fill_scores(
    session: Session,
    benchmark: BenchmarkKey,
    selection: Selection,
    chosen: ExportedRuns,
    prompt_ids: NDArray[np.int64],
) -> FilledScores:
    """Return a score for each run, each of its metrics, and each prompt that another run has a score of.

    Args:
        session: the store; only committed data are visible.
        benchmark: of the selection.
        selection: its policy is one of `FILLING`.
        chosen: runs and metrics.
        prompt_ids: ``(n,)`` keys of the exported prompts.

    Raises:
        SelectionError: a metric has no bounds, or too many scores are missing to impute them.
    """
    parts: dict[int, list[Cells]] = {run.id: [] for run in chosen.runs}
    policy = selection.missing or "worst"
    for place, metric_id in enumerate(sorted(chosen.metrics)):
        runs = [run for run in chosen.runs if metric_id in run.metric_ids]
        under_metric = replace(selection, metric=chosen.metrics[metric_id], missing=None)
        metric, _ = find_metric(session, benchmark, under_metric, ("prompt",))
        Q, _ = read_averages(session, metric_id, [run.id for run in runs], prompt_ids)
        measured = np.flatnonzero(~np.isnan(Q).all(axis=1))
        rule = MissingPolicy(name=policy, worst=metric.worst, best=metric.best, metric=metric.name)
        names = [f"{run.model} (run {run.id})" for run in runs]
        _, filled, _ = treat_rows(Q[measured], rule, np.ones(len(runs), dtype=np.bool_), names)
        for column, run in enumerate(runs):
            rows = np.flatnonzero(np.isnan(Q[measured, column]))
            trials = np.zeros(len(rows), dtype=np.int64)
            parts[run.id].append((np.full(len(rows), place), measured[rows], trials, filled[rows, column]))
    cells = {key: _join(pieces) for key, pieces in parts.items() if pieces}
    n = sum(len(values) for *_, values in cells.values())
    warning = (
        f"{n:,} scores are not measured, but filled in by --missing {policy}; the column filled_by marks them, and "
        "suffrage ingest leaves them out."
    )
    return FilledScores(policy=policy, cells=cells, warnings=(warning,) if n else ())


def _join(pieces: list[Cells]) -> Cells:
    metrics, places, trials, values = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return metrics, places, trials, values
