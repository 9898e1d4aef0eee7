"""The result of a leaderboard: means, errors, ranks, rank intervals, groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tracker.name_lists import join_names
from tracker.notebook.result import NotebookResult, make_table
from tracker.number_format import format_difference
from tracker.queries.clusters import TASK
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.selection import Policy, TaskEffects
from tracker.statistics.intervals.task_spread import MIN_CLUSTERS, ClusterSpread

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A model's row.

    Attributes:
        model: its name.
        run_id: the run behind it.
        n: number of scored prompts (or tasks).
        coverage: share of the prompts (or tasks) scored for any model that are scored for this one, in (0, 1].
        mean: mean score, weighted if weights are selected, in the metric's unit.
        stderr: standard error assuming independent prompts; None with fewer than two.
        stderr_clustered: standard error (CR2) clustered by task under random task effects, or by the selected field;
            None with the reason in ``unclustered``.
        worst_mean, best_mean: mean if every missing score is the worst, or the best, that the metric allows; equal to
            ``mean`` without missing scores, and where the policy has filled them; None without bounds.
        low, high: ends of the 95 % interval, see `estimate_means`; None without one. United over the worst and the best
            values of missing scores.
        rank: by ``mean``, 1 is best, ties share the mean rank; None with the reason in ``excluded``.
        unclustered: why there is no clustered standard error; '' if there is one.
        excluded: why the model is listed apart, without a rank; '' if it is ranked.
        n_effective: Kish's effective number of prompts (or tasks), (Σw)² / Σw²; ``n`` with equal weights.
        unverified: scores that the run's harness reports and that its rows do not give; '' if there are none.
        stderr_stratified: standard error of prompts within tasks under fixed task effects; None without strata, or with
            clusters.
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
    excluded: str = ""
    worst_mean: float | None = None
    best_mean: float | None = None
    n_effective: float = 0.0
    unverified: str = ""
    stderr_stratified: float | None = None


@dataclass(frozen=True, kw_only=True)
class RankInterval:
    """The rank interval of a model.

    Attributes:
        low, high: best and worst rank; the intervals of all models hold simultaneously with 95 % probability.
        bootstrap_low, bootstrap_high: 95 % percentile interval of its rank in resamples, for this model alone; None
            without resamples.
    """

    low: float
    high: float
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Leaderboard(NotebookResult):
    """A leaderboard: the ranked models from the best on, then those listed apart.

    Attributes:
        benchmark, metric, condition: of the selection.
        higher_is_better: whether larger scores are better.
        unit: unit of the scores, ``prompt`` or ``task``.
        n_units: number of prompts (or tasks) scored for any model.
        n_tasks: number of their tasks.
        rows: one per model.
        warnings: warnings for the user.
        weights: weights of the prompts, such as ``12:distance``; '' for equal weights.
        n_effective: effective number of prompts (or tasks) for a model with all scores.
        filter_id: the finding whose kept prompts are used; None for all prompts.
        missing: policy for missing scores.
        cluster: field whose equal values define a cluster; ``none`` without clusters.
        task_effects: what errors and intervals are about: these tasks, other tasks like these, or prompts alone.
        scores: the ranked matrix, after the policy for missing scores; None for scores of whole tasks.
        rank_intervals: by model, of the ranked models; empty without any.
        first_holm: largest p-value of the first model against another, adjusted for all pairs; None without any.
        no_rank_intervals: why there are no rank intervals; '' if there are.
        groups: names of models of which no two differ significantly, in the order of their ranks, best first; a model
            may be in several groups.
        rank_interval_warnings: warnings about the rank intervals.
        ranks_on_these_tasks, ranks_on_other_tasks: by model, the ends of the rank interval under fixed and under random
            task effects; empty for fewer than two named tasks, or if task effects are none.
        task_spread: how much tasks differ; None if it is not known.
        cluster_spread: the same for clusters by another field; None without any.
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
    missing: Policy = "bounds"
    cluster: str = TASK
    task_effects: TaskEffects = "none"
    scores: PerformanceMatrix | None = field(default=None, repr=False, compare=False)
    rank_intervals: Mapping[str, RankInterval] = field(default_factory=dict)
    first_holm: float | None = None
    no_rank_intervals: str = ""
    groups: tuple[tuple[str, ...], ...] = ()
    rank_interval_warnings: tuple[str, ...] = ()
    ranks_on_these_tasks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ranks_on_other_tasks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    task_spread: ClusterSpread | None = None
    cluster_spread: ClusterSpread | None = None

    @property
    def is_clustered(self) -> bool:
        """Whether errors are clustered."""
        return any(row.stderr_clustered is not None for row in self.rows)

    @property
    def is_stratified(self) -> bool:
        """Whether errors are stratified by task."""
        return any(row.stderr_stratified is not None for row in self.rows)

    @property
    def cluster_warnings(self) -> tuple[str, ...]:
        """Warnings about the rank intervals that are not in ``warnings``, if errors are clustered."""
        return tuple(text for text in self.rank_interval_warnings if self.is_clustered and text not in self.warnings)

    @property
    def contenders(self) -> tuple[str, ...] | None:
        """Names of the models that may be first, the best mean first: their rank or rank interval includes rank 1.

        None where the significance of differences is not tested.
        """
        if not self.rank_intervals and sum(row.rank is not None for row in self.rows) > 1:
            return None
        intervals, leaders = self.rank_intervals, set(self.leaders)
        return tuple(
            row.model
            for row in self.rows
            if row.model in leaders or (row.model in intervals and intervals[row.model].low <= 1)
        )

    def list_records(self) -> list[dict[str, Any]]:
        """Return the rows with the intervals of their ranks, by name of the column."""
        names = [field.name for field in fields(LeaderboardRow) if self.weights or field.name != "n_effective"]
        at = names.index("rank") + 1
        ranks = [field.name for field in fields(RankInterval)]
        records = []
        for row in self.rows:
            interval = self.rank_intervals.get(row.model)
            values = {} if interval is None else asdict(interval)
            cells = {f"rank_{name}": values.get(name) for name in ranks}
            records.append(
                {name: getattr(row, name) for name in names[:at]}
                | cells
                | {name: getattr(row, name) for name in names[at:]}
            )
        return records

    def to_arrow(self) -> pa.Table:
        """Return a row for each model, with the interval of its rank."""
        return make_table(self.list_records())

    def plot(self) -> Figure:
        """Draw the mean of each model with its interval, the best on top."""
        import numpy as np

        from tracker.figures.charts import draw_intervals

        def column(name: str) -> Any:
            return np.array([getattr(row, name) for row in self.rows], dtype=np.float64)

        return draw_intervals(
            [row.model for row in self.rows],
            column("mean"),
            column("low"),
            column("high"),
            xlabel=f"{self.metric} on {self.benchmark}, {self.n_units:,} {self.unit}s",
            legend=("mean", "95% interval"),
            title=self.describe_lead(),
        )

    def describe(self) -> str:
        """Return the verdict about rank 1."""
        return self.describe_lead()

    def list_details(self) -> Sequence[str]:
        """Return what the ranks are over, and the warnings."""
        size = f"{self.benchmark}: {self.metric} over {self.n_units:,} {self.unit}s."
        return (size, self.describe_better_excluded(), *self.warnings, *self.cluster_warnings)

    def describe_lead(self) -> str:
        """Return the verdict about rank 1: which model leads, by how much, and whether the lead is significant."""
        ranked = [row for row in self.rows if row.rank is not None]
        if not ranked:
            return "No model has a rank."
        leaders = [row.model for row in ranked if row.rank == ranked[0].rank]
        if len(ranked) == 1:
            return f"{leaders[0]} is the only model with a rank."
        lead = f"{join_names(leaders)} share the first place"
        if len(leaders) == 1:
            lead = f"{leaders[0]} is first by {format_difference(abs(ranked[0].mean - ranked[1].mean))}"
        if self.contenders is None:
            return f"{lead}. Its significance is not tested: {self.no_rank_intervals}."
        rivals = [name for name in self.contenders if name not in leaders]
        if rivals:
            lead = f"{lead}, but {join_names(rivals)} may be first too: the difference is not significant."
        elif len(leaders) == len(ranked):
            lead = f"{lead}: no ranked model is ahead of another."
        else:
            lead = f"{lead}; no other of the {len(ranked):,} ranked models may be first (95% confidence)."
        estimands = self.describe_estimands(leaders[0]) if len(leaders) == 1 else ""
        return f"{lead} {estimands}" if estimands else lead

    def describe_estimands(self, model: str) -> str:
        """Return the ranks of a model on these tasks and on other tasks like these; '' if they are not known."""
        if model not in self.ranks_on_these_tasks:
            return ""
        fixed, random = self.ranks_on_these_tasks[model], self.ranks_on_other_tasks[model]
        return f"On these tasks its rank is {_span(fixed)}; on other tasks like these it is {_span(random)}."

    def describe_task_spread(self) -> str:
        """Return how much tasks and clusters differ, and what that means; '' if it is not known."""
        return " ".join(describe_spreads(self.task_spread, self.cluster_spread, self.cluster))

    @property
    def leaders(self) -> tuple[str, ...]:
        """Names of the models with the best rank."""
        best = min((row.rank for row in self.rows if row.rank is not None), default=None)
        return tuple(row.model for row in self.rows if best is not None and row.rank == best)

    def describe_better_excluded(self) -> str:
        """Return a warning about models listed apart whose mean is better than the first; '' without any."""
        first = next((row.mean for row in self.rows if row.rank is not None), None)
        sign = 1 if self.higher_is_better else -1
        better = [row for row in self.rows if row.rank is None and first is not None and sign * (row.mean - first) > 0]
        if not better:
            return ""
        verb = "is listed apart but has a better mean" if len(better) == 1 else "are listed apart but have better means"
        coverage = math.floor(100 * min(row.coverage for row in better)) / 100
        return f"{join_names([row.model for row in better])} {verb}. To rank all of them: --min-coverage {coverage:g}"

    def describe_trials(self) -> str:
        """Return a notice that scores are averages over trials; '' if each prompt has one trial."""
        if self.scores is None or self.scores.n_trials < 2:
            return ""
        return (
            f"Scores are averages over up to {self.scores.n_trials} trials per prompt: `suffrage analyze trials "
            f"{self.benchmark}` shows how far further trials lower the errors."
        )

    def describe_groups(self) -> list[str]:
        """Return the groups as sentences: which ranks are not distinguishable."""
        ranks = {row.model: row.rank for row in self.rows if row.rank is not None}
        return [
            f"Ranks {ranks[names[0]]:g} to {ranks[names[-1]]:g} are not distinguishable: {', '.join(names)}."
            if ranks[names[0]] != ranks[names[-1]]
            else f"Rank {ranks[names[0]]:g} is shared: {', '.join(names)}."
            for names in self.groups
        ]


def describe_task_spans(fixed: tuple[int, int], random: tuple[int, int]) -> str:
    """Return the rank intervals of a model on these tasks and on other tasks like these, as part of a sentence."""
    return f"rank {_span(fixed)} on these tasks, {_span(random)} on other tasks like these"


def _span(ends: tuple[int, int]) -> str:
    return f"{ends[0]}" if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


def describe_spreads(tasks: ClusterSpread | None, clusters: ClusterSpread | None, field: str) -> list[str]:
    """Return how much tasks differ, and how much clusters by another field, one text each.

    Args:
        tasks: of the tasks; None if it is not known.
        clusters: of the clusters; None without any.
        field: that defines the clusters.
    """
    texts = []
    if tasks is not None:
        few = f" With fewer than {MIN_CLUSTERS}, ranks on other tasks like these are imprecise."
        meaning = "variance of a mean on other tasks over that of independent prompts"
        texts.append(_describe_spread(tasks, "Tasks", "tasks", meaning) + few * (tasks.n_effective < MIN_CLUSTERS))
    if clusters is not None:
        meaning = "variance of a mean over that of independent prompts"
        texts.append(_describe_spread(clusters, f"Clusters ({field})", "clusters", meaning))
    return texts


def _describe_spread(spread: ClusterSpread, title: str, noun: str, meaning: str) -> str:
    effect = f"design effect {spread.design_effect:.1f} ({meaning})"
    number = f"{spread.n_effective:.1f} effective of {spread.n_clusters} {noun}"
    return f"{title}: intraclass correlation {spread.correlation:.3f}; {effect}; {number}."
