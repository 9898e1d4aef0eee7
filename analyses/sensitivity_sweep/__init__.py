"""Compute sensitivity as a function of the least task weight.

If scores are averaged over tasks, noise in a task reduces its effective weight. Epsilon is the least weight that a task
keeps. For each epsilon, reports the largest tau and the largest MRC that weights can cause, and the epsilon from which
no two models can be reversed.

Source: Zhang & Hardt 2024, equations 6 to 8 and figure 5.
Definitions: docs/reference/statistics/sensitivity-sweep.md.

Examples:
    suffrage analyze sensitivity-sweep mmlu_pro --epsilons 0.01,0.1,1 --time-limit 2
    suffrage analyze sensitivity-sweep mmlu_pro --columns standardised --epsilons 0.1 --time-limit 2
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


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: TaskMatrix,
    *,
    epsilons: Annotated[
        tuple[str, ...], "Least weights of a task, separated by commas: decimal numbers from 1e-9 to 1."
    ] = EPSILONS,
    columns: Annotated[
        Literal["raw", "standardised"],
        "Scores that are weighted. raw: as stored; standardised: each task with standard deviation 1.",
    ] = "raw",
    time_limit: Annotated[float, "Seconds for the whole path; 0 skips the exact search."] = 30.0,
) -> Report:
    """Compute cardinal sensitivity for each least weight.

    Args:
        scores: at least 3 models; tasks without a score from every model are left out, with a warning.
        epsilons: in any order; duplicates are ignored.
        columns: scores that are weighted; the ranking before is by the mean of the raw scores in both cases.
        time_limit: results not proven by then are intervals; their width depends on the machine.

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
        ranked_by="by mean over tasks",
        rankings={"mean": RankedModels(models=table.models, score=table.T.mean(axis=0), rank=path.limits.sums.before)},
        tables={
            "sweep": tables.list_changes_by_epsilon(path),
            "weights": tables.list_witness_weights(path, table.tasks),
            "pairs": tables.list_pair_limits(path.limits, table.models),
        },
        figures={"sweep": lambda: figures.draw_sweep(finding)},
        warnings=[*field.warnings, *collect_warnings(finding, int((~is_complete).sum()), time_limit=time_limit)],
    )
