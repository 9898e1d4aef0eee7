"""What the ranking by a few tasks shows, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from analyses.numerics.elections.subsets.task_subsets import MIN_MODELS, GreedyOrder, HoldoutDistances, SubsetDistances
from analyses.presentation.validation import ValidationErrors, check_minimum
from tracker.queries.performance import TaskMatrix

RULES = {"mean": "mean of", "win-rate": "win rate on"}
"""How tasks are aggregated, and what that is called in a sentence."""
LISTED = 8
"""Names after which a list breaks off."""
MOST_SAMPLES = 1_000_000
"""Sets of one size that may be drawn."""


MOST_COMPARISONS = 5e10
"""Of two models for a set of tasks: some minutes of one core."""


def option_problems(
    *, rule: str, max_size: int, n_samples: int, largest_enumeration: int, n_splits: int, within: float, seed: int
) -> ValidationErrors:
    """Which options make no sense, and what to do about it."""
    return {
        **check_minimum(1, max_size=max_size, n_samples=n_samples, n_splits=n_splits),
        **check_minimum(0, largest_enumeration=largest_enumeration, seed=seed),
        f"n_samples is {n_samples}; at most {MOST_SAMPLES:,} sets of one size are drawn.": n_samples > MOST_SAMPLES,
        f"within is {within}; it must be at least 0 and below 1.": not 0 <= within < 1,
        f"No rule {rule!r}. Known: {', '.join(RULES)}.": rule not in RULES,
    }


def field_problems(given: TaskMatrix, kept: TaskMatrix, rule: str) -> ValidationErrors:
    """Why these tasks have no subsets to speak of.

    Args:
        given: every task and model with a score.
        kept: the tasks that count under the rule.
        rule: as chosen.
    """
    n_kept, n_given = kept.n_tasks, given.n_tasks
    few = f"{n_given} task{'s' * (n_given != 1)} here"
    if rule == "mean" and n_given >= 2:
        few = f"Of {n_given} tasks, {n_kept} {'has' if n_kept == 1 else 'have'} a score from every model"
        cure = "Choose models that have taken the same tasks, or the rule win-rate, which compares over shared tasks."
    else:
        cure = "Choose a benchmark with more tasks."
    return {f"{few}; at least 2 are needed to leave one out. {cure}": n_kept < 2}


def cost_problems(
    kept: TaskMatrix, rule: str, *, max_size: int, n_samples: int, largest_enumeration: int
) -> ValidationErrors:
    """Why the sets would take too long: win rates of a table with gaps compare every two models for each set.

    Args:
        kept: the tasks that count.
        rule: as chosen.
        max_size: as chosen, as all below.
        n_samples: of a size.
        largest_enumeration: of a size.
    """
    sizes = [comb(kept.n_tasks, size) for size in range(1, min(max_size, kept.n_tasks - 1) + 1)]
    n_sets = sum(n if n <= largest_enumeration else n_samples for n in sizes)
    too_many = rule == "win-rate" and not kept.is_complete and n_sets * kept.n_models**2 > MOST_COMPARISONS
    return {
        f"With missing scores, the win rates of {kept.n_models:,} models by {n_sets:,} sets of tasks are "
        f"{n_sets * kept.n_models**2:.0e} comparisons, more than {MOST_COMPARISONS:.0e}, which take minutes. Lower "
        "--largest-enumeration, --max-size or --n-samples, or choose --models.": too_many
    }


def warnings(
    given: TaskMatrix, kept: TaskMatrix, rule: str, *, tied: Sequence[str], max_size: int, ties_all: bool
) -> list[str]:
    """What the reader of the numbers should know of the tasks behind them.

    Args:
        given: every task and model with a score.
        kept: the tasks that count under the rule.
        rule: as chosen.
        tied: tasks on which all models have the same score.
        max_size: as asked for.
        ties_all: whether the ranking by all tasks is one great tie.
    """
    said = []
    left_out = [task for task in given.tasks if task not in set(kept.tasks)]
    if left_out:
        said.append(
            f"Left out, lacking a score of some model: {listed(left_out)}. The ranking by all tasks is that by the "
            f"{kept.n_tasks} others."
        )
    if rule == "win-rate" and not kept.is_complete:
        said.append(
            "Scores are missing: two models are compared over the tasks of a set that both have; where they share "
            "none, neither wins, so a model without a score in a set comes last."
        )
    if tied:
        said.append(f"All models have the same score on {listed(tied)}: alone, it orders nobody.")
    if ties_all:
        said.append("All tasks together tie all models, so there is no order that a few tasks could give.")
    if max_size >= kept.n_tasks:
        said.append(f"Sets of all {kept.n_tasks} tasks give the ranking itself; sizes end at {kept.n_tasks - 1}.")
    if kept.n_models < MIN_MODELS:
        said.append(f"No model is held out: two halves need at least {MIN_MODELS} models.")
    return said


def enough(
    size: int, is_exact: bool, names: Sequence[str], *, rule: str, n_tasks: int, n_models: int, within: float
) -> str:
    """How few tasks come near the ranking."""
    ranked = f"{n_models} models are ranked by their {RULES[rule]} {n_tasks} tasks"
    near = (
        f"no more than {within:.0%} of the pairs of models changed (reversed, or tied in one of the two rankings only)"
    )
    if size == n_tasks:
        return f"{ranked}; {'no fewer are' if is_exact else 'no fewer were seen to be'} enough to leave {near}."
    known = f"{size} of them can be" if is_exact else f"at most {size} of them are"
    return f"{ranked}; {known} enough to leave {near}: {listed(names)}."


def best_and_median(found: SubsetDistances, median_changed: float, median_moved: float) -> str:
    """The nearest set of a size beside the median one."""
    sets, d = found.sets, found.distances
    tasks = f"{sets.size} task{'s' * (sets.size != 1)}"
    drawn = f"{sets.n_examined:,} random set{'s' * (sets.n_examined != 1)}"
    which = f"all {sets.n_subsets:,} sets" if sets.is_exhaustive else drawn
    of = "" if sets.is_exhaustive else f" (there are {sets.n_subsets:,})"
    return (
        f"Of {which} of {tasks}{of}, the best changes {d.tau_paper.min():.1%} of the pairs and the median "
        f"{median_changed:.1%}; the largest move of a model is {d.mrc.min():.0%} of the ranking at best and "
        f"{median_moved:.0%} in the median. The best of many is picked with the answer in sight: without it, expect "
        "the median."
    )


def one_by_one(greedy: GreedyOrder, tasks: Sequence[str], size: int, within: float) -> str:
    """What to take first."""
    shown = [tasks[task] for task in greedy.order[:size]]
    return (
        f"Added one by one, each time the task that helps most, {within:.0%} is reached with {size}: "
        f"{listed(shown, ' → ')}."
    )


def judged_apart(held: HoldoutDistances, size: int) -> str:
    """What becomes of the choice on models that had no say in it."""
    chosen, judged, unchosen = (getattr(held, name)[:, size - 1].mean() for name in ("chosen", "judged", "unchosen"))
    tasks = "a task chosen so changes" if size == 1 else f"{size} tasks chosen so change"
    said = (
        f"On a random half of the models, {tasks} {chosen:.1%} of the pairs there and {judged:.1%} of those of "
        f"the other half, where {'a random one changes' if size == 1 else 'random ones change'} {unchosen:.1%} (means "
        f"of {len(held.chosen):,} split{'s' * (len(held.chosen) != 1)})"
    )
    if judged >= unchosen:
        return f"{said}: on models that had no say in it, the choice is no better than a random one."
    return f"{said}: the first difference is selection, what remains to the third is the worth of the choice."


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Names in a sentence; long lists break off."""
    return between.join(names[:LISTED]) + f"{between}…" * (len(names) > LISTED)
