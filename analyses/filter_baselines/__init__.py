"""Does a filter do better than chance, or than a filter by difficulty?

A recorded filter is set beside random subsets of its size, and beside item-response filtering: leaving out the prompts
that are easiest, or that tell good models least from bad ones, by the two-parameter logistic model. For each, how well
the ranking of the models stays, how the scores go with those of another benchmark, and how far models agree.

Source: Gupta et al. 2024, section 4.4, tables 4 and 5; every number is defined in docs/statistics/filter-baselines.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.filter_baselines import figures, tables
from analyses.filter_baselines import summary as wording
from analyses.numerics.filtering.effects.random_comparison import (
    STATISTICS,
    SelectionComparison,
    compare_with_random,
    full_statistics,
)
from analyses.numerics.filtering.item_response import TwoParameterFit, fit_two_parameter, flag_easy_or_undiscriminating
from analyses.presentation.validation import validate
from tracker.queries.answers import Answers
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.evidence import answers_or_outcomes
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import (
    Finding,
    Metric,
    PromptValues,
    RankedModels,
    Report,
    Undefined,
    analysis,
    finite_or_undefined,
)
from tracker.statistics.ranking import mean_ranks

PARAMETERS = ("difficulty", "discrimination")
"""Numbers of a prompt."""


@dataclass(frozen=True, kw_only=True)
class FilterBaselines(Finding):
    """A filter and item-response filtering, each beside random subsets of its size.

    Attributes:
        filter: the filter's key and question, such as ``12 (smart-filtering)``.
        models: those with a score for every prompt, by which the methods are compared.
        n_filter_models: how many of them the filter looked at.
        n_subsets: random subsets.
        against: the other benchmark and its metric; '' where none was named.
        n_against: models with a score there too.
        agreement_of: ``answers``; ``right or wrong`` where not every model's answers are stored; '' where it is of
            neither.
        full: statistics of all prompts.
        methods: by name, ``filter`` and ``item_response``; the latter is not there where it could not be fitted.
        response: the fit; None where there is none.
        n_response_models: models it is made from.
        reason: why there is none.
        percentile, combine: as chosen.
    """

    filter: str
    models: tuple[str, ...]
    n_filter_models: int
    n_subsets: int
    against: str
    n_against: int
    agreement_of: str
    full: Mapping[str, float]
    methods: Mapping[str, SelectionComparison]
    response: TwoParameterFit | None
    n_response_models: int
    reason: str
    percentile: float
    combine: str

    @property
    def statistics(self) -> Sequence[str]:
        """Names of those that were asked for: correlations only where there is something to correlate with."""
        return [name for name in STATISTICS if self.against or name not in ("pearson", "spearman")]

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, then each method with its random subsets, then the fit."""
        kept = self.methods["filter"].kept
        metrics: dict[str, Metric] = {
            "n_prompts": float(len(kept)),
            "n_models": float(len(self.models)),
            "n_filter_models": float(self.n_filter_models),
            "n_subsets": float(self.n_subsets),
        }
        if self.against:
            metrics["n_against"] = float(self.n_against)
        for name in (name for name in self.statistics if name in self.full):
            metrics[f"full.{name}"] = finite_or_undefined(self.full[name], wording.UNDEFINED[name])
        for method in ("filter", "item_response"):
            metrics |= self._of_method(method)
        if "item_response" in self.methods:
            both = ~kept & ~self.methods["item_response"].kept
            metrics["n_removed_by_both"] = float(both.sum())
        return metrics | self._of_response()

    def _of_method(self, method: str) -> dict[str, Metric]:
        beside = self.methods.get(method)
        if beside is None:
            names = ("n_removed", "share_removed", *self.statistics)
            return {f"{method}.{name}": Undefined(self.reason) for name in names}
        found: dict[str, Metric] = {
            f"{method}.n_removed": float((~beside.kept).sum()),
            f"{method}.share_removed": beside.share_removed,
        }
        for name in self.statistics:
            drawn, absent = beside.spread(name), wording.UNDEFINED[name]
            found[f"{method}.{name}"] = finite_or_undefined(beside.values[name], absent)
            found[f"{method}.{name}.random_mean"] = finite_or_undefined(drawn.mean, absent)
            found[f"{method}.{name}.random_low"] = finite_or_undefined(drawn.low, absent)
            found[f"{method}.{name}.random_high"] = finite_or_undefined(drawn.high, absent)
            found[f"{method}.{name}.position"] = finite_or_undefined(beside.position(name), absent)
        return found

    def _of_response(self) -> dict[str, Metric]:
        if self.response is None:
            return {}
        found: dict[str, Metric] = {
            "item_response.n_models": float(self.n_response_models),
            "item_response.n_iterations": float(self.response.n_iterations),
            "item_response.converged": float(self.response.converged),
        }
        for name in PARAMETERS:
            told = wording.Told.of(self.response, name, self.percentile)
            found[f"item_response.{name}.limit"] = told.limit
            found[f"item_response.{name}.interquartile_range"] = told.interquartile_range
            found[f"item_response.{name}.median_stderr"] = told.median_stderr
        return found

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Each statistic in the random subsets, one by one."""
        return {
            f"{method}.random.{name}": beside.random[name]
            for method, beside in self.methods.items()
            for name in self.statistics
        }

    @property
    def headline(self) -> Sequence[str]:
        """All but the ends of intervals and the course of the fit."""
        return [name for name in self.metrics if not name.endswith(("_low", "_high", "n_iterations", "converged"))]

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(
            self.methods,
            self.full,
            filter_name=self.filter,
            n_models=len(self.models),
            against=self.against,
            n_against=self.n_against,
            agreement_of=self.agreement_of,
            reason=self.reason,
            percentile=self.percentile,
            combine=self.combine,
        )


@analysis
def analyze(
    scores: PerformanceMatrix,
    chosen: PromptFilter,
    answers: Answers,
    against: BenchmarkScores | None,
    *,
    n_subsets: Annotated[int, "random subsets that each method is compared with"] = 1000,
    percentile: Annotated[float, "of difficulty and of discrimination, at or below which item response removes"] = 25.0,
    combine: Annotated[
        Literal["either", "both"], "item response removes what is low in one of the two, or in both"
    ] = "either",
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Compare a filter with random subsets of its size and with item-response filtering.

    Args:
        scores: of all models; those with gaps take part in the fit alone.
        chosen: the filter; only prompts that it judged are looked at.
        answers: what the models answered; where some model's are not stored, agreement is that of right and wrong.
        against: scores of the same models on another benchmark.
        n_subsets: random subsets of the size of each method's selection.
        percentile, combine: of item-response filtering.
        seed: the same seed gives the same numbers, whatever the number of workers.

    Raises:
        SelectionError: no prompt that the filter judged; no model with a score for each of them; an option that means
            nothing; too few models that the other benchmark has too.
    """
    validate(wording.problems(scores, n_subsets=n_subsets, percentile=percentile, seed=seed))
    stays, judged = chosen.align(scores.prompt_ids)
    validate(wording.unjudged(chosen, judged))
    scores, stays = scores.rows(judged), stays[judged]
    complete = np.flatnonzero(~np.isnan(scores.Q).any(axis=0))
    models = tuple(scores.models[column] for column in complete)
    elsewhere = None if against is None else against.align(models)
    validate(wording.too_few(models, elsewhere, against))
    Q = np.ascontiguousarray(scores.Q[:, complete]) * (1.0 if scores.higher_is_better else -1.0)
    said, agreement_of = answers_or_outcomes(answers.align(scores.prompt_ids), scores, complete)
    selections, response, reason = {"filter": stays}, None, ""
    if scores.is_binary:
        response = fit_two_parameter(scores.Q if scores.higher_is_better else 1 - scores.Q)
        selections["item_response"] = ~flag_easy_or_undiscriminating(response, percentile=percentile, combine=combine)
    else:
        reason = "item response is fitted to right (1) and wrong (0), and the scores are others"
    set_aside = np.isin(models, chosen.models)
    found = FilterBaselines(
        filter=f"{chosen.finding_id} ({chosen.made_by})",
        models=models,
        n_filter_models=int(set_aside.sum()),
        n_subsets=n_subsets,
        against="" if against is None else against.label,
        n_against=0 if elsewhere is None else int((~np.isnan(elsewhere)).sum()),
        agreement_of=agreement_of,
        full=full_statistics(Q, said, elsewhere=elsewhere),
        methods={
            name: compare_with_random(
                Q, kept, said, set_aside=set_aside, elsewhere=elsewhere, n_subsets=n_subsets, seed=seed
            )
            for name, kept in selections.items()
        },
        response=response,
        n_response_models=0 if response is None else int((~np.isnan(response.ability)).sum()),
        reason=reason,
        percentile=percentile,
        combine=combine,
    )
    means = Q.mean(axis=0)
    return Report(
        found,
        prompt_values=_prompt_values(scores.prompt_ids, response),
        rankings=_rankings(scores.models, response),
        tables={
            "methods": tables.methods(found.methods, found.full, found.statistics),
            "models": tables.models(models, set_aside, means, found.methods, sign=1 if scores.higher_is_better else -1),
        },
        figures=_figures(found),
        warnings=wording.warnings(
            chosen,
            models=models,
            scores=scores,
            n_unjudged=int((~judged).sum()),
            n_filter_models=found.n_filter_models,
            agreement_of=agreement_of,
            n_against=found.n_against if found.against else None,
            response=response,
            n_response_models=found.n_response_models,
            percentile=percentile,
        ),
    )


def _prompt_values(prompt_ids: NDArray[np.int64], response: TwoParameterFit | None) -> dict[str, PromptValues]:
    if response is None:
        return {}
    names = (*PARAMETERS, *(f"{name}_stderr" for name in PARAMETERS))
    return {name: PromptValues(prompt_ids=prompt_ids, values=getattr(response, name)) for name in names}


def _rankings(models: tuple[str, ...], response: TwoParameterFit | None) -> dict[str, RankedModels]:
    """Models by their ability, which allows for prompts that tell more and those that tell less."""
    if response is None:
        return {}
    known = np.flatnonzero(~np.isnan(response.ability))
    ability = response.ability[known]
    names = tuple(models[place] for place in known)
    return {"ability": RankedModels(models=names, score=ability, rank=mean_ranks(ability))}


def _figures(found: FilterBaselines) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "random_subsets": lambda: figures.random_subsets(found.methods, found.full, found.statistics)
    }
    if found.response is not None:
        response, methods = found.response, found.methods
        limits = [wording.Told.of(response, name, found.percentile).limit for name in PARAMETERS]
        drawn["prompts"] = lambda: figures.prompts(
            response, methods["filter"].kept, methods["item_response"].kept, limits
        )
    return drawn
