"""Where a filter lies among random ones, and beside item response, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.random_comparison import SelectionComparison
from analyses.numerics.filtering.item_response import TwoParameterFit
from analyses.presentation.filter_effects import SAME
from analyses.presentation.name_lists import join_names
from analyses.presentation.other_scores import validate_shared_models, warn_of_few_models
from analyses.presentation.validation import ValidationErrors, check_minimum
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.score_validation import check_finite

ENOUGH_MODELS = 200
"""Models below which difficulty and discrimination are uncertain enough to say so."""
TAILS = (0.025, 0.975)
"""Between these positions a selection does as random ones do."""

TIED = "fewer than two models are ranked, or a ranking ties them all"
CONSTANT = "the scores of one of the two are all the same, or nothing is kept"
UNDEFINED = {
    "tau": TIED,
    "tau_without_filter_models": "no ranked model filtered, or fewer than two others are ranked, or all are tied",
    "pearson": CONSTANT,
    "spearman": CONSTANT,
    "agreement": "there are no two models with answers, or nothing is kept",
}
METHODS = {"filter": "the filter", "item_response": "item response"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """One of the two numbers of a prompt over all prompts.

    Attributes:
        limit: the percentile at or below which it is low.
        interquartile_range: between the quarter and three quarters of the prompts.
        median_stderr: of the prompts that have one.
    """

    limit: float
    interquartile_range: float
    median_stderr: float

    @classmethod
    def of(cls, response: TwoParameterFit, name: str, percentile: float) -> Told:
        """Look at one of the numbers by its name."""
        low, high, limit = np.nanpercentile(getattr(response, name), [25, 75, percentile])
        return cls(
            limit=float(limit),
            interquartile_range=float(high - low),
            median_stderr=float(np.nanmedian(getattr(response, f"{name}_stderr"))),
        )


def problems(scores: PerformanceMatrix, *, n_subsets: int, percentile: float, seed: int) -> ValidationErrors:
    """Why these scores or options cannot be used, and what to do about it."""
    return {
        **check_finite(scores.Q),
        f"percentile is {percentile:g}; it must be from 0 to 100.": not 0 <= percentile <= 100,
        **check_minimum(1, n_subsets=n_subsets),
        **check_minimum(0, seed=seed),
    }


def unjudged(chosen: PromptFilter, judged: NDArray[np.bool_]) -> ValidationErrors:
    """None of the chosen prompts was judged by the filter."""
    problem = f"Filter {chosen.finding_id} judged none of these prompts. Choose its tasks, or another --filter."
    return {problem: not judged.any()}


def too_few(
    models: Sequence[str], elsewhere: NDArray[np.float64] | None, against: BenchmarkScores | None
) -> ValidationErrors:
    """Nobody to compare methods by, or too few that the other benchmark has too."""
    return {
        "No model has a score for every prompt that the filter judged, so no means can be compared. Choose --models, "
        "--runs or --tasks that are complete.": not models,
        **validate_shared_models(against, elsewhere),
    }


def summary(
    methods: Mapping[str, SelectionComparison],
    full: Mapping[str, float],
    *,
    filter_name: str,
    n_models: int,
    against: str,
    n_against: int,
    agreement_of: str,
    reason: str,
    percentile: float,
    combine: str,
) -> str:
    """What was found, with its numbers."""
    n = len(methods["filter"].kept)
    said = [f"Filter {filter_name} removes {methods['filter'].share_removed:.1%} of {n:,} prompts."]
    if "item_response" in methods:
        lowest = {
            "either": f"the {percentile:g} % that are easiest and the {percentile:g} % that discriminate least",
            "both": f"what is among both the {percentile:g} % that are easiest and the {percentile:g} % that "
            "discriminate least",
        }
        both = int((~methods["filter"].kept & ~methods["item_response"].kept).sum())
        said.append(
            f"Item-response filtering removes {lowest[combine]}, together "
            f"{methods['item_response'].share_removed:.1%}; {both:,} prompts are removed by both."
        )
    else:
        said.append(f"No item-response filtering: {reason}.")
    n_subsets = methods["filter"].random["tau"].size
    said.append(f"In brackets is what 95 % of {n_subsets:,} random subsets give that are of the same size.")
    rows = {
        "tau": (f"The {n_models} ranked models keep their order with a tau-b of", "{:.3f}"),
        "tau_without_filter_models": ("Among those that did not filter it is", "{:.3f}"),
    }
    if against:
        for name in ("pearson", "spearman"):
            start = f"{name.capitalize()}'s correlation with {against} over {n_against} models is {full[name]:.3f};"
            rows[name] = (f"{start} on what is kept", "{:.3f}")
    if agreement_of:
        start = f"Two models {SAME[agreement_of]} on {full['agreement']:.1%} of all prompts;"
        rows["agreement"] = (f"{start} of those kept on", "{:.1%}")
    return " ".join([*said, *(_compared(methods, name, *words) for name, words in rows.items())]).strip()


def _compared(methods: Mapping[str, SelectionComparison], name: str, start: str, form: str) -> str:
    """One statistic of every method beside its random subsets; '' where it is not defined."""
    parts: list[str] = []
    for method, beside in methods.items():
        value, position, over = beside.values[name], beside.position(name), beside.spread(name)
        if np.isnan(position):
            continue
        outside = ", below" if position < TAILS[0] else ", above" if position > TAILS[1] else ""
        value_of, low, high = (form.format(number) for number in (value, over.low, over.high))
        parts.append(f"{value_of} with {METHODS[method]} (random: {low} to {high}{outside})")
    return f"{start} {' and '.join(parts)}." if parts else ""


def warnings(
    chosen: PromptFilter,
    *,
    models: Sequence[str],
    scores: PerformanceMatrix,
    n_unjudged: int,
    n_filter_models: int,
    agreement_of: str,
    n_against: int | None,
    response: TwoParameterFit | None,
    n_response_models: int,
    percentile: float,
) -> list[str]:
    """What the reader of the numbers should know of how they came about."""
    said = []
    if n_unjudged:
        said.append(
            f"{n_unjudged:,} prompts that filter {chosen.finding_id} never judged, which came later or were not among "
            "the data chosen for it, are left out."
        )
    if chosen.stale:
        said.append(f"Filter {chosen.finding_id} was made of scores that are no longer the latest ({chosen.stale}).")
    if gaps := [name for name in scores.models if name not in set(models)]:
        part = "; they take part in the fit of item response alone" if response else ""
        said.append(f"Not ranked, since scores are missing: {join_names(gaps)}{part}.")
    if chosen.models and not n_filter_models:
        said.append("None of the models that filtered is ranked here.")
    elif n_filter_models < len(chosen.models):
        said.append(f"{n_filter_models} of the {len(chosen.models)} models that filtered are ranked here.")
    if agreement_of == "right or wrong":
        said.append("Not every ranked model's answers are stored; agreement is that of right and wrong.")
    if n_against is not None:
        said += warn_of_few_models(n_against)
    return said if response is None else said + _of_response(response, n_response_models, percentile)


def _of_response(response: TwoParameterFit, n_models: int, percentile: float) -> list[str]:
    said = [
        "Item response as fitted here knows no guessing: where prompts have options to guess among, hard ones come out "
        "too easy and discriminate too little, and the standard errors do not say so."
    ]
    if not response.converged:
        said.append(f"The fit of item response still moved after {response.n_iterations} rounds; take it with care.")
    if n_models < ENOUGH_MODELS:
        of = {name: Told.of(response, name, percentile) for name in ("difficulty", "discrimination")}
        uncertain = ", and ".join(
            f"{told.median_stderr:.2f} for {name}, over which the middle half of the prompts spreads by "
            f"{told.interquartile_range:.2f}"
            for name, told in of.items()
        )
        said.append(
            f"Item response is fitted to {n_models} models. With fewer than {ENOUGH_MODELS} a prompt's numbers are "
            f"uncertain: the median standard error is {uncertain}. With other models it would remove other prompts."
        )
    return said
