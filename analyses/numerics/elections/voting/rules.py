"""Rules that turn scores on tasks into one ranking, each decided in whole numbers.

Tasks vote, models stand. ``mean`` and ``median`` use the scores; the others only their order within each task.
The rules of `COMPLETE_TASK_RULES` compare models by sums over tasks, which mean nothing where tasks differ from model
to model: they are for tasks that every model has. The others compare two models on the tasks both have.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.voting.condorcet import PairwiseDuels
from analyses.numerics.elections.win_rates import MAX_INT64_SUM, rank_codes, task_half_points, task_units, win_rates

PointsRule = Literal[
    "mean", "median", "win-rate", "win-rate-per-task", "borda", "dowdall", "plurality", "copeland", "minimax"
]
"""Rules that give each model a number, which ranks it."""
VotingRule = Literal[PointsRule, "kemeny", "bradley-terry"]
VOTING_RULES: tuple[VotingRule, ...] = get_args(VotingRule)
COMPLETE_TASK_RULES = frozenset({"mean", "median", "borda", "dowdall", "plurality"})


@dataclass(frozen=True, kw_only=True)
class Election:
    """Scores of models by tasks, with their order within each task.

    Attributes:
        scores: each task has a score of some model.
        codes: ``(n_tasks, n_models)`` of `rank_codes`: larger is better, 0 = not measured.
    """

    scores: ExactScores
    codes: NDArray[np.int32]

    @classmethod
    def from_scores(cls, scores: ExactScores) -> Election:
        """An election of all models by all tasks."""
        return cls(scores=scores, codes=rank_codes(scores))

    @property
    def n_tasks(self) -> int:
        """Voters."""
        return int(self.codes.shape[0])

    @property
    def n_models(self) -> int:
        """Candidates."""
        return int(self.codes.shape[1])

    @property
    def is_complete(self) -> bool:
        """Whether every model has every task."""
        return bool((self.codes > 0).all())

    @cached_property
    def has_ties(self) -> bool:
        """Whether two models have the same score on some task."""
        return any(len(np.unique(row[row > 0])) < np.count_nonzero(row) for row in self.codes)

    @cached_property
    def duels(self) -> PairwiseDuels:
        """Model against model."""
        return PairwiseDuels.from_codes(self.codes)

    def select_complete_tasks(self) -> Election:
        """Only the tasks that every model has."""
        return self.select_tasks(np.flatnonzero((self.codes > 0).all(axis=1)))

    def select_tasks(self, tasks: NDArray[np.int64]) -> Election:
        """The election if only these tasks voted."""
        return Election(scores=self.scores.rows(tasks), codes=self.codes[tasks])

    def select_models(self, models: NDArray[np.int64]) -> Election:
        """The election if only these models stood."""
        return Election(scores=self.scores.columns(models), codes=self.codes[:, models])


@dataclass(frozen=True, kw_only=True)
class RulePoints:
    """What a rule gives each model.

    Attributes:
        points: ``(n_models,)`` integers of any size, or fractions; larger is better, equal is a tie.
        unit: what one point is worth in the score shown.
    """

    points: NDArray[Any]
    unit: Fraction

    @property
    def ranks(self) -> NDArray[np.float64]:
        """``(n_models,)``: 1 is the best, ties share the mean of their ranks."""
        return average_ranks(self.points)

    @property
    def scores(self) -> NDArray[np.float64]:
        """``(n_models,)`` as shown."""
        return np.array([float(Fraction(value) * self.unit) for value in self.points.tolist()])


def canonical_rule(rule: VotingRule, election: Election) -> VotingRule:
    """The rule itself, or ``borda`` where it is known to give the same ranking.

    Where no score is missing, win rates per task are Borda points but for a factor, and strengths of Bradley and Terry
    are in the order of the Borda points, since all models have the same number of comparisons with each other. Where
    no two scores of a task are the same either, pairwise win rates are Borda points as well.
    """
    if not election.is_complete or rule not in ("win-rate", "win-rate-per-task", "bradley-terry"):
        return rule
    return rule if rule == "win-rate" and election.has_ties else "borda"


def count_points(rule: PointsRule, election: Election) -> RulePoints:
    """The points of each model.

    - ``mean``, ``median``: of the scores; the median of an even number is the mean of the middle two.
    - ``win-rate``, ``win-rate-per-task``: as of `win_rates`.
    - ``borda``: per task, models beaten and half of those tied with; the score shown is their mean over tasks, that is
      the number of models less the mean rank.
    - ``dowdall``: 1, 1/2, 1/3, … for the places of a task; models that tie share the mean of the places they take.
    - ``plurality``: per task, one vote; models that tie for the first place share it evenly.
    - ``copeland``: duels won and half of those drawn.
    - ``minimax``: the worst duel of a model, as the share of the tasks both have that it wins less the share it loses.

    Args:
        rule: one of these.
        election: complete for the rules of `COMPLETE_TASK_RULES`; at least one task.
    """
    n = election.n_tasks
    if rule in ADDITIVE_RULES:
        per_task, denominator = task_points(rule, election)
        return RulePoints(points=np.asarray(per_task.sum(axis=0)), unit=Fraction(1, denominator * n))
    if rule == "median":
        ordered = np.sort(election.scores.numerators, axis=0)
        return RulePoints(
            points=ordered[(n - 1) // 2] + ordered[n // 2], unit=Fraction(1, 2 * election.scores.denominator)
        )
    if rule == "copeland":
        return RulePoints(points=opponent_points("copeland", election).sum(axis=1), unit=Fraction(1, 2))
    if rule == "minimax":
        return _minimax_points(election.duels)
    rates = win_rates(election.scores, rule="pairwise" if rule == "win-rate" else "per_task")
    return RulePoints(points=np.array(rates, dtype=object), unit=Fraction(1))


ADDITIVE_RULES = frozenset({"mean", "borda", "dowdall", "plurality"})
"""Rules by which a model's points are the sum of what each task gives it, whoever else votes."""


def task_points(rule: str, election: Election) -> tuple[NDArray[Any], int]:
    """What each task gives each model by a rule of `ADDITIVE_RULES`.

    Args:
        rule: one of them.
        election: complete.

    Returns:
        ``(n_tasks, n_models)`` whole numbers, and how many of them make one.
    """
    if rule == "mean":
        return election.scores.numerators, election.scores.denominator
    if rule == "borda":
        return task_half_points(election.codes)[0], 2
    m = election.n_models
    if rule == "dowdall":
        whole = lcm(*range(1, m + 1))
        points_by_place = [whole // position for position in range(1, m + 1)]
    else:
        whole, points_by_place = 1, [1] + [0] * (m - 1)
    return _positional_points(election.codes, points_by_place, whole)


def _positional_points(codes: NDArray[np.int32], points_by_place: list[int], unit: int) -> tuple[NDArray[Any], int]:
    """Points for places; models that tie share the mean of the places they take."""
    sums = [0]
    for value in points_by_place:
        sums.append(sums[-1] + value)
    groups = [np.unique(-row, return_inverse=True, return_counts=True) for row in codes]
    sizes = lcm(*{int(size) for _, _, counts in groups for size in counts})
    kind: Any = np.int64 if sums[-1] * sizes * len(codes) < MAX_INT64_SUM else object
    shares_by_task = np.zeros(codes.shape, dtype=kind)
    for into, (_, group, counts) in zip(shares_by_task, groups, strict=True):
        last = np.cumsum(counts).tolist()
        shares = [
            (sums[end] - sums[end - size]) * (sizes // size) for end, size in zip(last, counts.tolist(), strict=True)
        ]
        into[:] = np.array(shares, dtype=kind)[group.ravel()]
    return shares_by_task, unit * sizes


def opponent_points(rule: str, election: Election) -> NDArray[Any]:
    """What each duel gives the model of the row by ``copeland``, or over all tasks by ``borda``: twice the points.

    Args:
        rule: one of the two.
        election: complete for ``borda``.

    Returns:
        ``(n_models, n_models)`` int64, 0 on the diagonal.
    """
    if rule == "borda":
        return election.duels.half_points
    half_points = 1 + np.sign(election.duels.margins).astype(np.int64)
    np.fill_diagonal(half_points, 0)
    return np.asarray(half_points)


def _minimax_points(duels: PairwiseDuels) -> RulePoints:
    """The worst margin, over one denominator; where two models share no task, neither loses."""
    worst, denominator = defeat_margins(duels)
    return RulePoints(points=-worst.max(axis=1), unit=Fraction(1, denominator))


def defeat_margins(duels: PairwiseDuels) -> tuple[NDArray[Any], int]:
    """By what share of the tasks both have the row loses to the column, less the share it wins.

    Args:
        duels: of at least two models.

    Returns:
        ``(n_models, n_models)`` numerators, on the diagonal less than any other number; and the denominator.
    """
    units, denominator = task_units(duels.shared, n_summands=1)
    margins = -duels.margins.astype(units.dtype) * units[duels.shared]
    np.fill_diagonal(margins, -denominator - 1)
    return margins, denominator
