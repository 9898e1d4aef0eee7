"""The leaderboard with what its ranks are worth: intervals of ranks, and models that cannot be told apart.

The mathematics is the question `rank-intervals`, found like every other; where no installed package brings it, the
leaderboard stands without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sqlmodel import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.clusters import TASK, Clusters
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.ranking.leaderboard import Leaderboard, leaderboard
from tracker.queries.selection import Policy, Selection
from tracker.recording.declaration import load_declaration

QUESTION = "rank-intervals"


@dataclass(frozen=True, kw_only=True)
class RankInterval:
    """Which ranks of a model the scores allow.

    Attributes:
        low, high: best and worst rank; the intervals of all models hold at once with 95 % probability.
        bootstrap_low, bootstrap_high: 95 % of the ranks it has in resamples, of this model alone; None where nothing
            was resampled.
    """

    low: float
    high: float
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class ContestedBoard:
    """A leaderboard, and how far its ranks can be told apart.

    Attributes:
        board: means, errors, ranks.
        intervals: by model, of those that have a rank; empty where there are none, with the reason in ``without``.
        groups: names of models of which no two can be told apart, neighbours in the order of their ranks, the best
            first; a model may be in several groups.
        without: why there are no intervals of ranks; '' where there are.
        warnings: what the question says beside its numbers.
    """

    board: Leaderboard
    intervals: Mapping[str, RankInterval] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()
    without: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_clustered(self) -> bool:
        """Whether errors are clustered."""
        return any(row.stderr_clustered is not None for row in self.board.rows)

    @property
    def further_notes(self) -> tuple[str, ...]:
        """What the question says that the leaderboard does not say itself, where errors are clustered."""
        return tuple(note for note in self.warnings if self.is_clustered and note not in self.board.warnings)


def contested_board(
    session: Session, selection: Selection, missing: Policy = "unranked", *, n_resamples: int = 1000, seed: int = 0
) -> ContestedBoard:
    """The leaderboard of a selection, with intervals of ranks for the models that have a rank.

    Args:
        session: the store; only what is committed is seen.
        selection: which data.
        missing: what becomes of scores that were not measured.
        n_resamples: of the prompts, or of whole clusters, for bootstrap ranks; 0 for none.
        seed: of the resamples.

    Raises:
        NotFoundError, SelectionError: as for `leaderboard`.
    """
    board = leaderboard(session, selection, missing)
    ranked = {row.run_id for row in board.rows if row.rank is not None}
    if board.scores is None:
        return ContestedBoard(board=board, without="its scores are of whole tasks")
    if board.weights:
        return ContestedBoard(board=board, without="prompts are weighted")
    if missing == "impute" and any(row.coverage < 1 for row in board.rows):
        return ContestedBoard(board=board, without="scores were guessed, and a guess cannot be tested")
    if len(ranked) < 2:
        return ContestedBoard(board=board, without="fewer than two models have a rank")
    try:
        question = load_declaration(QUESTION)
    except NotFoundError:
        return ContestedBoard(board=board, without=f"no installed package brings the question {QUESTION}")
    scores = _columns(board.scores, ranked)
    clusters = Clusters.load(session, selection) if selection.cluster else _tasks(scores)
    try:
        report = question.function(scores, clusters, n_resamples=n_resamples, seed=seed)
    except SelectionError as error:
        return ContestedBoard(board=board, without=str(error).rstrip("."))
    rows = report.tables["models"].to_pylist()
    groups: dict[int, list[str]] = {}
    for row in report.tables["groups"].to_pylist():
        groups.setdefault(row["group"], []).append(row["model"])
    return ContestedBoard(
        board=board,
        intervals={
            row["model"]: RankInterval(
                low=float(row["rank_low"]),
                high=float(row["rank_high"]),
                bootstrap_low=row["bootstrap_low"],
                bootstrap_high=row["bootstrap_high"],
            )
            for row in rows
        },
        groups=tuple(tuple(names) for _, names in sorted(groups.items())),
        warnings=tuple(report.warnings),
    )


def in_words(contested: ContestedBoard) -> Sequence[str]:
    """The groups as sentences: which ranks cannot be told apart."""
    ranks = {row.model: row.rank for row in contested.board.rows if row.rank is not None}
    return [
        f"Ranks {ranks[names[0]]:g} to {ranks[names[-1]]:g} cannot be told apart: {', '.join(names)}."
        if ranks[names[0]] != ranks[names[-1]]
        else f"Rank {ranks[names[0]]:g} is shared: {', '.join(names)}."
        for names in contested.groups
    ]


def _columns(scores: PerformanceMatrix, run_ids: set[int]) -> PerformanceMatrix:
    kept = np.array([key in run_ids for key in scores.run_ids.tolist()])
    return replace(
        scores,
        Q=np.ascontiguousarray(scores.Q[:, kept]),
        models=tuple(name for name, stays in zip(scores.models, kept.tolist(), strict=True) if stays),
        run_ids=scores.run_ids[kept],
    )


def _tasks(scores: PerformanceMatrix) -> Clusters:
    order = np.argsort(scores.prompt_ids)
    return Clusters(field=TASK, prompt_ids=scores.prompt_ids[order], names=scores.tasks[order])
