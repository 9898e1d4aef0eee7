"""What was planted beside what the store holds of it, in sentences.

Nothing is taken from the simulation but the truth: every number on the right is computed from stored scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

ANALYSIS_PARAMETERS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "prompt-correlation": ({}, {"null": "margins"}),
    "prompt-clusters": ({"n_permutations": 19}, {"n_permutations": 19, "null": "margins"}),
    "semantic-similarity": ({"similarity": "hamming"},),
    "comparison": (
        {"model_a": "northlight/borealis-2-large", "model_b": "quillworks/folio-72b"},
        {"model_a": "northlight/borealis-2-large", "model_b": "oakhollow/acorn-7b"},
    ),
}
"""Parameters with which an analysis is run, where once with the defaults does not show everything planted."""

EXPECTED_FINDINGS: Mapping[str, str] = {
    "prompt-correlation": (
        "Planted: easy and hard prompts, groups of near-duplicates, tasks that favour different models. So prompts "
        "should agree more than chance allows: under shuffled columns through difficulty alone, and still where "
        "every prompt keeps its number right (margins), through groups and tasks."
    ),
    "prompt-clusters": (
        "Planted: easy and hard prompts, models from weak to able, and near-duplicates in groups far smaller than a "
        "cluster; no few large groups. So clusters should be no clearer than those of tables with the same abilities "
        "and difficulties (margins); what is clearer than shuffled columns is difficulty. No number of clusters was "
        "planted, so the best one should say little."
    ),
    "prompt-weighting": (
        "Planted: models whose neighbours are close, groups of near-duplicates, tasks of equal size. So weights should "
        "move means, and ranks among close models; every task counting the same is no other weighting here. Prompts "
        "were not made in a few clusters, so how many are found, and what follows, should change with the seed."
    ),
    "benchmark-growth": (
        "Planted: easy and hard prompts. The most informative ones, few models solve: they should begin far below the "
        "mean of all; those of shuffled tables below it as well, though less, since the method does that by itself. "
        "Whether the ranking settles sooner or later than in random order should change with the seed."
    ),
    "semantic-similarity": (
        "Planted: near-duplicates mean nearly the same, and prompts of a task resemble each other. Models answer "
        "near-duplicates alike and are better at some tasks than at others. So performance should be more alike where "
        "meaning is, on average and for single prompts; weakly, since few pairs are near-duplicates."
    ),
    "task-subsets": (
        "Planted: abilities that all tasks measure, and tasks that favour different models. So a set of few tasks "
        "should keep models far apart in order and change neighbours; the median set should be farther than the best, "
        "and tasks chosen on half of the models farther on the other half."
    ),
    "social-choice": (
        "Planted: abilities that all tasks measure, and tasks that favour different models. So diversity should be "
        "above 0 and well below that of random ranks, models next to each other should change places under other "
        "weights of tasks, and models far apart keep theirs. With few tasks both sensitivities should be proven."
    ),
    "sensitivity-sweep": (
        "Planted: abilities from far apart to next to each other, and tasks that favour different models. So fewer "
        "pairs should be reversed the more the least of the tasks has to count, and none once all count the same; "
        "from well below that on, none of those far apart."
    ),
    "voting-rules": (
        "Planted: abilities from far apart to next to each other, and few tasks that favour different models. So rules "
        "should agree on most pairs and put models far apart in the same order, while the first place, if the best two "
        "are close, can go to another model by another rule or without one of the tasks. With few models Kemeny's "
        "order should be proven."
    ),
    "smart-filtering": (
        "Planted: prompts that every model answers with confidence, prompts that most models have seen, and originals "
        "with their edits. So the easy, the contaminated and the similar ones should be these, all of them and no "
        "others. What is left is harder, so models should agree on less of it, and keep their order."
    ),
    "filter-baselines": (
        "Planted: prompts that tell no model from another. Without them models should agree less than on random "
        "subsets of the same size, while the ranking changes little either way."
    ),
    "filter-stability": (
        "Planted: easy and leaked prompts that do not depend on which models are asked. So fewer filter models should "
        "remove hardly more than all of them; with vectors by one encoder there is nothing to compare."
    ),
    "comparison": (
        "Planted: abilities from far apart to next to each other, and tasks that favour different models. So the two "
        "most able models should hardly be told apart, the first and one far below it clearly, with most tasks on its "
        "side. Models find the same prompts hard, so an unpaired test should have a larger error than a paired one "
        "that takes prompts as independent, and clusters one larger than both where tasks disagree."
    ),
    "rank-intervals": (
        "Planted: abilities from far apart to next to each other. So models far apart should be told apart and "
        "neighbours should not: ranks should have intervals of several places, and groups of neighbours overlap. With "
        "few tasks, of which each favours other models, the intervals are wide."
    ),
    "drift": (
        "Planted: one model was run twice, and three months before it got about an eighth of what it now gets right "
        "wrong. So its rise should be more than chance, as it stands in nearly every task."
    ),
    "weight-robustness": (
        "Planted: abilities from far apart to next to each other. So under random weights models far apart should keep "
        "their order in every draw, neighbours should change it, and the spread should be that of the number of "
        "prompts: twice as many would make it narrower by a factor of about 1.4."
    ),
}
"""What the planted truth should make an analysis find."""

PRINTED_TESTS: Mapping[str, tuple[str, ...]] = {
    "prompt-correlation": (
        "hamming.variance",
        "hamming.ks_d",
        "cosine.variance",
        "cosine.ks_d",
        "jaccard.variance",
        "jaccard.ks_d",
    ),
}
"""Which tests of an analysis are printed; otherwise the first few of its headline."""


@dataclass(frozen=True)
class PlantedEffect:
    """One thing that was planted, and what the scores show of it."""

    planted: str
    measured: str


def select_scores(condition: str = "full") -> Selection:
    """The simulated benchmark's scores under one condition."""
    return Selection(benchmark=BENCHMARK, metric=METRIC, condition=condition)


def compare_with_truth(session: Session, simulation: Simulation) -> list[PlantedEffect]:
    """A line for each thing planted."""
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
    """What the files call each stored prompt."""
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
        f"mean scores from {means.min():.2f} to {means.max():.2f}, in the planted order but for a few neighbours: "
        f"Kendall tau {tau:.2f}"
        if tau < 1
        else f"mean scores from {means.min():.2f} to {means.max():.2f}, in exactly the planted order",
    )


def _compare_tasks(simulation: Simulation, full: NDArray[np.float64]) -> PlantedEffect:
    from scipy.stats import rankdata

    names = np.unique(simulation.tasks)
    by_task = np.array([full[simulation.tasks == name].mean(axis=0) for name in names])
    places = rankdata(-by_task, method="min", axis=1)
    first = places[:, full.mean(axis=0).argmax()]
    return PlantedEffect(
        f"{len(names)} tasks that favour different models",
        f"the first overall is first in {(first == 1).sum()} of them; from task to task a model moves by up to "
        f"{np.ptp(places, axis=0).max()} places",
    )


def _compare_easy(truth: Truth, full: NDArray[np.float64]) -> PlantedEffect:
    all_right = np.asarray((full == 1).all(axis=1))
    return PlantedEffect(
        f"{truth.easy.sum()} easy prompts",
        f"{all_right.sum()} prompts that every model gets right, {(all_right & truth.easy).sum()} of them planted",
    )


def _compare_leaked(truth: Truth, blind: NDArray[np.float64]) -> PlantedEffect:
    seen, unseen = (blind[:, models].mean() for models in (truth.remembers, ~truth.remembers))
    n = int(truth.remembers.sum())
    return PlantedEffect(
        f"{truth.leaked.sum()} leaked prompts that {n} models have seen",
        f"without the question these {n} get {seen:.1%} right, the others {unseen:.1%}; guessing gives {GUESSING:.0%}",
    )


def _compare_groups(truth: Truth, full: NDArray[np.float64]) -> PlantedEffect:
    members = np.flatnonzero(truth.group >= 0)
    group, answers = truth.group[members], full[members]
    agreement = (answers[:, None] == answers).mean(axis=2)
    same = (group[:, None] == group) & ~np.eye(len(group), dtype=bool)
    different = group[:, None] != group
    return PlantedEffect(
        f"{len(np.unique(group))} groups of near-duplicates, {len(members)} prompts",
        f"two of a group are both right or both wrong for {agreement[same].mean():.0%} of the models, "
        f"two of different groups for {agreement[different].mean():.0%}",
    )


def _compare_meaning(simulation: Simulation, E: NDArray[np.float32]) -> PlantedEffect:
    from sklearn.metrics.pairwise import cosine_similarity

    similarity = cosine_similarity(E.astype(np.float64))
    group, task = simulation.truth.group, simulation.tasks
    twins = (group[:, None] == group) & (group[:, None] >= 0) & ~np.eye(len(group), dtype=bool)
    same = (task[:, None] == task) & ~twins & ~np.eye(len(group), dtype=bool)
    across = similarity[task[:, None] != task]
    measured = f"cosine similarity is {similarity[same].mean():.2f} within a task, {across.mean():.2f} across"
    if twins.any():
        measured = f"two of a group have cosine similarity {similarity[twins].mean():.2f}; otherwise {measured}"
    return PlantedEffect(f"{E.shape[1]} numbers for what a prompt means: close in groups, less so in tasks", measured)
