"""Load the scores of the same models on another benchmark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.resolution import find_benchmark, find_metric
from tracker.queries.selection import OptionalInput, Selection, SelectionOption


@dataclass(frozen=True, kw_only=True)
class BenchmarkScores(OptionalInput):
    """Mean score of each model on another benchmark.

    Attributes:
        benchmark, metric: of the scores.
        scores: mean over its prompts (or tasks) by the model's name, in the metric's unit.
        higher_is_better: whether larger scores are better.
        run_ids: the runs behind the scores.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = "against"

    benchmark: str
    metric: str
    scores: Mapping[str, float]
    higher_is_better: bool
    run_ids: NDArray[np.int64]

    @property
    def label(self) -> str:
        """The benchmark with its metric."""
        return f"{self.benchmark} ({self.metric})"

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Return whether a selection names another benchmark."""
        return selection.against is not None

    @classmethod
    def load(cls, session: Session, selection: Selection) -> BenchmarkScores:
        """Load the scores that a selection is compared with, as of its date; see `load_benchmark_scores`."""
        scores = load_benchmark_scores(session, selection.against or "", as_of=selection.as_of)
        itself = scores.benchmark == find_benchmark(session, selection.benchmark).label
        if itself and scores.metric == (selection.metric or scores.metric):
            raise SelectionError(f"--against {selection.against} is the selected benchmark itself. Name another one.")
        return scores

    @property
    def digest(self) -> str:
        """SHA-256 of names, scores and their direction."""
        content = (self.benchmark, self.metric, self.higher_is_better, sorted(self.scores.items()))
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def align(self, models: Sequence[str]) -> NDArray[np.float64]:
        """Return the score of each of some models, ``(n_models,)``, larger is better; NaN without a score."""
        sign = 1.0 if self.higher_is_better else -1.0
        return np.array([sign * self.scores.get(name, np.nan) for name in models], dtype=np.float64)


def load_benchmark_scores(session: Session, name: str, *, as_of: datetime | None = None) -> BenchmarkScores:
    """Load one score per model of a benchmark; a model that lacks too many prompts or tasks has none.

    Args:
        session: the store; only committed data are visible.
        name: name of the benchmark, or name@revision; followed by ``:metric`` for another metric than its default.
        as_of: only runs ingested by that time.

    Raises:
        NotFoundError: the benchmark or metric does not exist.
        AmbiguousError: the benchmark has several revisions, and none is named.
        SelectionError: the benchmark has no scores.
    """
    benchmark, metric = _split_metric(session, name)
    try:
        selection = Selection(benchmark=benchmark, metric=metric, as_of=as_of)
        key = find_benchmark(session, benchmark)
        chosen, _ = find_metric(session, key, selection, ("prompt", "task"), option=f"--against {name}:NAME")
        selection = replace(selection, metric=chosen.name)
        board = load_leaderboard(session, selection, with_rank_intervals=False)
    except SelectionError as error:
        raise SelectionError(f"--against {name}: {error}") from error
    ranked = [row for row in board.rows if not row.excluded]
    return BenchmarkScores(
        benchmark=board.benchmark,
        metric=board.metric,
        scores={row.model: row.mean for row in ranked},
        higher_is_better=board.higher_is_better,
        run_ids=np.array(sorted(row.run_id for row in ranked), dtype=np.int64),
    )


def _split_metric(session: Session, text: str) -> tuple[str, str | None]:
    """Split into benchmark and metric; both may contain colons: the longest name of a benchmark is used."""
    try:
        find_benchmark(session, text)
    except NotFoundError as error:
        parts = text.split(":")
        for n in range(len(parts) - 1, 0, -1):
            name = ":".join(parts[:n])
            with suppress(NotFoundError):
                find_benchmark(session, name)
                return name, ":".join(parts[n:])
        if len(parts) == 1:
            raise
        raise NotFoundError("benchmark", parts[0], error.known) from error
    return text, None
