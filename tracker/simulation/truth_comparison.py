"""Planted effects beside the stored scores that show them.

Only the truth comes from the simulation: every measured number is computed from stored scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.embeddings import load_embeddings
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.simulation.files import BENCHMARK, ENCODER, METRIC
from tracker.simulation.item_response import GUESSING, Simulation, Truth


@dataclass(frozen=True)
class PlantedEffect:
    """A planted effect and its measurement, as text."""

    planted: str
    measured: str


def select_scores(condition: str = "full") -> Selection:
    """Select the scores of the simulated benchmark under one condition."""
    return Selection(benchmark=BENCHMARK, metric=METRIC, condition=condition)


def compare_with_truth(session: Session, simulation: Simulation) -> list[PlantedEffect]:
    """Measure each planted effect in the stored scores."""
    keys = read_stored_keys(session)
    full = _order_like(simulation, load_performance_matrix(session, select_scores()), keys)
    blind = _order_like(simulation, load_performance_matrix(session, select_scores("answer_only")), keys)
    truth = simulation.truth
    lines = [_compare_abilities(truth, full), _compare_tasks(simulation, full)]
    if truth.easy.any():
        lines.append(_compare_easy(truth, full))
    if truth.leaked.any():
        lines.append(_compare_leaked(truth, blind))
    if (truth.group >= 0).any():
        lines.append(_compare_groups(truth, full))
    vectors = load_embeddings(session, Selection(benchmark=BENCHMARK, encoder=ENCODER))
    place = {keys[prompt]: i for i, prompt in enumerate(vectors.prompt_ids.tolist())}
    lines.append(_compare_meaning(simulation, vectors.E[[place[key] for key in simulation.keys]]))
    return lines


def read_stored_keys(session: Session) -> dict[int, str]:
    """Return the key in the files of each stored prompt."""
    alias, task, benchmark = tables.prompt_alias.c, tables.task.c, tables.benchmark.c
    rows = session.execute(
        sa.select(alias.prompt_id, alias.key)
        .join(tables.task, task.id == alias.task_id)
        .join(tables.benchmark, benchmark.id == task.benchmark_id)
        .where(benchmark.name == BENCHMARK, alias.namespace == "")
    )
    return {row.prompt_id: row.key for row in rows}


def _order_like(simulation: Simulation, scores: PerformanceMatrix, keys: Mapping[int, str]) -> NDArray[np.float64]:
    """``(n_prompts, n_models)`` stored scores, rows and columns as in the simulation."""
    row = {keys[prompt]: i for i, prompt in enumerate(scores.prompt_ids.tolist())}
    rows = [row[key] for key in simulation.keys]
    return scores.Q[np.ix_(rows, [scores.models.index(model) for model in simulation.models])]


def _compare_abilities(truth: Truth, full: NDArray[np.float64]) -> PlantedEffect:
    from scipy.stats import kendalltau

    means = full.mean(axis=0)
    tau = kendalltau(truth.ability, means).statistic
    low, high = truth.ability.min(), truth.ability.max()
    return PlantedEffect(
        f"{len(means)} models with abilities from {low:.1f} to {high:.1f}",
        f"mean scores from {means.min():.2f} to {means.max():.2f}, nearly in the planted order: Kendall tau {tau:.2f}"
        if tau < 1
        else f"mean scores from {means.min():.2f} to {means.max():.2f}, in the planted order",
    )


def _compare_tasks(simulation: Simulation, full: NDArray[np.float64]) -> PlantedEffect:
    from scipy.stats import rankdata

    names = np.unique(simulation.tasks)
    by_task = np.array([full[simulation.tasks == name].mean(axis=0) for name in names])
    places = rankdata(-by_task, method="min", axis=1)
    first = places[:, full.mean(axis=0).argmax()]
    return PlantedEffect(
        f"{len(names)} tasks that favor different models",
        f"the best model is first in {(first == 1).sum()} of them; a model moves up to "
        f"{np.ptp(places, axis=0).max()} places between tasks",
    )


def _compare_easy(truth: Truth, full: NDArray[np.float64]) -> PlantedEffect:
    all_right = np.asarray((full == 1).all(axis=1))
    return PlantedEffect(
        f"{truth.easy.sum()} easy prompts",
        f"{all_right.sum()} prompts that every model solves, {(all_right & truth.easy).sum()} of them planted",
    )


def _compare_leaked(truth: Truth, blind: NDArray[np.float64]) -> PlantedEffect:
    seen, unseen = (blind[:, models].mean() for models in (truth.remembers, ~truth.remembers))
    n = int(truth.remembers.sum())
    return PlantedEffect(
        f"{truth.leaked.sum()} leaked prompts that {n} models have seen",
        f"without the question these {n} score {seen:.1%}, the others {unseen:.1%}; guessing gives {GUESSING:.0%}",
    )


def _compare_groups(truth: Truth, full: NDArray[np.float64]) -> PlantedEffect:
    members = np.flatnonzero(truth.group >= 0)
    group, answers = truth.group[members], full[members]
    agreement = (answers[:, None] == answers).mean(axis=2)
    same = (group[:, None] == group) & ~np.eye(len(group), dtype=bool)
    different = group[:, None] != group
    return PlantedEffect(
        f"{len(np.unique(group))} groups of near-duplicates, {len(members)} prompts",
        f"{agreement[same].mean():.0%} of the models score equally on two prompts of a group, "
        f"{agreement[different].mean():.0%} on two of different groups",
    )


def _compare_meaning(simulation: Simulation, E: NDArray[np.float32]) -> PlantedEffect:
    from sklearn.metrics.pairwise import cosine_similarity

    similarity = cosine_similarity(E.astype(np.float64))
    group, task = simulation.truth.group, simulation.tasks
    twins = (group[:, None] == group) & (group[:, None] >= 0) & ~np.eye(len(group), dtype=bool)
    same = (task[:, None] == task) & ~twins & ~np.eye(len(group), dtype=bool)
    across = similarity[task[:, None] != task]
    measured = f"{similarity[same].mean():.2f} within a task, {across.mean():.2f} across tasks"
    if twins.any():
        measured = f"{similarity[twins].mean():.2f} within a group, {measured}"
    return PlantedEffect(f"meaning vectors of {E.shape[1]} numbers", f"cosine similarity {measured}")
