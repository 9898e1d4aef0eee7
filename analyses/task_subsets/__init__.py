"""How few tasks give nearly the final ranking?

The ranking by every set of one, two, … tasks is compared with the ranking by all of them: the best set, which is picked
with the answer in sight, beside the median one. Then tasks are added one by one, each time the one that helps most: an
order to go by. How much of its success is selection shows on models that had no say in it.

Source: Zhang & Hardt 2024, appendix D and figure 6.
Definitions: docs/reference/statistics/task-subsets.md.
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
    Literal["mean", "win-rate"], "how tasks are aggregated: mean score, or share of duels won over the tasks"
]


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    rule: Rule = "mean",
    max_size: Annotated[int, "largest number of tasks in a set"] = 6,
    n_samples: Annotated[int, "random sets of a size that has too many to examine all"] = 1000,
    largest_enumeration: Annotated[int, "up to so many sets of a size, all are examined"] = 200_000,
    within: Annotated[float, "share of pairs of models that may change"] = 0.05,
    n_splits: Annotated[int, "random halves of the models on which the greedy choice is judged"] = 20,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Find few tasks that rank nearly as all do.

    Args:
        scores: at least 3 models and 2 tasks. For ``mean``, tasks that some model lacks are left out, with a note.
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
        rankings={"all_tasks": rank(np.arange(exact.n_tasks)), "greedy_tasks": rank(greedy_tasks)},
        tables={"sizes": tables.list_distances_by_size(finding), "greedy": tables.list_greedy_steps(finding)},
        figures=figures.build_figures(finding),
        warnings=[
            *field.warnings,
            *collect_warnings(finding, field.scores, kept, tied=ties_all_models(exact), max_size=max_size),
        ],
    )
