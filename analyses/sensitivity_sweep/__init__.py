"""How far can weights of tasks move the ranking, as the least weight grows?

Where scores are averaged over tasks, random labels in a task make it count less. The least that a task may still count,
epsilon, is a choice; this follows the largest tau and, on its own, the largest MRC from epsilon near 0 to 1, and says
from which epsilon on no two models can be reversed at all.

Source: Zhang & Hardt 2024, equations 6 to 8 and figure 5.
Definitions: docs/reference/statistics/sensitivity-sweep.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from analyses.presentation.validation import validate
from analyses.sensitivity_sweep import figures, tables
from analyses.sensitivity_sweep.method import sweep_epsilons
from analyses.sensitivity_sweep.summary import collect_warnings, summarize
from analyses.sensitivity_sweep.validation import check_complete_tasks, check_options, parse_epsilons
from tracker.queries.ranking.task_rankings import select_rankable
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import RankedModels, Report, analysis

EPSILONS = ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "0.9", "1")


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    epsilons: Annotated[tuple[str, ...], "least weights of a task, decimal numbers from 1e-9 to 1"] = EPSILONS,
    columns: Annotated[
        Literal["raw", "standardised"], "what is weighed: scores as they are, or tasks of standard deviation 1"
    ] = "raw",
    time_limit: Annotated[float, "seconds for the whole path; 0: no exact search"] = 30.0,
) -> Report:
    """Follow cardinal sensitivity along the least weight.

    Args:
        scores: at least 3 models; tasks that lack the score of some model are left out, with a note.
        epsilons: in any order; the same number twice is one.
        columns: what is weighed; the ranking before is that by the mean of the scores as they are, in both cases.
        time_limit: what is not proven by then is given as an interval; how narrow depends on the machine.

    Raises:
        SelectionError: too few models, infinite scores, no task with a score from every model, or an option out of
            range.
    """
    field = select_rankable(scores)
    validate(check_options(columns=columns, time_limit=time_limit))
    labelled_epsilons = parse_epsilons(epsilons)
    is_complete = np.asarray(~np.isnan(field.scores.T).any(axis=1))
    if not is_complete.any():
        validate(check_complete_tasks(field.scores.n_tasks))
    table = field.scores.rows(is_complete)
    finding = sweep_epsilons(table, labelled_epsilons, is_raw=columns == "raw", time_limit=time_limit)
    path = finding.path
    return Report(
        finding,
        summary=summarize(finding),
        rankings={"mean": RankedModels(models=table.models, score=table.T.mean(axis=0), rank=path.limits.sums.before)},
        tables={
            "sweep": tables.list_changes_by_epsilon(path),
            "weights": tables.list_witness_weights(path, table.tasks),
            "pairs": tables.list_pair_limits(path.limits, table.models),
        },
        figures={"sweep": lambda: figures.draw_sweep(finding)},
        warnings=[*field.warnings, *collect_warnings(finding, int((~is_complete).sum()), time_limit=time_limit)],
    )
