"""Plan a study of a benchmark: prompts and trials that detect an effect, from the variances of stored differences.

Every pair of stored models gives a variance of paired differences. The plan uses the median pair, and the pair at 90 %
of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.notebook.result import NotebookResult, make_table
from tracker.number_format import format_difference
from tracker.queries.clusters import Clusters
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.queries.findings.summary import Summary
from tracker.queries.ranking.leaderboard_intervals import MAX_TESTED_MODELS, explain_too_many
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.score_validation import check_finite
from tracker.queries.selection import Selection
from tracker.statistics.grouping import Grouping
from tracker.statistics.pairwise_differences import PairwiseDifferences, compare_all_pairs
from tracker.statistics.planning.completions import largest_stderr
from tracker.statistics.planning.sample_size import PairVariance, StudySize, plan_study
from tracker.statistics.planning.trials import split_variance
from tracker.statistics.standard_errors import Correction

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

LISTED_TRIALS = (1, 2, 4, 8)
"""Numbers of trials that a plan lists, if the variance within prompts is known."""
FEW_PROMPTS = 300
"""Planned prompts below which exact tests have noticeably less power than Student's t."""
HIGH = 0.9
"""Share of pairs that the cautious plan covers."""


@dataclass(frozen=True, kw_only=True)
class PlannedTrials:
    """What a study with so many trials of each prompt needs.

    Attributes:
        n_trials: of each prompt; None for those of the stored runs.
        median: by the pair with the median variance.
        high: by the pair whose variance is not exceeded in `HIGH` of the pairs.
    """

    n_trials: int | None
    median: StudySize
    high: StudySize


@dataclass(frozen=True, kw_only=True)
class StudyPlan(NotebookResult):
    """The plan of a study.

    Attributes:
        benchmark, metric: of the stored scores.
        effect, power, level: that the study should detect.
        n_prompts: with a score.
        n_pairs: pairs of models with a variance.
        n_excluded: pairs without one: fewer than two common prompts or clusters, or equal differences.
        cluster: field of the clusters; '' if prompts are independent.
        n_clusters: clusters; 0 if prompts are independent.
        n_strata: tasks that are fixed; 1 without such tasks.
        rows: one per number of trials; the first one is the answer.
        warnings: prompts and models that are left out, because scores are missing.
    """

    benchmark: str
    metric: str
    effect: float
    power: float
    level: float
    n_prompts: int
    n_pairs: int
    n_excluded: int
    cluster: str
    n_clusters: int
    n_strata: int
    rows: tuple[PlannedTrials, ...]
    warnings: tuple[str, ...] = ()

    def list_records(self) -> list[dict[str, object]]:
        """Return the needed prompts and the detectable difference by number of trials, by name of the column."""
        records: list[dict[str, object]] = []
        for row in self.rows:
            prompts = [size.n_prompts if math.isfinite(size.n_prompts) else None for size in (row.median, row.high)]
            records.append(
                {
                    "trials": row.n_trials,
                    "prompts": prompts[0],
                    "prompts_90": prompts[1],
                    "detectable": row.median.detectable,
                    "detectable_90": row.high.detectable,
                }
            )
        return records

    def to_arrow(self) -> pa.Table:
        """Return a row for each number of trials."""
        return make_table(self.list_records())

    def plot(self) -> Figure:
        """Draw the prompts that are needed, by trials of each prompt."""
        from tracker.figures.charts import draw_lines

        return draw_lines(
            ["as stored" if row.n_trials is None else f"{row.n_trials}" for row in self.rows],
            {
                "median pair of models": [row.median.n_prompts for row in self.rows],
                f"{HIGH:.0%} of the pairs": [row.high.n_prompts for row in self.rows],
            },
            xlabel="trials of each prompt",
            ylabel=f"prompts to detect {self.effect:g} with power {self.power:.0%}",
            level=(self.n_prompts, f"stored prompts: {self.n_prompts:,}"),
            title=self.describe(),
        )

    def describe(self) -> str:
        """Return whether the stored prompts are enough."""
        return self.summarize().headline

    def list_details(self) -> Sequence[str]:
        """Return the evidence and the caveats."""
        summary = self.summarize()
        return (*summary.evidence, *summary.caveats)

    def summarize(self) -> Summary:
        """Summarize whether the stored prompts are enough, and how many are."""
        first = self.rows[0]
        enough = "are enough" if first.median.n_prompts <= self.n_prompts else "are too few"
        pair = f"{first.median.models[0]} and {first.median.models[1]}"
        scope = f"for {pair}" if self.n_pairs == 1 else f"for the median of {self.n_pairs:,} pairs of models"
        headline = (
            f"{self.n_prompts:,} prompts {enough} to detect a difference of {self.effect:g} with power "
            f"{self.power:.0%} {scope}: {_count(first.median.n_prompts)} are needed."
        )
        high = "" if self.n_pairs == 1 else f"; {format_difference(first.high.detectable)} for 90% of the pairs"
        units = f"{self.n_clusters:,} clusters by {self.cluster}" if self.n_clusters else "prompts as independent"
        units += f" within {self.n_strata} tasks" if self.n_strata > 1 else ""
        evidence = [
            f"Smallest difference that {self.n_prompts:,} prompts detect: "
            f"{format_difference(first.median.detectable)}{high}.",
            f"Test: paired, two-sided, at {1 - self.level:.2g}; {self.metric} of {self.benchmark}, {units}.",
        ]
        if self.n_pairs > 1:
            evidence.insert(0, f"90% of the pairs need at most {_count(first.high.n_prompts)} prompts.")
        caveats = []
        if self.n_clusters:
            caveats.append(
                f"Prompts are clustered by {self.cluster}: these are {_count(first.median.n_units)} clusters of the "
                f"stored sizes, against {self.n_clusters:,} now. More prompts in the same clusters help less."
            )
        if first.median.n_prompts < FEW_PROMPTS:
            caveats.append(
                f"With fewer than {FEW_PROMPTS} prompts, the exact test of scores of 0 and 1 has less power: by 3 "
                "points with 280 prompts, 7 with 70, 14 with 20."
            )
        if self.n_excluded:
            pairs = f"{self.n_excluded:,} pair{'s are' if self.n_excluded > 1 else ' is'}"
            caveats.append(f"{pairs} left out, because differences do not vary.")
        return Summary(headline, tuple(evidence), (*caveats, *self.warnings))


def plan_comparison(
    session: Session,
    selection: Selection,
    *,
    effect: float,
    power: float = 0.8,
    level: float = 0.95,
    n_trials: int | None = None,
) -> StudyPlan:
    """Plan a study that compares two models on a benchmark like the stored one.

    Args:
        session: the store; only committed data are visible.
        selection: at least two models; two name the pair.
        effect: true difference that the study should detect, positive, in the unit of the scores.
        power: probability of detecting it, above 1 − level.
        level: confidence level of the two-sided test.
        n_trials: of each prompt; None for those of the stored runs, and `LISTED_TRIALS` beside them if known.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: an option is out of range, there are too many models, no pair has a variance, ``n_trials`` is
            set and no prompt has several trials, or scores are missing under ``fail``.
    """
    _check_options(effect, power, level)
    trials, clusters = _load_trials(session, selection, effect)
    bounds = trials.scores.bounds
    exponent, trials = trials.exponent, trials.scaled()
    groups = clusters.group(trials.scores.prompt_ids)
    n_models = len(trials.scores.models)
    pairs = list_pairs(trials, groups, None if bounds is None else np.ldexp(bounds, -exponent))
    if not pairs:
        raise _without_variance(trials)
    is_clustered = not groups.problem and groups.n_groups < len(groups.codes)
    n_excluded, numbers = n_models * (n_models - 1) // 2 - len(pairs), _choose_trials(pairs, trials, n_trials)
    make_row = partial(_plan, effect=effect, power=power, alpha=1 - level, exponent=exponent)
    by_trials: tuple[str, ...] = ()
    repeated = [pair for pair in pairs if not np.isnan(pair.within)]
    if 0 < len(repeated) < len(pairs):
        by_trials = (_describe_repeated(pairs, repeated, n_trials, make_row(repeated, None)),)
        pairs = pairs if n_trials is None else repeated
    return StudyPlan(
        benchmark=trials.scores.benchmark,
        metric=trials.scores.metric,
        effect=effect,
        power=power,
        level=level,
        n_prompts=trials.scores.n_prompts,
        n_pairs=len(pairs),
        n_excluded=n_excluded,
        cluster=clusters.field if is_clustered else "",
        n_clusters=groups.n_groups if is_clustered else 0,
        n_strata=groups.n_strata,
        rows=tuple(make_row(pairs, number) for number in numbers),
        warnings=(*by_trials, *trials.missing_warnings, *_describe_policy(trials)),
    )


def _load_trials(session: Session, selection: Selection, effect: float) -> tuple[TrialScores, Clusters]:
    """Load the scores and their clusters, and check that a study of them can be planned."""
    selection = choose_policy(session, selection, default="common", subject="plan")
    trials, clusters = TrialScores.load(session, selection), Clusters.load(session, selection)
    _check_possible(effect, trials)
    for problem, is_so in check_finite(trials.scores.Q).items():
        if is_so:
            raise SelectionError(problem)
    if len(trials.scores.models) > MAX_TESTED_MODELS:
        raise SelectionError(explain_too_many(len(trials.scores.models)))
    return trials, clusters


def _without_variance(trials: TrialScores) -> SelectionError:
    return SelectionError(
        f"No two of {len(trials.scores.models)} models of {trials.scores.benchmark} have differences with a variance. "
        "A plan needs two models with scores for the same prompts."
    )


def list_pairs(trials: TrialScores, groups: Grouping, bounds: NDArray[np.float64] | None = None) -> list[PairVariance]:
    """Return the variance of every pair of models whose differences vary.

    Args:
        trials: the scores.
        groups: clusters of the prompts.
        bounds: worst and best value of missing scores, for the largest variance that they allow; None if none is
            missing, or if a policy replaced them.
    """
    scores = trials.scores
    is_clustered = not groups.problem
    pairs = _compare(scores.for_errors, groups if is_clustered else None, "CR1" if groups.is_even else "CR2", bounds)
    stderr = pairs.stderr_clustered if is_clustered else pairs.stderr
    n_units = pairs.n_clusters if is_clustered else pairs.n
    degrees = pairs.degrees_clustered if is_clustered else pairs.n - 1.0
    within, per_trial = _trial_variances(trials)
    i, j = np.nonzero(np.triu(stderr > 0, 1))
    return [
        PairVariance(
            models=(scores.models[a], scores.models[b]),
            stderr=float(stderr[a, b]),
            degrees=float(degrees[a, b]),
            n=int(pairs.n[a, b]),
            n_units=int(n_units[a, b]),
            within=float(within[a] + within[b]),
            from_trials=float((within[a] * per_trial[a] + within[b] * per_trial[b]) / pairs.n[a, b]),
        )
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]


def _compare(
    Q: NDArray[np.float64], groups: Grouping | None, correction: Correction, bounds: NDArray[np.float64] | None
) -> PairwiseDifferences:
    """Return the differences of all pairs, with the largest errors that missing scores allow within the bounds."""
    missing = np.isnan(Q)
    if bounds is None or not missing.any():
        return compare_all_pairs(Q, groups, correction)
    pairs = compare_all_pairs(np.where(missing, bounds.mean(), Q), groups, correction)
    reach = missing * np.ptp(bounds) / 2
    plain, design = largest_stderr(reach), largest_stderr(reach, groups, correction)
    np.fill_diagonal(added := plain[:, None] + plain, 0.0)
    np.fill_diagonal(added_design := design[:, None] + design, 0.0)
    return replace(pairs, stderr=pairs.stderr + added, stderr_clustered=pairs.stderr_clustered + added_design)


def _trial_variances(trials: TrialScores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the variance within prompts of each model, and the mean over its prompts of one over the trials."""
    parts = []
    for column in range(len(trials.scores.models)):
        seen = trials.count[:, column] > 0
        means, squares = trials.scores.Q[seen, column], trials.squares[seen, column]
        parts.append(split_variance(means, squares, trials.count[seen, column], np.nan))
    return np.array([part.within for part in parts]), np.array([part.per_trial for part in parts])


def _describe_repeated(
    pairs: Sequence[PairVariance], repeated: Sequence[PairVariance], n_trials: int | None, stored: PlannedTrials
) -> str:
    """Return which pairs the rows by number of trials are of.

    Args:
        pairs: all of them.
        repeated: those of models with several trials.
        n_trials: that the user chose, if any.
        stored: the plan for these with the stored trials.
    """
    if n_trials is not None:
        return f"{len(pairs) - len(repeated):,} pairs are left out: a model has one trial of each prompt."
    subject = "the pair" if len(repeated) == 1 else f"the {len(repeated):,} pairs"
    return (
        f"Rows by number of trials are for the median of {subject} with several trials, which needs "
        f"{_count(stored.median.n_prompts)} prompts with the stored trials."
    )


def _describe_policy(trials: TrialScores) -> tuple[str, ...]:
    """Return what the plan makes of missing scores under ``bounds``; empty if none is missing."""
    if trials.scores.missing != "bounds" or trials.scores.is_complete:
        return ()
    return ("The plan takes the largest variance of each pair that missing scores allow.",)


def _choose_trials(pairs: Sequence[PairVariance], trials: TrialScores, n_trials: int | None) -> list[int | None]:
    """Return the numbers of trials to plan for; None stands for those of the stored runs."""
    is_known = any(not np.isnan(pair.within) for pair in pairs)
    if n_trials is None:
        return [None, *LISTED_TRIALS] if is_known else [None]
    if is_known:
        return [n_trials]
    if n_trials == 1 and trials.count.max() == 1:
        return [None]
    raise SelectionError(
        f"No two models of {trials.scores.benchmark} have several trials of a prompt, so the effect of --trials "
        f"{n_trials} is unknown. Import or evaluate runs with several trials, or leave --trials out."
    )


def _plan(
    pairs: Sequence[PairVariance], n_trials: int | None, effect: float, power: float, alpha: float, exponent: int
) -> PlannedTrials:
    """Return the plan for the median and the high pair.

    Args:
        pairs: variances of scores over 2**exponent.
        n_trials: of each prompt; None for those of the stored runs.
        effect, power, alpha: of the test; the effect in the unit of the scores.
        exponent: of that unit.
    """
    scaled = math.ldexp(effect, -exponent)
    errors = np.array([pair.stderr_with(n_trials) ** 2 * pair.n for pair in pairs])
    order = np.argsort(errors, kind="stable")[: int((errors > 0).sum())]  # unknown errors come last
    places = [order[int(np.ceil(share * len(order))) - 1] for share in (0.5, HIGH)]
    median, high = (
        plan_study(pairs[place], effect=scaled, power=power, alpha=alpha, n_trials=n_trials) for place in places
    )
    median, high = (replace(size, detectable=float(np.ldexp(size.detectable, exponent))) for size in (median, high))
    return PlannedTrials(n_trials=n_trials, median=median, high=high)


def _check_possible(effect: float, trials: TrialScores) -> None:
    """Check that two means can differ so much."""
    allowed, metric = trials.scores.metric_bounds, trials.scores.metric
    if allowed is not None and effect > abs(allowed[1] - allowed[0]):
        raise SelectionError(
            f"The effect {effect:g} is impossible: {metric} is between {min(allowed):g} and {max(allowed):g}."
        )


def _check_options(effect: float, power: float, level: float) -> None:
    if not 0 < effect < np.inf:
        raise SelectionError(f"The effect is {effect:g}; it must be a positive number, such as 0.01.")
    if not 0 < level < 1:
        raise SelectionError(f"The level is {level:g}; it must be between 0 and 1, such as 0.95.")
    if not 1 - level < power < 1:
        raise SelectionError(f"The power is {power:g}; it must be between {1 - level:.2g} and 1, such as 0.8.")


def _count(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "more than a trillion"
