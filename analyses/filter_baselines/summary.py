"""The summary of filter baselines and its warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from analyses.filter_baselines.method import PARAMETERS, FilterBaselines, summarize_parameter
from analyses.numerics.filtering.effects.random_comparison import SelectionComparison
from analyses.numerics.filtering.item_response import TwoParameterFit
from analyses.presentation.correlation_warnings import warn_of_few_models
from analyses.presentation.filter_effects import SAME
from tracker.name_lists import join_names
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.findings.summary import Summary

MIN_MODELS = 200
"""Models below which difficulty and discrimination are uncertain enough to say so."""
TAILS = (0.025, 0.975)
"""Between these positions a selection does as random ones do."""
METHODS = {"filter": "the filter", "item_response": "item response"}


def summarize(finding: FilterBaselines) -> Summary:
    """The result in a paragraph, with its numbers."""
    methods, against = finding.methods, finding.against
    rows = {
        "tau": (f"The {len(finding.models)} ranked models keep their order with a tau-b of", "{:.3f}"),
        "tau_without_filter_models": ("Among those that did not filter it is", "{:.3f}"),
    }
    if against:
        for name in ("pearson", "spearman"):
            value = f"{name.capitalize()}'s correlation with {against} over {finding.n_against} models is"
            rows[name] = (f"{value} {finding.full[name]:.3f}; on what is kept", "{:.3f}")
    if finding.agreement_of:
        start = f"Two models {SAME[finding.agreement_of]} on {finding.full['agreement']:.1%} of all prompts;"
        rows["agreement"] = (f"{start} of those kept on", "{:.1%}")
    comparisons = (_compare(methods, name, *texts) for name, texts in rows.items())
    return Summary.from_sentences([*_describe_sizes(finding), *comparisons])


def _describe_sizes(finding: FilterBaselines) -> list[str]:
    """What each method removes, and what it is compared with."""
    methods, percentile = finding.methods, finding.percentile
    n = len(methods["filter"].kept)
    sentences = [f"Filter {finding.filter} removes {methods['filter'].share_removed:.1%} of {n:,} prompts."]
    if "item_response" in methods:
        lowest = {
            "either": f"the {percentile:g} % that are easiest and the {percentile:g} % that discriminate least",
            "both": f"what is among both the {percentile:g} % that are easiest and the {percentile:g} % that "
            "discriminate least",
        }
        both = int((~methods["filter"].kept & ~methods["item_response"].kept).sum())
        sentences.append(
            f"Item-response filtering removes {lowest[finding.combine]}, together "
            f"{methods['item_response'].share_removed:.1%}; {both:,} prompts are removed by both."
        )
    else:
        sentences.append(f"No item-response filtering: {finding.reason}.")
    n_subsets = methods["filter"].random["tau"].size
    return [*sentences, f"In brackets is what 95 % of {n_subsets:,} random subsets give that are of the same size."]


def _compare(methods: Mapping[str, SelectionComparison], name: str, start: str, pattern: str) -> str:
    """One statistic of every method comparison its random subsets; '' where it is not defined."""
    parts: list[str] = []
    for method, comparison in methods.items():
        value, position, spread = comparison.values[name], comparison.position(name), comparison.spread(name)
        if np.isnan(position):
            continue
        outside = ", below" if position < TAILS[0] else ", above" if position > TAILS[1] else ""
        value_text, low, high = (pattern.format(number) for number in (value, spread.low, spread.high))
        parts.append(f"{value_text} with {METHODS[method]} (random: {low} to {high}{outside})")
    return f"{start} {' and '.join(parts)}." if parts else ""


def list_warnings(
    finding: FilterBaselines, recorded: PromptFilter, models: Sequence[str], *, n_undecided: int
) -> list[str]:
    """What the reader of the numbers should know of how they came about.

    Args:
        finding: the result.
        recorded: the filter.
        models: all with any score.
        n_undecided: prompts that the filter did not judge.
    """
    warnings, response = [], finding.response
    if n_undecided:
        warnings.append(
            f"{n_undecided:,} prompts that filter {recorded.finding_id} never judged, which came later or were not "
            "among the data chosen for it, are left out."
        )
    if recorded.stale:
        warnings.append(
            f"Filter {recorded.finding_id} was made of scores that are no longer the latest ({recorded.stale})."
        )
    if gaps := [name for name in models if name not in set(finding.models)]:
        part = "; they take part in the fit of item response alone" if response else ""
        warnings.append(f"Not ranked, since scores are missing: {join_names(gaps)}{part}.")
    if recorded.models and not finding.n_filter_models:
        warnings.append("None of the models that filtered is ranked here.")
    elif finding.n_filter_models < len(recorded.models):
        warnings.append(
            f"{finding.n_filter_models} of the {len(recorded.models)} models that filtered are ranked here."
        )
    if finding.agreement_of == "right or wrong":
        warnings.append("Not every ranked model's answers are stored; agreement is that of right and wrong.")
    if finding.against:
        warnings += warn_of_few_models(finding.n_against)
    return warnings if response is None else warnings + _warn_of_response(finding, response)


def _warn_of_response(finding: FilterBaselines, response: TwoParameterFit) -> list[str]:
    n_models = finding.n_response_models
    warnings = [
        "Item response as fitted here knows no guessing: where prompts have options to guess among, hard ones come out "
        "too easy and discriminate too little, and the standard errors do not say so."
    ]
    if not response.converged:
        warnings.append(
            f"The fit of item response still moved after {response.n_iterations} rounds; take it with care."
        )
    if n_models < MIN_MODELS:
        parameters = {name: summarize_parameter(response, name, finding.percentile) for name in PARAMETERS}
        uncertain = ", and ".join(
            f"{parameter.median_stderr:.2f} for {name}, over which the middle half of the prompts spreads by "
            f"{parameter.interquartile_range:.2f}"
            for name, parameter in parameters.items()
        )
        warnings.append(
            f"Item response is fitted to {n_models} models. With fewer than {MIN_MODELS} a prompt's numbers are "
            f"uncertain: the median standard error is {uncertain}. With other models it would remove other prompts."
        )
    return warnings
