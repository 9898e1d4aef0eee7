"""What a leaderboard holds: means, errors, ranks, rank intervals, groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tracker.queries.clusters import TASK
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import Policy


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A model's place.

    Attributes:
        model: its name.
        run_id: the run behind it.
        n: prompts (or tasks) that its mean is over.
        coverage: share of those that any model was measured on which it was measured on itself, in (0, 1].
        mean: mean score over them, weighted where weights were chosen, in the metric's unit.
        stderr: standard error as if they were independent; None where there are fewer than two.
        stderr_clustered: standard error clustered by task, or by the field chosen; None with the reason in
            ``unclustered``.
        low, high: ends of the 95 % interval: of Student's t with G − 1 degrees around the clustered
            standard error of G tasks, else with n − 1 degrees around the plain one; None where there is none.
        rank: 1 is best, ties share the mean rank; None with the reason in ``unranked``.
        unclustered: why there is no clustered standard error; '' where there is one.
        unranked: why there is no rank; '' where there is one.
        n_effective: Kish's effective number of prompts (or tasks), (Σw)² / Σw²; ``n`` where all count the same.
    """

    model: str
    run_id: int
    n: int
    coverage: float
    mean: float
    stderr: float | None
    stderr_clustered: float | None
    low: float | None
    high: float | None
    rank: float | None
    unclustered: str = ""
    unranked: str = ""
    n_effective: float = 0.0


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
class Leaderboard:
    """The models of a benchmark: the ranked ones from the best on, then those that lack scores.

    Attributes:
        benchmark, metric, condition: what was selected.
        higher_is_better: whether larger scores are better.
        unit: what the scores are of, ``prompt`` or ``task``.
        n_units: how many of them any model was measured on.
        n_tasks: in how many tasks they are.
        rows: one for each model.
        warnings: what a reader should know beside the numbers.
        weights: by which prompts were weighted, such as ``12:distance``; '' where all count the same.
        n_effective: effective number of prompts (or tasks) for a model that was measured on all.
        filter_id: the finding whose kept prompts count; None where all do.
        missing: what became of scores that were not measured.
        cluster: the field whose equal values make a cluster; ``none`` where there are none.
        scores: the matrix that was ranked, with every model that says what should have been measured; None where
            whole tasks were scored.
        rank_intervals: by model, of those that have a rank; empty where there are none.
        no_rank_intervals: why there are no rank intervals; '' where there are.
        groups: names of models of which no two can be told apart, neighbours in the order of their ranks, the best
            first; a model may be in several groups.
        rank_interval_warnings: what a reader should know beside the rank intervals.
    """

    benchmark: str
    metric: str
    condition: str
    higher_is_better: bool
    unit: str
    n_units: int
    n_tasks: int
    rows: tuple[LeaderboardRow, ...]
    warnings: tuple[str, ...] = ()
    weights: str = ""
    n_effective: float = 0.0
    filter_id: int | None = None
    missing: Policy = "unranked"
    cluster: str = TASK
    scores: PerformanceMatrix | None = field(default=None, repr=False, compare=False)
    rank_intervals: Mapping[str, RankInterval] = field(default_factory=dict)
    no_rank_intervals: str = ""
    groups: tuple[tuple[str, ...], ...] = ()
    rank_interval_warnings: tuple[str, ...] = ()

    @property
    def is_clustered(self) -> bool:
        """Whether errors are clustered."""
        return any(row.stderr_clustered is not None for row in self.rows)

    @property
    def cluster_warnings(self) -> tuple[str, ...]:
        """Warnings of the rank intervals that ``warnings`` does not have, where errors are clustered."""
        return tuple(text for text in self.rank_interval_warnings if self.is_clustered and text not in self.warnings)

    def describe_groups(self) -> list[str]:
        """The groups as sentences: which ranks cannot be told apart."""
        ranks = {row.model: row.rank for row in self.rows if row.rank is not None}
        return [
            f"Ranks {ranks[names[0]]:g} to {ranks[names[-1]]:g} cannot be told apart: {', '.join(names)}."
            if ranks[names[0]] != ranks[names[-1]]
            else f"Rank {ranks[names[0]]:g} is shared: {', '.join(names)}."
            for names in self.groups
        ]
