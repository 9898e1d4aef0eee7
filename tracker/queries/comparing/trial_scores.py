"""Load the scores of prompts with their trials, which other inputs average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.packed.stored_scores import Grid
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.resolution import find_benchmark, find_metric
from tracker.queries.scores import compute_digest, read_scores
from tracker.queries.selection import AnalysisInput, Selection, Unit
from tracker.queries.sql.arrow import number_columns, read_arrow
from tracker.queries.sql.run_terms import run_terms
from tracker.statistics.ranking import overflow_exponent

PASS_SCORE = 1.0
"""A trial passes with at least this score, if all scores lie in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class TrialScores(AnalysisInput):
    """The scores of a benchmark under one metric, with the spread of the trials of each prompt.

    Attributes:
        scores: means over the trials of each prompt.
        count: ``(n_prompts, n_models)`` int64 trials; 0 without a score.
        squares: ``(n_prompts, n_models)`` sum of squared deviations of the trials from their mean, for scores over
            2**exponent.
        passed: ``(n_prompts, n_models)`` int64 trials with a score of at least `PASS_SCORE`.
        is_unit: whether every score lies in [0, 1], so that a trial passes or fails.
        exponent: 0 unless squares of the scores would overflow or underflow.
    """

    SCORE_UNITS: ClassVar[tuple[Unit, ...]] = ("prompt",)

    scores: PerformanceMatrix
    count: NDArray[np.int64]
    squares: NDArray[np.float64]
    passed: NDArray[np.int64]
    is_unit: bool
    exponent: int = 0

    def scaled(self) -> TrialScores:
        """Return the same trials with scores over 2**exponent, whose squares are finite."""
        if not self.exponent:
            return self
        scores, lift = self.scores, -self.exponent
        linearized = None if scores.linearized is None else np.ldexp(scores.linearized, lift)
        return replace(self, scores=replace(scores, Q=np.ldexp(scores.Q, lift), linearized=linearized), exponent=0)

    @property
    def run_ids(self) -> NDArray[np.int64]:
        """The run behind each model."""
        return self.scores.run_ids

    @property
    def digest(self) -> str:
        """SHA-256 of scores and trials."""
        return compute_digest((self.count, self.squares, self.passed), (self.scores.digest,))

    @property
    def missing_warnings(self) -> tuple[str, ...]:
        """What the policy for missing scores left out."""
        return self.scores.missing_warnings

    @classmethod
    def load(cls, session: Session, selection: Selection) -> TrialScores:
        """Load the trials of a selection; rows and columns are those of `load_performance_matrix`.

        Raises:
            NotFoundError: a benchmark, metric, model, task or run does not exist.
            SelectionError: the selection is empty, or names no metric although there are several.
        """
        trials = load_trials(session, selection, load_performance_matrix(session, selection))
        return trials.with_worst() if selection.missing == "worst" else trials

    def with_worst(self) -> TrialScores:
        """Return the trials with as many of the worst possible score as a model has of any prompt, where it has none.

        The scores already have it.
        """
        count = np.where(self.count == 0, self.count.max(axis=0), self.count)
        is_passed = self.scores.worst is not None and self.scores.worst >= PASS_SCORE
        return replace(self, count=count, passed=np.where(self.count == 0, count * is_passed, self.passed))


def load_trials(session: Session, selection: Selection, scores: PerformanceMatrix) -> TrialScores:
    """Load the trials behind a performance matrix.

    Args:
        session: the store; only committed data are visible.
        selection: of the matrix.
        scores: the matrix.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    metric, _ = find_metric(session, benchmark, replace(selection, metric=scores.metric), ("prompt",))
    runs = scores.run_ids.tolist()
    if scores.n_trials == 1:
        return _as_single_trials(scores, read_scores(session, metric.id, runs, scores.prompt_ids))
    grid, size, shape = Grid(runs, scores.prompt_ids), scores.Q.size, scores.Q.shape
    rows: Any = read_arrow(
        session,
        f"SELECT run_id, prompt_id, value FROM score WHERE metric_id = {metric.id} AND {run_terms(session, runs)} "
        "ORDER BY run_id, prompt_id, trial",
        runs=runs,
    )
    run, prompt, values = number_columns(rows)
    cell, is_row = grid.cells(run, prompt)
    values = values[is_row]
    count = np.bincount(cell, minlength=size)
    exponent = overflow_exponent(values[np.isfinite(values)])
    scaled = np.ldexp(values, -exponent)
    mean = np.bincount(cell, scaled, minlength=size) / np.maximum(count, 1)
    squares = np.bincount(cell, (scaled - mean[cell]) ** 2, minlength=size)
    return TrialScores(
        scores=scores,
        count=count.reshape(shape).astype(np.int64),
        squares=squares.astype(np.float64).reshape(shape),
        passed=np.bincount(cell, values >= PASS_SCORE, minlength=size).reshape(shape).astype(np.int64),
        is_unit=bool(((values >= 0) & (values <= 1)).all()),
        exponent=exponent,
    )


def _as_single_trials(scores: PerformanceMatrix, Q: NDArray[np.float64]) -> TrialScores:
    """Return the trials behind a performance matrix with at most one per prompt.

    Args:
        scores: the matrix.
        Q: ``(n_prompts, n_models)`` its scores as stored, NaN = missing.
    """
    values = Q[~np.isnan(Q)]
    return TrialScores(
        scores=scores,
        count=(~np.isnan(Q)).astype(np.int64),
        squares=np.zeros(Q.shape),
        passed=(Q >= PASS_SCORE).astype(np.int64),
        is_unit=bool(((values >= 0) & (values <= 1)).all()),
        exponent=overflow_exponent(values[np.isfinite(values)]),
    )
