"""What does this benchmark trade between diversity and stability?

Tasks vote, models stand. Diversity: how far the tasks disagree on the order of the models. Sensitivity: how far the
final ranking can be moved by what should not matter, which is weighing tasks differently where scores are averaged, and
the presence of other models where win rates are counted. Both come with a witness that anyone can check.

Source: Zhang & Hardt 2024; every number is defined in docs/statistics/social-choice.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.epsilon import automatic_epsilon
from analyses.numerics.elections.diversity.concordance import task_distances
from analyses.numerics.elections.diversity.diversity_variants import (
    MIN_COMPLETE_TASKS,
    DiversityVariants,
    diversity_variants,
)
from analyses.numerics.elections.diversity.ranking_distance import average_ranks
from analyses.numerics.elections.exact_scores import ExactScores, exact_scores
from analyses.numerics.elections.largest_change import CardinalSensitivity, OrdinalSensitivity
from analyses.numerics.elections.reranking import Reranking
from analyses.numerics.elections.sensitivity_results import (
    CardinalResult,
    OrdinalResult,
    compute_cardinal,
    compute_ordinal,
)
from analyses.numerics.elections.win_rates import WinRateRule
from analyses.presentation.epsilon_option import parse_epsilon_option
from analyses.presentation.validation import validate
from analyses.social_choice import figures, tables
from analyses.social_choice import summary as wording
from tracker.queries.performance import TaskMatrix
from tracker.queries.ranking.task_rankings import task_rankings
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, analysis, finite_or_undefined

SENSITIVITY = ("tau", "tau_upper", "mrc", "mrc_upper", "exact", "tau_paper", "tau_b")
"""Metrics that both sensitivities have."""


@dataclass(frozen=True, kw_only=True)
class SocialChoice(Finding):
    """Diversity and sensitivities of a benchmark.

    Attributes:
        n_tasks, n_models, n_missing: of the table.
        diversities: how far tasks disagree.
        cardinal: None where it was not asked for.
        ordinal: None where it was not asked for.
        method: "exact" or "paper".
    """

    n_tasks: int
    n_models: int
    n_missing: int
    diversities: DiversityVariants
    cardinal: CardinalResult | Undefined | None
    ordinal: OrdinalResult | None
    method: str

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, diversities, sensitivities."""
        found: dict[str, Metric] = {name: float(getattr(self, name)) for name in ("n_tasks", "n_models", "n_missing")}
        found |= _diversities(self.diversities)
        if isinstance(self.cardinal, Undefined):
            found |= {f"cardinal.{name}": self.cardinal for name in (*SENSITIVITY, "n_reversed", "epsilon")}
        elif self.cardinal:
            c = self.cardinal.sensitivity
            found |= _sensitivity("cardinal", c)
            found |= {"cardinal.n_reversed": float(c.tau.distance.n_reversed), "cardinal.epsilon": float(c.epsilon)}
        if self.ordinal:
            o = self.ordinal.sensitivity
            found |= _sensitivity("ordinal", o)
            found |= {"ordinal.n_top": float(len(o.leading)), "ordinal.n_added": float(o.tau.witness.sum())}
        return found

    def summary(self) -> str:
        """What was found, in plain words."""
        said = wording.diversity(self.diversities, self.n_models, self.n_tasks, self.n_missing)
        if isinstance(self.cardinal, Undefined):
            said.append(f"Cardinal sensitivity is not given: {self.cardinal.reason}.")
        elif self.cardinal:
            c = self.cardinal
            said += wording.cardinal(c.sensitivity, c.reranking, c.tasks, is_standardised=c.is_standardised)
        if self.ordinal:
            said += wording.ordinal(
                self.ordinal.sensitivity, self.ordinal.reranking, is_explicit=self.ordinal.is_explicit
            )
        return " ".join([*said, wording.no_test(self.method)])


def _diversities(found: DiversityVariants) -> Mapping[str, Metric]:
    tasks: Metric = Undefined(f"{found.n_complete_tasks} tasks have a score from every model: too few")
    models: Metric = Undefined(f"{found.n_complete_models} models have a score on every task: too few")
    corrected = tasks
    if found.complete_tasks:
        tasks, corrected = found.complete_tasks.raw, found.complete_tasks.tie_corrected
        corrected = finite_or_undefined(
            corrected, "every task ties all models: there is no order to agree or disagree on"
        )
    return {
        "diversity": found.whole.raw,
        "diversity.tie_corrected": corrected,
        "diversity.complete_tasks": tasks,
        "diversity.complete_models": found.complete_models.raw if found.complete_models else models,
    }


def _sensitivity(system: str, found: CardinalSensitivity | OrdinalSensitivity) -> dict[str, Metric]:
    tau, mrc = found.tau, found.mrc
    values = (tau.value, tau.upper_bound, mrc.value, mrc.upper_bound, float(found.is_exact), tau.distance.tau_paper)
    one_tied = "one of the two rankings ties all models, the other does not"
    named = zip(SENSITIVITY, (*values, finite_or_undefined(tau.distance.tau_b, one_tied)), strict=True)
    return {f"{system}.{name}": value for name, value in named}


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    system: Annotated[Literal["both", "cardinal", "ordinal"], "which sensitivity to find"] = "both",
    columns: Annotated[
        Literal["standardised", "raw"], "what is weighed: tasks of standard deviation 1, or scores as they are"
    ] = "standardised",
    epsilon: Annotated[
        str, "least weight of a task, a decimal number; auto: the least of 0.01 and smallest/largest deviation"
    ] = "0.01",
    top: Annotated[float, "share of the models that lead, by win rate; from 2 on their number"] = 0.2,
    top_models: Annotated[tuple[str, ...], "leading models by name, in place of --top"] = (),
    win_rate: Annotated[
        Literal["pairwise", "per-task"], "the paper's, averaged over rivals, or HELM's, averaged over tasks"
    ] = "pairwise",
    time_limit: Annotated[float, "seconds for the exact search of each sensitivity; 0: no exact search"] = 30.0,
    method: Annotated[
        Literal["exact", "paper"], "search that can prove its result, or the paper's Algorithms 1 and 2"
    ] = "exact",
    seed: Annotated[int, "of the random draws of --method paper; the other uses none"] = 0,
) -> Report:
    """Find diversity and both sensitivities of a benchmark.

    Args:
        scores: at least 3 models; missing scores are allowed, see docs/statistics/social-choice.md.
        system: one sensitivity, or both.
        columns: whether tasks are standardised before they are weighed.
        epsilon: in (0, 1].
        top: in (0, 1), or an integer of at least 2.
        top_models: at least two, and not all.
        win_rate: how models are ranked in the ordinal system.
        time_limit: what is not proven by then is given as an interval; how narrow depends on the machine.
        method: how the largest changes are searched.
        seed: the same seed gives the same bytes.

    Raises:
        SelectionError: too few models, infinite scores, or an option out of range.
    """
    field = task_rankings(scores)
    table = field.scores
    validate(
        {
            **wording.unknown(system=system, columns=columns, win_rate=win_rate, method=method),
            **wording.problems(table.models, top=top, top_models=top_models, time_limit=time_limit, seed=seed),
        }
    )
    least = parse_epsilon_option(epsilon)
    exact = exact_scores(table.T, table.n_prompts, higher_is_better=table.higher_is_better)
    drawn_with = None if method == "exact" else seed
    by_weights: CardinalResult | Undefined | None = None
    by_models: OrdinalResult | None = None
    if system != "ordinal":
        complete = np.asarray(exact.present.all(axis=1), dtype=np.bool_)
        by_weights = Undefined(f"{complete.sum()} tasks have a score from every model, which leaves nothing to weigh")
        if exact.is_complete or complete.sum() >= MIN_COMPLETE_TASKS:
            kept, of_kept = table.rows(complete), exact.rows(complete)
            by_weights = compute_cardinal(
                of_kept,
                kept.T,
                kept.tasks,
                kept.models,
                epsilon=automatic_epsilon(of_kept) if least is None else least,
                is_standardised=columns == "standardised",
                time_limit=time_limit,
                seed=drawn_with,
            )
    if system != "cardinal":
        rule: WinRateRule = "pairwise" if win_rate == "pairwise" else "per_task"
        by_models = compute_ordinal(
            exact,
            table.models,
            leading=top_models or top,
            rule=rule,
            time_limit=time_limit,
            seed=drawn_with,
        )
    found = SocialChoice(
        n_tasks=table.n_tasks,
        n_models=table.n_models,
        n_missing=int((~exact.present).sum()),
        diversities=diversity_variants(exact),
        cardinal=by_weights,
        ordinal=by_models,
        method=method,
    )
    return Report(
        found,
        task_values=_task_values(found),
        rankings=_rankings(found, table),
        tables=_tables(found),
        figures=_figures(found, table),
        warnings=[*field.warnings, *_notes(found, table, exact, time_limit)],
    )


def _task_values(found: SocialChoice) -> Mapping[str, Mapping[str, float]]:
    c = found.cardinal
    if not isinstance(c, CardinalResult):
        return {}
    changes = {"tau": c.sensitivity.tau, "mrc": c.sensitivity.mrc}
    return {
        f"cardinal.{name}.weight": dict(zip(c.tasks, change.witness.tolist(), strict=True))
        for name, change in changes.items()
    }


def _rankings(found: SocialChoice, table: TaskMatrix) -> Mapping[str, RankedModels]:
    rankings: dict[str, RankedModels] = {}
    if isinstance(found.cardinal, CardinalResult):
        rankings |= _before_and_after("mean", "cardinal", found.cardinal.reranking)
    if found.ordinal:
        rates: NDArray[Any] = np.array(found.ordinal.rates, dtype=object)
        score, rank = rates.astype(np.float64), average_ranks(rates)
        rankings["win_rate"] = RankedModels(models=table.models, score=score, rank=rank)
        rankings |= _before_and_after("ordinal.before", "ordinal", found.ordinal.reranking)
    return rankings


def _before_and_after(before: str, system: str, r: Reranking) -> Mapping[str, RankedModels]:
    return {before: RankedModels(models=r.models, score=r.score, rank=r.rank)} | {
        f"{system}.{name}": RankedModels(models=r.models, score=one.score, rank=one.change.after)
        for name, one in (("tau", r.tau), ("mrc", r.mrc))
    }


def _notes(found: SocialChoice, table: TaskMatrix, exact: ExactScores, time_limit: float) -> list[str]:
    said = wording.warnings(exact, table.tasks, found.diversities.n_complete_tasks)
    if found.ordinal and not found.ordinal.is_explicit:
        said += wording.boundary(found.ordinal.rates, found.ordinal.sensitivity.leading, table.models)
    if found.method == "paper":
        return [*said, wording.DESCENT]
    if isinstance(found.cardinal, CardinalResult):
        said += wording.unproven(found.cardinal.sensitivity, "Cardinal", time_limit)
    if found.ordinal:
        is_open = found.ordinal.rule == "per_task" and found.n_missing > 0 and not found.ordinal.sensitivity.is_exact
        unproven = wording.unproven(found.ordinal.sensitivity, "Ordinal", time_limit)
        said += [wording.BOUNDS_ONLY] if is_open else unproven
    return said


def _tables(found: SocialChoice) -> Mapping[str, Any]:
    drawn: dict[str, Any] = {}
    if isinstance(found.cardinal, CardinalResult):
        c = found.cardinal
        drawn["cardinal"] = tables.by_task(c.tasks, c.sensitivity)
        drawn["cardinal_ranking"] = tables.by_model(c.reranking, "mean")
    if found.ordinal:
        drawn["ordinal_added"] = tables.by_added(found.ordinal.others, found.ordinal.sensitivity)
        drawn["ordinal_ranking"] = tables.by_model(found.ordinal.reranking, "win_rate")
    return drawn


def _figures(found: SocialChoice, table: TaskMatrix) -> Mapping[str, Callable[[], Any]]:
    drawn: dict[str, Callable[[], Any]] = {}
    if isinstance(found.cardinal, CardinalResult):
        c, said = found.cardinal, ("by a weighted mean", "by a weighted mean")
        drawn["cardinal_ranking"] = lambda: figures.slopes(c.reranking, "by mean", said, wording.titles(c.sensitivity))
    if found.ordinal:
        o, alone = found.ordinal, "by win rate\namong themselves"
        drawn["ordinal_ranking"] = lambda: figures.slopes(
            o.reranking, alone, wording.added(o.sensitivity), wording.titles(o.sensitivity)
        )
    if table.n_tasks > 1:
        drawn["task_distances"] = lambda: figures.distances(table.tasks, task_distances(table.T))
    return drawn
