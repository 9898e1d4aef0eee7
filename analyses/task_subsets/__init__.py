"""Find small sets of tasks that preserve the ranking.

Compares the ranking by each set of tasks with the ranking by all of them, for the best and the median set of each size.
A greedy order adds the most useful task at each step. The best set is selected on the same models, so it looks better
than it is; the error on held-out models shows how much.

Source: Zhang & Hardt 2024, appendix D and figure 6.
Definitions: docs/reference/statistics/task-subsets.md.

Examples:
    suffrage analyze task-subsets mmlu_pro
    suffrage analyze task-subsets mmlu_pro --rule win-rate --max-size 3
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import numpy as np

from analyses.numerics.elections.exact_scores import exact_scores
from analyses.presentation.validation import validate
from analyses.task_subsets import figures, tables
from analyses.task_subsets.method import SubsetOptions, compare_subsets, rank_by_tasks, ties_all_models
from analyses.task_subsets.summary import collect_warnings, summarize
from analyses.task_subsets.validation import check_cost, check_n_tasks, check_options
from tracker.queries.ranking.task_rankings import select_rankable
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.finding import Report, analysis

Rule = Annotated[
    Literal["mean", "win-rate"], "Aggregation of tasks. mean: mean score; win-rate: share of pairwise comparisons won."
]


@analysis(missing="common", policies=("common", "worst", "impute", "fail"))
def analyze(
    scores: TaskMatrix,
    *,
    rule: Rule = "mean",
    max_size: Annotated[int, "Largest number of tasks in a set."] = 6,
    n_samples: Annotated[int, "Number of random sets of a size that has too many to enumerate."] = 1000,
    largest_enumeration: Annotated[int, "Largest number of sets of a size that are enumerated."] = 200_000,
    within: Annotated[float, "Share of pairs of models that may change, in [0, 1)."] = 0.05,
    n_splits: Annotated[int, "Number of random halves of the models to evaluate the greedy order on."] = 20,
    seed: Annotated[int, "Seed of all random draws."] = 0,
) -> Report:
    """Find small sets of tasks that preserve the ranking.

    Args:
        scores: at least 3 models and 2 tasks. For ``mean``, tasks without a score from every model are left out, with a
            warning.
        rule: ``mean``, or ``win-rate``: pairwise, over the tasks of a set that both models have.
        max_size: see `SubsetOptions`, as for all below.
        n_samples, largest_enumeration: of a size.
        within: in [0, 1).
        n_splits: at least 1.
        seed: the same seed gives the same bytes, whatever the number of workers.

    Raises:
        SelectionError: too few models or tasks, infinite scores, or an option out of range.
    """
    options = SubsetOptions(
        rule=rule,
        max_size=max_size,
        n_samples=n_samples,
        largest_enumeration=largest_enumeration,
        within=within,
        n_splits=n_splits,
        seed=seed,
    )
    validate(check_options(options))
    field = select_rankable(scores)
    kept = field.scores.complete() if rule == "mean" else field.scores
    validate(check_n_tasks(field.scores, kept, rule))
    validate(check_cost(kept, options))
    by_name = np.array(sorted(range(kept.n_tasks), key=lambda task: kept.tasks[task]), dtype=np.int64)
    exact = exact_scores(kept.T, kept.n_prompts, higher_is_better=kept.higher_is_better).rows(by_name)
    finding = compare_subsets(
        exact, models=kept.models, tasks=tuple(kept.tasks[task] for task in by_name), options=options
    )
    greedy_tasks = np.sort(finding.greedy.order[: finding.greedy_size_within])
    rank = partial(rank_by_tasks, exact, finding, higher_is_better=kept.higher_is_better)
    return Report(
        finding,
        summary=summarize(finding),
        task_values={"greedy_position": tables.list_greedy_positions(finding)},
        ranked_by="by mean over tasks" if rule == "mean" else "by win rate over tasks",
        rankings={"all_tasks": rank(np.arange(exact.n_tasks)), "greedy_tasks": rank(greedy_tasks)},
        tables={"sizes": tables.list_distances_by_size(finding), "greedy": tables.list_greedy_steps(finding)},
        figures=figures.build_figures(finding),
        warnings=[
            *field.warnings,
            *collect_warnings(finding, field.scores, kept, tied=ties_all_models(exact)),
        ],
    )
