"""Means over the prompts of each task, after a policy for missing scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

import numpy as np
from numpy.typing import NDArray

from tracker.name_lists import join_names
from tracker.queries.ranking.missing import (
    ExcludedModel,
    MissingPolicy,
    no_participant,
    select_participants,
    treat_rows,
)

MAX_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class TaskMeans:
    """Means of runs over the prompts of tasks.

    Attributes:
        T: ``(n_tasks, n_runs)`` means; NaN = missing.
        n_prompts: ``(n_tasks, n_runs)`` prompts behind each mean.
        coverage: ``(n_tasks, n_runs)`` share of the prompts scored for any run that have a score.
        takes_part: ``(n_runs,)`` runs with enough scores.
        excluded: the others.
        warnings: what a policy left out or filled in, and means over part of a task.
    """

    T: NDArray[np.float64]
    n_prompts: NDArray[np.int64]
    coverage: NDArray[np.float64]
    takes_part: NDArray[np.bool_]
    excluded: tuple[ExcludedModel, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScoresByTask:
    """Scores of prompts, by task.

    Attributes:
        Q: ``(n_prompts, n_runs)``, NaN = missing.
        names: ``(n_prompts,)`` task of each prompt, sorted.
        tasks: names of the tasks.
        models: name of each column.
    """

    Q: NDArray[np.float64]
    names: NDArray[np.str_]
    tasks: Sequence[str]
    models: Sequence[str]

    def rows_of(self, task: str) -> slice:
        """Return the rows of a task."""
        return slice(int(np.searchsorted(self.names, task, "left")), int(np.searchsorted(self.names, task, "right")))

    def average(self) -> TaskMeans:
        """Return the means over the scores as they are."""
        shape = (len(self.tasks), self.Q.shape[1])
        means, counts, coverage = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64), np.zeros(shape)
        for i, task in enumerate(self.tasks):
            block = self.Q[self.rows_of(task)]
            counts[i] = np.count_nonzero(~np.isnan(block), axis=0)
            np.divide(_sums(block), counts[i], out=means[i], where=counts[i] > 0)
            coverage[i] = counts[i] / max(1, int((~np.isnan(block)).any(axis=1).sum()))
        everyone = np.ones(self.Q.shape[1], dtype=np.bool_)
        return TaskMeans(T=means, n_prompts=counts, coverage=coverage, takes_part=everyone)


def average_treated(scores: ScoresByTask, policy: MissingPolicy, is_treated: NDArray[np.bool_]) -> TaskMeans:
    """Return the means after a policy for missing scores.

    A task of which a run has less than the least coverage counts as missing: the run's scores there are not used, and
    do not decide which prompts the others share. Under ``worst`` every prompt has a score.

    Args:
        scores: of the prompts.
        policy: the policy.
        is_treated: ``(n_runs,)`` columns to treat; the others have published scores.

    Raises:
        SelectionError: no model has enough scores; or see `apply_missing_policy`.
    """
    stored, Q = scores.average(), scores.Q
    is_measured = np.asarray((~np.isnan(Q[:, is_treated])).any(axis=1))
    if not is_measured.any():
        return stored
    participants = select_participants(Q[is_measured], policy, models=scores.models, is_ranked=is_treated)
    if not participants.columns.any() and is_treated.all():
        raise no_participant(participants.excluded, policy)
    is_completed = policy.name == "worst"
    has_few = (stored.coverage < policy.min_coverage - 1e-12) & (stored.n_prompts > 0) & participants.columns
    has_few &= not is_completed
    treated = Q.copy()
    for i, task in enumerate(scores.tasks):
        rows = np.arange(len(Q))[scores.rows_of(task)]
        rows = rows[is_measured[rows]]
        treated[np.ix_(rows, has_few[i])] = np.nan
        columns = participants.columns & (~np.isnan(treated[rows]).all(axis=0) | is_completed)
        kept, filled, _ = treat_rows(treated[rows], policy, columns, scores.models)
        treated[np.ix_(rows, columns)] = np.nan
        treated[np.ix_(rows[kept], columns)] = filled[:, columns]
    means = replace(scores, Q=treated).average()
    gaps = _list_gaps(scores, stored, has_few, participants.columns)
    return replace(
        means,
        coverage=np.where(participants.columns & is_completed, 1.0, stored.coverage),
        takes_part=participants.columns | ~is_treated,
        excluded=participants.excluded,
        warnings=(*participants.warnings, *_describe_policy(scores, means, policy, participants.columns), *gaps),
    )


def _describe_policy(
    scores: ScoresByTask, means: TaskMeans, policy: MissingPolicy, columns: NDArray[np.bool_]
) -> list[str]:
    """Return what the policy did to means; nothing if no score was missing."""
    if not columns.any() or not np.isnan(scores.Q[:, columns]).any():
        return []
    if policy.name == "common":
        n_used = int(means.n_prompts[:, columns].max(axis=1).sum())
        return [f"Means are over the {n_used:,} of {len(scores.Q):,} prompts that all models with the task share."]
    if policy.name == "bounds":
        return ["Means are over the scores that a model has."]
    replaced = "the worst possible score" if policy.name == "worst" else "estimates from the other scores"
    return [f"Missing scores are replaced by {replaced}."]


def _list_gaps(
    scores: ScoresByTask, stored: TaskMeans, has_few: NDArray[np.bool_], columns: NDArray[np.bool_]
) -> list[str]:
    """Return the cells that are means over part of a task, and those that count as missing."""
    partial = (stored.coverage < 1) & (stored.n_prompts > 0) & columns & ~has_few
    texts = []
    for cells, text in (
        (has_few, "Counted as missing, because too few prompts of the task have a score"),
        (partial, "Part of the task's prompts lack a score"),
    ):
        names = [
            f"{scores.models[j]} in {scores.tasks[i]} ({stored.coverage[i, j]:.1%})"
            for i, j in sorted(np.argwhere(cells).tolist(), key=lambda cell: stored.coverage[cell[0], cell[1]])
        ]
        if names:
            texts.append(f"{text}: {join_names(names, MAX_NAMES, noun='more')}.")
    return texts


def _sums(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over the prompts of each run, ``(n_runs,)``, independent of their order."""
    sums = np.nansum(scores, axis=0)
    is_measured = ~np.isnan(scores)
    fractional = np.isfinite(sums) & (is_measured & (scores != np.rint(scores))).any(axis=0)
    for run in np.flatnonzero(fractional):
        sums[run] = fsum(scores[is_measured[:, run], run].tolist())
    return np.asarray(sums)
