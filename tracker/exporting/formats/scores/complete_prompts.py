"""Select the prompts that every exported run has scores for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.exporting.exported_runs import ExportedRuns
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.ranking.missing import MissingPolicy, no_participant, select_participants, treat_rows
from tracker.queries.resolution import BenchmarkKey, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selection import Selection
from tracker.queries.sql.arrow import number_columns, read_arrow
from tracker.queries.sql.run_terms import run_terms


def select_complete_prompts(
    session: Session, benchmark: BenchmarkKey, selection: Selection, chosen: ExportedRuns
) -> tuple[ExportedRuns, NDArray[np.int64], tuple[str, ...]]:
    """Select runs and prompts by a selection's policy for missing scores.

    ``common`` leaves out the prompts that a run lacks. ``bounds`` leaves missing scores missing, since they can have
    any value; ``worst`` and ``impute`` leave them to `fill_scores`. As under each policy, runs with too few prompts are
    left out.

    Args:
        session: the store; only committed data are visible.
        benchmark: of the selection.
        selection: with a policy.
        chosen: runs and metrics; a run has a prompt if it has a score of it under each of its metrics.

    Returns:
        The runs with enough prompts; the keys of the prompts to export, ascending; warnings.

    Raises:
        SelectionError: a score is missing under ``fail``, no prompt is common, or the scores are of whole tasks.
    """
    if chosen.unit == "task":
        raise SelectionError(
            f"{benchmark.label} has scores of whole tasks only, and they are exported as stored. Leave --missing out."
        )
    only = load_selected_filter(session, benchmark, selection)
    prompt_ids = np.sort(read_prompts(session, select_tasks(session, benchmark, selection), only, selection.split)[0])
    Q = np.full((len(prompt_ids), len(chosen.runs)), np.nan)
    for column, run in enumerate(chosen.runs):
        metrics = ",".join(map(str, run.metric_ids))
        scored = read_arrow(
            session,
            "SELECT prompt_id, COUNT(DISTINCT metric_id) AS n_metrics FROM score "
            f"WHERE {run_terms(session, [run.id])} AND metric_id IN ({metrics}) GROUP BY prompt_id",
            runs=[run.id],
        )
        keys, n_metrics = number_columns(scored)
        complete = keys[n_metrics == len(run.metric_ids)].astype(np.int64)
        Q[np.isin(prompt_ids, complete), column] = 0.0
    measured = np.asarray(~np.isnan(Q).all(axis=1))
    policy = MissingPolicy(name=selection.missing or "common", min_coverage=selection.least_coverage)
    names = [f"{run.model} (run {run.id})" for run in chosen.runs]
    every = np.ones(len(names), dtype=np.bool_)
    participants = select_participants(Q[measured], policy, models=names, is_ranked=every)
    if not participants.columns.any():
        raise no_participant(participants.excluded, policy)
    kept, warnings = np.ones(int(measured.sum()), dtype=np.bool_), participants.warnings
    if policy.name in ("common", "fail"):
        kept, _, further = treat_rows(Q[measured], policy, participants.columns, names)
        warnings += further
    runs = [run for run, stays in zip(chosen.runs, participants.columns.tolist(), strict=True) if stays]
    return replace(chosen, runs=runs), prompt_ids[measured][kept], warnings
