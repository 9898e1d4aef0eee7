"""Scores that a policy puts in place of missing ones, as rows of an export that are marked as such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.exporting.exported_runs import ExportedRuns
from tracker.exporting.formats.scores.answer_columns import Cells, locate_keys
from tracker.queries.performance import load_performance_matrix
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
    selection: Selection,
    chosen: ExportedRuns,
    prompt_ids: NDArray[np.int64],
    *,
    every: bool,
) -> FilledScores:
    """Return a score for each run, each of its metrics, and each prompt that another run has a score of.

    The scores are those that analyses of the same selection use, of runs under the same condition and variant.

    Args:
        session: the store; only committed data are visible.
        selection: its policy is one of `FILLING`.
        chosen: runs and metrics.
        prompt_ids: ``(n,)`` keys of the exported prompts, ascending.
        every: whether every complete run is exported, not the selected one of each model.

    Raises:
        SelectionError: a metric has no bounds, or too many scores are missing to impute them.
    """
    parts: dict[int, list[Cells]] = {run.id: [] for run in chosen.runs}
    policy = selection.missing or "worst"
    for place, metric_id in enumerate(sorted(chosen.metrics)):
        under_metric = replace(selection, metric=chosen.metrics[metric_id])
        for part in _split(under_metric, chosen, every=every):
            scores = load_performance_matrix(session, part)
            runs = [run.id for run in chosen.runs if metric_id in run.metric_ids and run.id in scores.run_ids]
            Q, _ = read_averages(session, metric_id, runs, scores.prompt_ids)
            places, is_exported = locate_keys(prompt_ids, scores.prompt_ids)
            for column, run in enumerate(runs):
                is_missing = np.isnan(Q[is_exported, column])
                values = scores.Q[is_exported][is_missing, scores.run_ids.tolist().index(run)]
                n = int(is_missing.sum())
                parts[run].append((np.full(n, place), places[is_missing], np.zeros(n, dtype=np.int64), values))
    cells = {key: _join(pieces) for key, pieces in parts.items() if pieces}
    n = sum(len(values) for *_, values in cells.values())
    noun = "score is" if n == 1 else "scores are"
    warning = (
        f"{n:,} {noun} not measured, but filled in by --missing {policy}; the column filled_by marks each, and "
        "suffrage ingest leaves it out."
    )
    return FilledScores(policy=policy, cells=cells, warnings=(warning,) if n else ())


def _split(selection: Selection, chosen: ExportedRuns, *, every: bool) -> Iterator[Selection]:
    """Yield the selection, or one of the runs of each condition and variant.

    Args:
        selection: with a metric.
        chosen: the exported runs.
        every: as for `fill_scores`.
    """
    if not every:
        yield selection
        return
    groups: dict[tuple[str, str], list[int]] = {}
    for run in chosen.runs:
        groups.setdefault((run.condition, run.variant), []).append(run.id)
    for runs in groups.values():
        yield replace(selection, runs=tuple(runs), models=())


def _join(pieces: list[Cells]) -> Cells:
    metrics, places, trials, values = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return metrics, places, trials, values
