"""How prompts are a sample: clusters of prompts that share a field, and tasks as strata or clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.scores import compute_digest
from tracker.queries.selection import TASK_EFFECTS, AnalysisInput, Selection, SelectionOption, TaskEffects
from tracker.queries.sql import tables
from tracker.queries.sql.kept_reads import read_once
from tracker.statistics.grouping import Grouping, group_rows

TASK, SPLIT, NONE = "task", "split", "none"


@dataclass(frozen=True, kw_only=True)
class Clusters(AnalysisInput):
    """The cluster and the task of each prompt of a benchmark.

    Attributes:
        field: field that defines the clusters: ``task``, ``split``, a further field of the prompts, or ``none``.
        prompt_ids: ``(n,)`` int64 keys, ascending.
        names: ``(n,)`` value of the field; '' if the prompt has none. All empty for ``none``.
        tasks: ``(n,)`` name of the task; None if it is unknown.
        task_effects: ``fixed`` makes tasks strata of the clusters.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = "cluster"

    field: str
    prompt_ids: NDArray[np.int64]
    names: NDArray[np.str_]
    tasks: NDArray[np.str_] | None = None
    task_effects: TaskEffects = "random"

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Clusters:
        """Load the clusters of a selection.

        Raises:
            NotFoundError: no prompt of the benchmark has such a field.
            SelectionError: cluster and task effects contradict each other.
        """
        benchmark = find_benchmark(session, selection.benchmark)
        names_by_task = select_tasks(session, benchmark, selection)
        effects = choose_task_effects(selection, list(names_by_task.values()))
        field = selection.cluster or (TASK if effects == "random" else NONE)
        key = "clusters", benchmark.id, tuple(names_by_task.items()), field, effects
        return read_once(session, key, lambda: cls._read(session, benchmark.label, names_by_task, field, effects))

    @classmethod
    def _read(
        cls, session: Session, label: str, names_by_task: dict[int, str], field: str, effects: TaskEffects
    ) -> Clusters:
        """Return the clusters of the prompts of some tasks.

        Args:
            session: the store.
            label: of the benchmark.
            names_by_task: name of each task by its key.
            field: field that defines the clusters.
            effects: the task effects.
        """
        prompt = tables.prompt.c
        column: Any = {SPLIT: prompt.split, TASK: sa.null(), NONE: sa.null()}.get(field, prompt.details)
        rows = session.execute(
            sa.select(prompt.id, prompt.task_id, column.label("value"))
            .where(prompt.task_id.in_(names_by_task))
            .order_by(prompt.id)
        ).all()
        tasks = [names_by_task[row.task_id] for row in rows]
        if field == TASK:
            names = tasks
        elif field in (SPLIT, NONE):
            names = [row.value or "" for row in rows]
        else:
            names = [_as_text((row.value or {}).get(field)) for row in rows]
            if not any(names):
                known = {name for row in rows for name in (row.value or {})}
                raise NotFoundError(f"field of {label}'s prompts", field, [TASK, SPLIT, NONE, *sorted(known)])
        return cls(
            field=field,
            prompt_ids=np.array([row.id for row in rows], dtype=np.int64),
            names=np.array(names, dtype=np.str_),
            tasks=np.array(tasks, dtype=np.str_),
            task_effects=effects,
        )

    @classmethod
    def of_tasks(
        cls, prompt_ids: NDArray[np.int64], tasks: NDArray[np.str_], task_effects: TaskEffects | None = None
    ) -> Clusters:
        """Return the clusters of prompts whose tasks are known.

        Args:
            prompt_ids: ``(n,)`` keys, in any order.
            tasks: ``(n,)`` names of their tasks; '' without one.
            task_effects: None for the default.
        """
        effects = choose_task_effects(Selection(benchmark="", task_effects=task_effects), tasks.tolist())
        order = np.argsort(prompt_ids, kind="stable")
        names = tasks[order]
        return cls(
            field=TASK if effects == "random" else NONE,
            prompt_ids=prompt_ids[order],
            names=names if effects == "random" else np.full(len(names), ""),
            tasks=names,
            task_effects=effects,
        )

    @property
    def digest(self) -> str:
        """SHA-256 of prompts, clusters and tasks."""
        tasks = () if self.tasks is None else self.tasks.tolist()
        return compute_digest((self.prompt_ids,), (self.field, self.task_effects, *self.names.tolist(), *tasks))

    def align(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.str_]:
        """Return the cluster of each of some prompts.

        Args:
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        return self.names[np.searchsorted(self.prompt_ids, prompt_ids)]

    def group(self, prompt_ids: NDArray[np.int64]) -> Grouping:
        """Return the clusters of some prompts, in strata if task effects are fixed.

        Args:
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        rows = np.searchsorted(self.prompt_ids, prompt_ids)
        strata = self.tasks[rows] if self.tasks is not None and self.task_effects == "fixed" else None
        return group_rows(self.names[rows], strata)

    @property
    def n_named_tasks(self) -> int:
        """Number of tasks with a name."""
        return 0 if self.tasks is None else _count_named(self.tasks.tolist())

    def with_task_effects(self, task_effects: Literal["random", "fixed"]) -> Clusters:
        """Return the same prompts under other task effects; clusters by a field stay.

        Args:
            task_effects: the effects.
        """
        assert self.tasks is not None
        if self.field not in (TASK, NONE):
            return replace(self, task_effects=task_effects)
        is_random = task_effects == "random"
        names = self.tasks if is_random else np.full(len(self.tasks), "")
        return replace(self, field=TASK if is_random else NONE, names=names, task_effects=task_effects)


def choose_task_effects(selection: Selection, tasks: list[str]) -> TaskEffects:
    """Return the task effects of a selection.

    Args:
        selection: the user's choices.
        tasks: names of the tasks; '' has no name.

    Raises:
        SelectionError: there are no such effects, or the cluster contradicts them.
    """
    effects, cluster = selection.task_effects, selection.cluster
    if effects is not None and effects not in TASK_EFFECTS:
        raise SelectionError(f"No task effects {effects!r}. Known: {', '.join(TASK_EFFECTS)}.")
    if effects is None:
        effects = "random" if cluster == TASK else "fixed" if _count_named(tasks) > 1 else "none"
    if cluster == TASK and effects != "random":
        raise SelectionError(f"--cluster task contradicts --task-effects {effects}. Leave one of them out.")
    if cluster == NONE and effects == "random":
        raise SelectionError("--cluster none contradicts --task-effects random. Leave one of them out.")
    return effects


def _count_named(tasks: list[str]) -> int:
    return len(set(tasks) - {""})


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)
