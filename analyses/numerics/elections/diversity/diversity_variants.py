"""How far tasks disagree where scores are missing: with the gaps filled in, and without what has gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyses.numerics.elections.diversity.concordance import Diversity, diversity
from analyses.numerics.elections.diversity.imputation import impute_knn
from analyses.numerics.elections.exact_scores import ExactScores

MIN_COMPLETE_TASKS, MIN_COMPLETE_MODELS = 2, 3
"""Of a table with gaps, fewer complete tasks or models than these are not taken for the whole."""


@dataclass(frozen=True, kw_only=True)
class DiversityVariants:
    """How far tasks disagree, with each way to do without missing scores; without gaps all are the same.

    Attributes:
        whole: of the whole table, missing scores imputed.
        complete_tasks: of the tasks that have a score from every model; None where they are too few.
        complete_models: of the models that have a score on every task; None where they are too few.
        n_complete_tasks, n_complete_models: how many there are.
    """

    whole: Diversity
    complete_tasks: Diversity | None
    complete_models: Diversity | None
    n_complete_tasks: int
    n_complete_models: int


def diversity_variants(scores: ExactScores) -> DiversityVariants:
    """How far tasks disagree on a table that may have gaps; without gaps all are the same.

    Args:
        scores: every task and every model has at least one.
    """
    is_present = scores.present
    tasks, models = np.flatnonzero(is_present.all(axis=1)), np.flatnonzero(is_present.all(axis=0))
    whole = diversity(impute_knn(scores))
    by_tasks = by_models = whole if scores.is_complete else None
    if by_tasks is None and len(tasks) >= MIN_COMPLETE_TASKS:
        by_tasks = diversity(scores.rows(tasks))
    if by_models is None and len(models) >= MIN_COMPLETE_MODELS:
        by_models = diversity(scores.columns(models))
    return DiversityVariants(
        whole=whole,
        complete_tasks=by_tasks,
        complete_models=by_models,
        n_complete_tasks=len(tasks),
        n_complete_models=len(models),
    )
