"""How sure models were of the gold answer, with the question before them and without."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries import tables
from tracker.queries.performance import PerformanceMatrix, performance_matrix
from tracker.queries.resolution import chosen_runs, find_benchmark, find_metric
from tracker.queries.selection import Selection

KINDS: Mapping[str, str] = {
    "letters": "gold_probability_letters",
    "likelihoods": "gold_probability_likelihoods",
}
"""Metric of each kind of probability: of the option letters alone, or of the options' texts by their likelihoods."""


@dataclass(frozen=True, kw_only=True)
class GoldProbabilities:
    """Probabilities that models gave to the gold answers; the kinds do not compare and are kept apart.

    Attributes:
        kinds: a matrix of probabilities for each kind that is stored, by ``letters`` or ``likelihoods``.
        run_ids: of all runs that any of them came from.
    """

    kinds: Mapping[str, PerformanceMatrix]
    run_ids: NDArray[np.int64]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> GoldProbabilities:
        """Those of the runs that a selection's scores come from; none where none are stored."""
        runs = _runs(session, selection)
        return cls.of_runs(session, selection, runs)

    @classmethod
    def of_runs(cls, session: Session, selection: Selection, runs: tuple[int, ...]) -> GoldProbabilities:
        """Those of some runs, by key."""
        kinds = {}
        for kind, metric in KINDS.items():
            having = _having(session, metric, runs)
            if having:
                kinds[kind] = performance_matrix(session, replace(selection, metric=metric, runs=having))
        used = {run for matrix in kinds.values() for run in matrix.run_ids.tolist()}
        return cls(kinds=kinds, run_ids=np.array(sorted(used), dtype=np.int64))

    @property
    def digest(self) -> str:
        """SHA-256 of every matrix."""
        told = [f"{kind} {matrix.digest}" for kind, matrix in sorted(self.kinds.items())]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class AnswerOnlyRuns:
    """What models scored where they saw the options but not the question.

    Attributes:
        scores: of the latest such run of each model; None where there is none.
        probabilities: of the gold answers in those runs.
    """

    scores: PerformanceMatrix | None
    probabilities: GoldProbabilities

    @classmethod
    def load(cls, session: Session, selection: Selection) -> AnswerOnlyRuns:
        """Those of the selection's models under its metric, whatever its runs and condition."""
        asked = replace(selection, condition="answer_only", runs=())
        nothing = GoldProbabilities(kinds={}, run_ids=np.empty(0, dtype=np.int64))
        benchmark = find_benchmark(session, selection.benchmark)
        metric, _ = find_metric(session, benchmark, selection, ("prompt",))
        try:
            scores = performance_matrix(session, replace(asked, metric=metric.name))
        except (NotFoundError, SelectionError):
            return cls(scores=None, probabilities=nothing)
        runs = tuple(scores.run_ids.tolist())
        return cls(scores=scores, probabilities=GoldProbabilities.of_runs(session, asked, runs))

    @property
    def run_ids(self) -> NDArray[np.int64]:
        """The runs behind the scores."""
        return np.empty(0, dtype=np.int64) if self.scores is None else self.scores.run_ids

    @property
    def digest(self) -> str:
        """SHA-256 of scores and probabilities."""
        scores = "" if self.scores is None else self.scores.digest
        return hashlib.sha256(f"{scores}\n{self.probabilities.digest}".encode()).hexdigest()


def _runs(session: Session, selection: Selection) -> tuple[int, ...]:
    benchmark = find_benchmark(session, selection.benchmark)
    metric, _ = find_metric(session, benchmark, selection, ("prompt",))
    return tuple(run.id for run in chosen_runs(session, benchmark, metric, "prompt", selection))


def _having(session: Session, metric: str, runs: tuple[int, ...]) -> tuple[int, ...]:
    """Those of some runs that have scores under a metric."""
    score = tables.score.c
    key = session.scalar(sa.select(tables.metric.c.id).where(tables.metric.c.name == metric))
    if key is None or not runs:
        return ()
    there = sa.select(sa.literal(1)).where(score.run_id == tables.run.c.id, score.metric_id == key).limit(1)
    found = sa.select(tables.run.c.id).where(
        tables.run.c.id.in_(runs), there.correlate(tables.run).scalar_subquery().is_not(None)
    )
    return tuple(session.scalars(found.order_by(tables.run.c.id)))
