"""Checks of the options of task-subsets."""

from __future__ import annotations

from math import comb

from analyses.presentation.validation import ValidationErrors, check_minimum
from analyses.task_subsets.method import SubsetOptions
from analyses.task_subsets.summary import RULES
from tracker.queries.task_matrix import TaskMatrix

MAX_SAMPLES = 1_000_000
"""Sets of one size that may be drawn."""
MAX_COMPARISONS = 5e10
"""Of two models for a set of tasks: some minutes of one core."""


def check_options(options: SubsetOptions) -> ValidationErrors:
    """Reasons why these options are invalid, each with what to do."""
    n_samples, within = options.n_samples, options.within
    return {
        **check_minimum(1, max_size=options.max_size, n_samples=n_samples, n_splits=options.n_splits),
        **check_minimum(0, largest_enumeration=options.largest_enumeration, seed=options.seed),
        f"n_samples is {n_samples}; at most {MAX_SAMPLES:,} sets of one size are drawn.": n_samples > MAX_SAMPLES,
        f"within is {within}; it must be at least 0 and below 1.": not 0 <= within < 1,
        f"No rule {options.rule!r}. Known: {', '.join(RULES)}.": options.rule not in RULES,
    }


def check_n_tasks(loaded: TaskMatrix, kept: TaskMatrix, rule: str) -> ValidationErrors:
    """The error where fewer than 2 tasks count.

    Args:
        loaded: every task and model with a score.
        kept: the tasks that count under the rule.
        rule: as chosen.
    """
    n_kept, n_loaded = kept.n_tasks, loaded.n_tasks
    shortage = f"{n_loaded} task{'s' * (n_loaded != 1)} here"
    if rule == "mean" and n_loaded >= 2:
        shortage = f"Of {n_loaded} tasks, {n_kept} {'has' if n_kept == 1 else 'have'} a score from every model"
        remedy = "Choose models that have taken the same tasks, or the rule win-rate, which compares over shared tasks."
    else:
        remedy = "Choose a benchmark with more tasks."
    return {f"{shortage}; at least 2 are needed to leave one out. {remedy}": n_kept < 2}


def check_cost(kept: TaskMatrix, options: SubsetOptions) -> ValidationErrors:
    """The error where the sets take too long: win rates of a table with gaps compare every two models for each set.

    Args:
        kept: the tasks that count.
        options: which sets are compared.
    """
    sizes = [comb(kept.n_tasks, size) for size in range(1, min(options.max_size, kept.n_tasks - 1) + 1)]
    n_sets = sum(n if n <= options.largest_enumeration else options.n_samples for n in sizes)
    n_comparisons = n_sets * kept.n_models**2
    is_slow = options.rule == "win-rate" and not kept.is_complete and n_comparisons > MAX_COMPARISONS
    return {
        f"With missing scores, the win rates of {kept.n_models:,} models by {n_sets:,} sets of tasks are "
        f"{n_comparisons:.0e} comparisons, more than {MAX_COMPARISONS:.0e}, which take minutes. Lower "
        "--largest-enumeration, --max-size or --n-samples, or choose --models.": is_slow
    }
