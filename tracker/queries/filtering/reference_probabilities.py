"""Load the probabilities of reference answers, with and without the question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.performance import PerformanceMatrix, load_matrix_of_runs
from tracker.queries.resolution import BenchmarkKey, MetricKey, find_benchmark, find_metric
from tracker.queries.selected_runs.conditions import has_scores
from tracker.queries.selected_runs.runs import SelectedRun, select_runs, select_runs_of_models
from tracker.queries.selection import AnalysisInput, Selection
from tracker.queries.splits.choice import choose_split
from tracker.queries.sql import tables

KINDS: Mapping[str, str] = {
    "letters": "gold_probability_letters",
    "likelihoods": "gold_probability_likelihoods",
}
"""Metric of each kind of probability: of the option letters, or of the options' texts by their likelihoods."""
ANSWER_ONLY = "answer_only"


@dataclass(frozen=True, kw_only=True)
class ReferenceProbabilities(AnalysisInput):
    """Probabilities of the reference answers; the kinds are not comparable and are stored separately.

    Attributes:
        kinds: a matrix of probabilities per stored kind, by ``letters`` or ``likelihoods``. Its columns are the runs
            that have any, named as in the matrix of the scores; its rows are the prompts that have any.
        run_ids: all runs with probabilities.
    """

    kinds: Mapping[str, PerformanceMatrix]
    run_ids: NDArray[np.int64]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> ReferenceProbabilities:
        """Load the probabilities of the runs behind a selection's scores; empty if none are stored."""
        benchmark = find_benchmark(session, selection.benchmark)
        metric, _ = find_metric(session, benchmark, selection, ("prompt",))
        selection = choose_split(session, benchmark, metric, selection)
        return cls.of_runs(session, selection, select_runs(session, benchmark, metric, "prompt", selection))

    @classmethod
    def of_runs(cls, session: Session, selection: Selection, runs: Sequence[SelectedRun]) -> ReferenceProbabilities:
        """Load the probabilities of some runs, for the tasks and kept prompts of a selection; trials are averaged."""
        benchmark = find_benchmark(session, selection.benchmark)
        kinds = {}
        for kind, name in KINDS.items():
            metric, having = _having(session, name, runs)
            if metric and (matrix := load_matrix_of_runs(session, benchmark, metric, having, selection)):
                kinds[kind] = matrix
        used = {run for matrix in kinds.values() for run in matrix.run_ids.tolist()}
        return cls(kinds=kinds, run_ids=np.array(sorted(used), dtype=np.int64))

    @property
    def digest(self) -> str:
        """SHA-256 of every matrix."""
        digests = [f"{kind} {matrix.digest}" for kind, matrix in sorted(self.kinds.items())]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class AnswerOnlyRuns(AnalysisInput):
    """Scores of models that saw the options but not the question.

    Attributes:
        scores: of the latest such run of each model; None without any.
        probabilities: of the reference answers in those runs.
        problem: why there are no scores; '' if there are.
    """

    scores: PerformanceMatrix | None
    probabilities: ReferenceProbabilities
    problem: str = ""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> AnswerOnlyRuns:
        """Load the runs without the question of the selection's models under its metric, whatever its runs and
        condition.
        """
        benchmark = find_benchmark(session, selection.benchmark)
        metric, _ = find_metric(session, benchmark, selection, ("prompt",))
        selection = choose_split(session, benchmark, metric, selection)
        models = {run.model for run in select_runs(session, benchmark, metric, "prompt", selection)}
        answer_only = replace(selection, condition=ANSWER_ONLY, runs=())
        runs = select_runs_of_models(session, benchmark, metric, answer_only, models)
        scores = load_matrix_of_runs(session, benchmark, metric, runs, answer_only) if runs else None
        return cls(
            scores=scores,
            probabilities=ReferenceProbabilities.of_runs(session, answer_only, runs if scores else ()),
            problem="" if scores else _problem(session, benchmark, metric, answer_only, bool(runs)),
        )

    @property
    def run_ids(self) -> NDArray[np.int64]:
        """The runs behind the scores."""
        return np.empty(0, dtype=np.int64) if self.scores is None else self.scores.run_ids

    @property
    def digest(self) -> str:
        """SHA-256 of scores and probabilities."""
        scores = "" if self.scores is None else self.scores.digest
        return hashlib.sha256(f"{scores}\n{self.probabilities.digest}".encode()).hexdigest()


def _having(session: Session, name: str, runs: Sequence[SelectedRun]) -> tuple[MetricKey | None, Sequence[SelectedRun]]:
    """Return the metric of that name, and those runs with scores of prompts under it; None without any."""
    metric, run = tables.metric.c, tables.run.c
    row = session.execute(sa.select(metric.id, metric.name, metric.higher_is_better).where(metric.name == name)).first()
    if row is None:
        return None, ()
    query = (
        sa.select(run.id)
        .select_from(sa.join(tables.run, tables.metric, metric.id == row.id))
        .where(run.id.in_([run.id for run in runs]), has_scores(session, "prompt"))
    )
    stored = set(session.scalars(query))
    having = [run for run in runs if run.id in stored]
    return (MetricKey(*row), having) if having else (None, ())


def _problem(
    session: Session, benchmark: BenchmarkKey, metric: MetricKey, selection: Selection, of_other_prompts: bool
) -> str:
    """Return why there are no scores of runs without the question."""
    if of_other_prompts:
        return "The answer-only runs (answer_only) have no scores for the selected prompts."
    run, metric_columns = tables.run.c, tables.metric.c
    stored = (
        sa.select(metric_columns.name)
        .select_from(sa.join(tables.metric, tables.run, sa.true()))
        .where(run.benchmark_id == benchmark.id, run.condition == ANSWER_ONLY, run.status == "complete")
        .where(has_scores(session, "prompt", benchmark_id=benchmark.id))
        .distinct()
    )
    names = sorted(session.scalars(stored))
    if not names:
        return f"{benchmark.label} has no answer-only runs (answer_only)."
    if metric.name in names:
        return f"None of the selected models has an answer-only run (answer_only) under {metric.name}."
    return (
        f"The answer-only runs (answer_only) of {benchmark.label} have scores under {', '.join(names)}, not under "
        f"{metric.name}."
    )
