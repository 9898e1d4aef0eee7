"""What another benchmark says of the same models."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.errors import NotFoundError
from tracker.queries.leaderboard import leaderboard
from tracker.queries.selection import Selection


@dataclass(frozen=True, kw_only=True)
class OtherScores:
    """One score of each model that another benchmark has any of.

    Attributes:
        benchmark, metric: whose.
        scores: mean over its prompts (or tasks) by the model's name, in the metric's unit.
        higher_is_better: whether larger ones are better.
        run_ids: the runs behind them.
    """

    BRINGS: ClassVar[str] = "against"

    benchmark: str
    metric: str
    scores: Mapping[str, float]
    higher_is_better: bool
    run_ids: NDArray[np.int64]

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Whether a selection names another benchmark."""
        return selection.against is not None

    @classmethod
    def load(cls, session: Session, selection: Selection) -> OtherScores:
        """The scores that a selection is compared with; see `other_scores`."""
        return other_scores(session, selection.against or "")

    @property
    def digest(self) -> str:
        """SHA-256 of names and scores."""
        told = [self.benchmark, self.metric, *(f"{name}\x1f{value!r}" for name, value in sorted(self.scores.items()))]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()

    def of(self, models: tuple[str, ...]) -> NDArray[np.float64]:
        """``(n_models,)`` the score of each of some models, larger is better; NaN where there is none."""
        sign = 1.0 if self.higher_is_better else -1.0
        return np.array([sign * self.scores.get(name, np.nan) for name in models])


def other_scores(session: Session, name: str) -> OtherScores:
    """The scores of a benchmark, one for each model; a model that lacks some of its prompts or tasks has none.

    Args:
        session: the store.
        name: of the benchmark; ``benchmark:metric`` where it has several metrics.

    Raises:
        NotFoundError: there is no such benchmark or metric.
        SelectionError: it has several metrics and none was named.
    """
    try:
        board = leaderboard(session, Selection(benchmark=name))
    except NotFoundError:
        benchmark, colon, metric = name.rpartition(":")
        if not colon:
            raise
        board = leaderboard(session, Selection(benchmark=benchmark, metric=metric))
    ranked = [row for row in board.rows if not row.unranked]
    return OtherScores(
        benchmark=board.benchmark,
        metric=board.metric,
        scores={row.model: row.mean for row in ranked},
        higher_is_better=board.higher_is_better,
        run_ids=np.array(sorted(row.run_id for row in ranked), dtype=np.int64),
    )
