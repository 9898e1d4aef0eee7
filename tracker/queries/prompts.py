"""Load prompts with their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.selection import AnalysisInput, Selection
from tracker.queries.splits.names import check_split, split_condition
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class PromptTexts(AnalysisInput):
    """A benchmark's prompts as stored.

    Attributes:
        prompt_ids: ``(n,)`` int64 keys, ascending.
        tasks: task name of each; '' without a task.
        names: name of each in files, tables before other harnesses; its key without a name.
        texts: the question of each; None if unknown.
        choices: the options of each; None without options.
        answers: the reference answer of each; None if unknown.
        details: further fields of each, by name.
        splits: train, validation, test, ... of each; None if unknown, the default for all.
    """

    prompt_ids: NDArray[np.int64]
    tasks: tuple[str, ...]
    names: tuple[str, ...]
    texts: tuple[str | None, ...]
    choices: tuple[Sequence[str] | None, ...]
    answers: tuple[str | None, ...]
    details: tuple[Mapping[str, Any], ...]
    splits: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.splits:
            object.__setattr__(self, "splits", (None,) * len(self.prompt_ids))

    @classmethod
    def load(cls, session: Session, selection: Selection) -> PromptTexts:
        """Load the prompts of a selection's tasks; see `load_prompts`."""
        return load_prompts(session, selection)

    @property
    def digest(self) -> str:
        """SHA-256 of all fields except splits, which affect no result."""
        content = (self.tasks, self.names, self.texts, self.choices, self.answers, self.details)
        return hashlib.sha256(self.prompt_ids.tobytes() + orjson.dumps(content)).hexdigest()

    def find_rows(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the indices of some prompts.

        Args:
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        return np.searchsorted(self.prompt_ids, prompt_ids)

    def guessing_floors(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the chance of guessing each answer: 1 / number of options; 0 for an open prompt.

        Args:
            prompt_ids: ``(m,)`` keys, all among ``self.prompt_ids``.
        """
        n_options = np.array([len(options or ()) for options in self.choices], dtype=np.float64)
        floors = np.divide(1.0, n_options, out=np.zeros(len(n_options)), where=n_options > 1)
        return np.asarray(floors[self.find_rows(prompt_ids)])

    def without_contents(self) -> PromptOutline:
        """Return the prompts with their names and tasks alone, and the digest of all of it."""
        nothing = (None,) * len(self.prompt_ids)
        return PromptOutline(
            prompt_ids=self.prompt_ids,
            tasks=self.tasks,
            names=self.names,
            splits=self.splits,
            texts=nothing,
            choices=nothing,
            answers=nothing,
            details=({},) * len(nothing),
            full_digest=self.digest,
        )


@dataclass(frozen=True, kw_only=True)
class PromptOutline(PromptTexts):
    """Prompts without texts, options, reference answers and details, for results that show none of them.

    Attributes:
        full_digest: digest of the prompts with all of it.
    """

    full_digest: str

    @property
    def digest(self) -> str:
        """SHA-256 of all fields of the prompts, as if they were present."""
        return self.full_digest


def load_prompts(session: Session, selection: Selection) -> PromptTexts:
    """Load the prompts of a selection's tasks and splits, with or without scores.

    Raises:
        NotFoundError: a benchmark, task or split does not exist.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    tasks = select_tasks(session, benchmark, selection)
    only = load_selected_filter(session, benchmark, selection)
    check_split(session, tasks, selection.split)
    prompt = tables.prompt.c
    names = load_prompt_names(session, tables.prompt_alias.c.task_id.in_(tasks))
    rows = session.execute(
        sa.select(prompt.id, prompt.task_id, prompt.text, prompt.choices, prompt.answer, prompt.details, prompt.split)
        .where(prompt.task_id.in_(tasks), split_condition(selection.split))
        .order_by(prompt.id)
    ).all()
    if only is not None:
        stays = only.align(np.array([row.id for row in rows], dtype=np.int64))[0]
        rows = [row for row, kept in zip(rows, stays.tolist(), strict=True) if kept]
    return PromptTexts(
        prompt_ids=np.array([row.id for row in rows], dtype=np.int64),
        tasks=tuple(tasks[row.task_id] for row in rows),
        names=tuple(names.get(row.id, str(row.id)) for row in rows),
        texts=tuple(row.text for row in rows),
        choices=tuple(row.choices for row in rows),
        answers=tuple(row.answer for row in rows),
        details=tuple(row.details or {} for row in rows),
        splits=tuple(row.split for row in rows),
    )
