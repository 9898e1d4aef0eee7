"""Load what may explain scores: few-shot examples of runs, families of models, lengths of prompts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.resolution import find_benchmark, select_tasks
from tracker.queries.scores import compute_digest
from tracker.queries.selection import AnalysisInput, Selection
from tracker.queries.sql import tables


@dataclass(frozen=True, kw_only=True)
class Covariates(AnalysisInput):
    """Covariates of a benchmark's runs and prompts, where stored.

    Attributes:
        run_ids: ``(m,)`` int64 keys of the benchmark's runs, ascending.
        few_shot: ``(m,)`` few-shot examples before each question; NaN if unknown.
        families: ``(m,)`` family of each run's model; '' if unknown.
        prompt_ids: ``(n,)`` int64 keys of the prompts of the selected tasks, ascending.
        lengths: ``(n,)`` characters of each question; NaN if its text is unknown.
    """

    run_ids: NDArray[np.int64]
    few_shot: NDArray[np.float64]
    families: NDArray[np.str_]
    prompt_ids: NDArray[np.int64]
    lengths: NDArray[np.float64]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Covariates:
        """Load the covariates of a selection's benchmark and tasks.

        Raises:
            NotFoundError: a benchmark or task does not exist.
        """
        benchmark = find_benchmark(session, selection.benchmark)
        tasks = select_tasks(session, benchmark, selection)
        run, model, prompt = tables.run.c, tables.model.c, tables.prompt.c
        runs = session.execute(
            sa.select(run.id, run.few_shot, model.family)
            .join(tables.model, model.id == run.model_id)
            .where(run.benchmark_id == benchmark.id)
            .order_by(run.id)
        ).all()
        prompts = session.execute(
            sa.select(prompt.id, sa.func.length(prompt.text).label("length"))
            .where(prompt.task_id.in_(tasks))
            .order_by(prompt.id)
        ).all()
        return cls(
            run_ids=np.array([row.id for row in runs], dtype=np.int64),
            few_shot=np.array([row.few_shot for row in runs], dtype=np.float64),
            families=np.array([row.family or "" for row in runs], dtype=np.str_),
            prompt_ids=np.array([row.id for row in prompts], dtype=np.int64),
            lengths=np.array([row.length for row in prompts], dtype=np.float64),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of runs, prompts and covariates."""
        return compute_digest((self.run_ids, self.few_shot, self.prompt_ids, self.lengths), self.families.tolist())

    def rows_of_runs(self, run_ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the indices of some runs, all among ``self.run_ids``."""
        return np.searchsorted(self.run_ids, run_ids)

    def rows_of_prompts(self, prompt_ids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the indices of some prompts, all among ``self.prompt_ids``."""
        return np.searchsorted(self.prompt_ids, prompt_ids)
