"""The summary of filter baselines and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.filter_baselines.method import PARAMETERS, TIED, FilterBaselines, summarize_parameter
from analyses.numerics.filtering.item_response import TwoParameterFit
from analyses.presentation.correlation_warnings import warn_of_few_models
from analyses.presentation.filter_effects import SAME
from tracker.name_lists import join_names
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.findings.summary import Summary

MIN_MODELS = 200
"""Models below which a warning calls difficulty and discrimination uncertain."""
TAILS = (0.025, 0.975)
"""Positions between which a selection is as good as random ones."""
METHODS = {"filter": "filter", "item_response": "item response"}


def summarize(finding: FilterBaselines) -> Summary:
    """Summarize whether the filter keeps the ranking better than random subsets and than item response."""
    evidence = [
        _describe_sizes(finding),
        _compare(finding, "tau", "Tau-b of the rankings before and after", "{:.3f}"),
        _compare(finding, "tau_without_filter_models", "Tau-b without the filter models", "{:.3f}"),
        _describe_correlations(finding),
        _describe_agreement(finding),
    ]
    return Summary(_headline(finding), tuple(item for item in evidence if item), tuple(_list_caveats(finding)))


def _headline(finding: FilterBaselines) -> str:
    comparison, name = finding.methods["filter"], f"Filter {finding.filter}"
    position, spread = comparison.position("tau"), comparison.spread("tau")
    if np.isnan(position):
        return f"Whether {name.lower()} keeps the ranking is open: {TIED}."
    verdict = "worse than" if position < TAILS[0] else "better than" if position > TAILS[1] else "as well as"
    return (
        f"{name} keeps the ranking {verdict} random subsets of its size (tau-b {comparison.values['tau']:.3f}, "
        f"random {spread.low:.3f} to {spread.high:.3f})."
    )


def _describe_sizes(finding: FilterBaselines) -> str:
    """Describe how many prompts each method removes."""
    methods, percentile = finding.methods, finding.percentile
    n, n_subsets = len(methods["filter"].kept), methods["filter"].random["tau"].size
    data = f"{n:,} prompts, {len(finding.models)} ranked models, {n_subsets:,} random subsets"
    removed = f"Removed by the filter: {methods['filter'].share_removed:.1%}"
    if "item_response" not in methods:
        return f"Data: {data}. {removed}."
    both = int((~methods["filter"].kept & ~methods["item_response"].kept).sum())
    conjunction = {"either": "or", "both": "and"}[finding.combine]
    return (
        f"Data: {data}. {removed}; by item response (lowest {percentile:g}% in difficulty {conjunction} "
        f"discrimination): {methods['item_response'].share_removed:.1%}; by both: {both:,} prompts."
    )


def _compare(finding: FilterBaselines, name: str, start: str, pattern: str) -> str:
    """Compare one statistic of every method with 95% of its random subsets; '' if it is undefined."""
    parts: list[str] = []
    for method, comparison in finding.methods.items():
        value, position, spread = comparison.values[name], comparison.position(name), comparison.spread(name)
        if np.isnan(position):
            continue
        outside = ", below" if position < TAILS[0] else ", above" if position > TAILS[1] else ""
        value_text, low, high = (pattern.format(number) for number in (value, spread.low, spread.high))
        parts.append(f"{METHODS[method]} {value_text} (random {low} to {high}{outside})")
    return f"{start}: {', '.join(parts)}." if parts else ""


def _describe_correlations(finding: FilterBaselines) -> str:
    """Compare the correlations with the other benchmark; '' without one."""
    if not finding.against:
        return ""
    texts = [
        _compare(finding, name, f"{name.capitalize()} ({finding.full[name]:.3f} on all prompts)", "{:.3f}")
        for name in ("pearson", "spearman")
    ]
    known = " ".join(text for text in texts if text)
    return f"Correlation with {finding.against} over {finding.n_against} models. {known}" if known else ""


def _describe_agreement(finding: FilterBaselines) -> str:
    """Compare how often two models agree; '' if it is undefined."""
    if not finding.agreement_of:
        return ""
    start = f"Two models {SAME[finding.agreement_of]} ({finding.full['agreement']:.1%} of all prompts)"
    return _compare(finding, "agreement", start, "{:.1%}")


def _list_caveats(finding: FilterBaselines) -> Iterator[str]:
    if finding.response is None:
        yield f"There is no item-response filter to compare with: {finding.reason}."
        return
    if not finding.response.converged:
        yield f"The item-response fit did not converge in {finding.response.n_iterations} iterations."
    if finding.n_open:
        yield (
            f"For {finding.n_open:,} prompts no options are stored, so the item-response fit has no guessing there. If "
            "they are multiple-choice, hard ones appear easier."
        )


def list_warnings(
    finding: FilterBaselines, recorded: PromptFilter, models: Sequence[str], *, n_undecided: int
) -> list[str]:
    """List warnings about the filter, the models and the fit, the most important first.

    Args:
        finding: the result.
        recorded: the filter.
        models: all with any score.
        n_undecided: prompts without a decision of the filter.
    """
    warnings = []
    if recorded.stale:
        warnings.append(f"Filter {recorded.finding_id} uses scores that are no longer the latest ({recorded.stale}).")
    if n_undecided:
        warnings.append(f"{n_undecided:,} prompts without a decision of filter {recorded.finding_id} are left out.")
    if recorded.models and not finding.n_filter_models:
        warnings.append("No filter model is ranked here.")
    elif finding.n_filter_models < len(recorded.models):
        warnings.append(f"Only {finding.n_filter_models} of {len(recorded.models)} filter models are ranked here.")
    if gaps := [name for name in models if name not in set(finding.models)]:
        part = "; they are used for the item-response fit only" if finding.response else ""
        warnings.append(f"Not ranked, because scores are missing: {join_names(gaps)}{part}.")
    if finding.against:
        warnings += warn_of_few_models(finding.n_against)
    if finding.agreement_of == "right or wrong":
        warnings.append("Not every ranked model has stored answers, so agreement compares right and wrong.")
    return warnings if finding.response is None else warnings + _warn_of_response(finding, finding.response)


def _warn_of_response(finding: FilterBaselines, response: TwoParameterFit) -> list[str]:
    n_models = finding.n_response_models
    if n_models >= MIN_MODELS:
        return []
    parameters = {name: summarize_parameter(response, name, finding.percentile) for name in PARAMETERS}
    errors = ", ".join(
        f"{parameter.median_stderr:.2f} for {name} (interquartile range {parameter.interquartile_range:.2f})"
        for name, parameter in parameters.items()
    )
    return [
        f"Item response is fitted to only {n_models} models, so it depends on the choice of models. Median standard "
        f"errors: {errors}."
    ]
