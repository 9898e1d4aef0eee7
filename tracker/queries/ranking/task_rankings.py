"""Select the models and tasks of a task matrix that can be ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.queries.task_matrix import TaskMatrix

MAX_NAMES = 5
"""Number of names that a warning lists."""


@dataclass(frozen=True, kw_only=True)
class TaskRankings:
    """Scores of the models that can be ranked, by the tasks that rank them.

    Attributes:
        scores: every model and every task has at least one score; none is infinite.
        warnings: what was left out.
    """

    scores: TaskMatrix
    warnings: tuple[str, ...] = ()


def select_rankable(scores: TaskMatrix, *, min_models: int = 3) -> TaskRankings:
    """Keep the models and tasks that have any score, with a warning about the others. Single missing scores stay
    missing.

    Args:
        scores: the matrix.
        min_models: minimum number of models.

    Raises:
        SelectionError: too few models are left, or scores are infinite.
    """
    if n_infinite := int(np.isinf(scores.T).sum()):
        raise SelectionError(f"{n_infinite:,} scores are infinite. Leave out their runs, or choose another metric.")
    is_measured = ~np.isnan(scores.T)
    stand, has_scores = np.asarray(is_measured.any(axis=0)), np.asarray(is_measured.any(axis=1))
    warnings = []
    if not stand.all():
        warnings.append(f"Models without a score here are left out: {_join_dropped(scores.models, stand)}.")
    if not has_scores.all():
        warnings.append(f"Tasks without a score are left out: {_join_dropped(scores.tasks, has_scores)}.")
    n_models = int(stand.sum())
    if n_models < min_models:
        raise SelectionError(
            f"Only {n_models} models have a score here; at least {min_models} are needed. Ingest results of more "
            "models, or select more."
        )
    kept = replace(
        scores,
        T=scores.T[:, stand],
        n_prompts=scores.n_prompts[:, stand],
        stderr=scores.stderr[:, stand],
        models=tuple(name for name, has in zip(scores.models, stand.tolist(), strict=True) if has),
        run_ids=scores.run_ids[stand],
    )
    return TaskRankings(scores=kept.rows(has_scores), warnings=tuple(warnings))


def _join_dropped(names: Sequence[str], kept: NDArray[np.bool_]) -> str:
    dropped = [name for name, has in zip(names, kept.tolist(), strict=True) if not has]
    return f"{', '.join(dropped[:MAX_NAMES])}{' …' if len(dropped) > MAX_NAMES else ''}"
