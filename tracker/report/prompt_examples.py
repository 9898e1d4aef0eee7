"""Example prompts: the hardest, those that divide the models most, the easiest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.sql import tables

N_EACH = 3


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example prompt.

    Attributes:
        name: its name in files.
        task: its task; '' without a task.
        text: its text.
        mean: mean score of the models.
        n_models: number of models with a score.
    """

    name: str
    task: str
    text: str
    mean: float
    n_models: int


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Example prompts.

    Attributes:
        groups: by property: the first prompts with it, in the order of their keys.
        counts: number of prompts with each property.
    """

    groups: dict[str, tuple[Example, ...]]
    counts: dict[str, int]


def select_examples(session: Session, scores: PerformanceMatrix) -> Examples | None:
    """Select prompts with the lowest mean, the largest spread and the highest mean; None if no text is known.

    Ties are frequent; the first ones by key are selected.
    """
    prompt = tables.prompt.c
    stored = sa.select(prompt.id).join(tables.task, tables.task.c.id == prompt.task_id)
    of_task = tables.task.join(tables.prompt, prompt.task_id == tables.task.c.id)
    first_key = int(scores.prompt_ids[0])
    benchmark = sa.select(tables.task.c.benchmark_id).select_from(of_task).where(prompt.id == first_key)
    with_text = set(
        session.scalars(
            stored.where(tables.task.c.benchmark_id == benchmark.scalar_subquery(), prompt.text.is_not(None))
        )
    )
    known = np.flatnonzero([key in with_text for key in scores.prompt_ids.tolist()])
    if not len(known):
        return None
    known = known[np.argsort(scores.prompt_ids[known], kind="stable")]
    Q = scores.Q[known]
    means, spread = np.nanmean(Q, axis=1), np.nanstd(Q, axis=1)
    sign = 1.0 if scores.higher_is_better else -1.0
    picked = {"hardest": means * sign, "most divided": -spread, "easiest": -means * sign}
    chosen = {name: np.argsort(key, kind="stable")[:N_EACH] for name, key in picked.items()}
    counts = {name: int((key == key.min()).sum()) for name, key in picked.items()}
    keys = {int(scores.prompt_ids[known[row]]) for rows in chosen.values() for row in rows}
    texts = dict(session.execute(sa.select(prompt.id, prompt.text).where(prompt.id.in_(keys))).all())
    names = load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(keys))
    groups = {
        name: tuple(
            Example(
                name=names.get(key := int(scores.prompt_ids[known[row]]), str(key)),
                task=str(scores.tasks[known[row]]),
                text=texts[key],
                mean=float(means[row]),
                n_models=int((~np.isnan(Q[row])).sum()),
            )
            for row in rows
        )
        for name, rows in chosen.items()
    }
    return Examples(groups=groups, counts=counts)
