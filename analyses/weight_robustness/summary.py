"""The summary of weight robustness, and warnings about its models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.numerics.weighting.random_weights import CENTRAL
from analyses.presentation.name_lists import list_leaders
from analyses.weight_robustness.method import WeightRobustness
from tracker.name_lists import join_names
from tracker.number_format import format_difference
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import LeaderChange, Undefined, VerdictLine, compare_leaders

MAX_DEVIATION = 3.5
"""Over the root of the number of draws, a difference that no share of draws has by chance: seven standard errors."""


def summarize(finding: WeightRobustness) -> Summary:
    """Summarize whether the first place and the order of pairs survive random weights."""
    n = f"{finding.n_effective:,.0f}"
    return Summary(
        _headline(finding),
        (*_list_evidence(finding), _describe_data(finding)),
        (
            "Random weights (Bayesian bootstrap) imitate another sample of prompts. They do not show whether the "
            "prompts measure the right thing.",
            f"Descriptive: no number here is a significance test. The spread follows from the scores and the "
            f"{'effective ' * finding.is_weighted}number of prompts ({n}).",
        ),
    )


def _headline(finding: WeightRobustness) -> str:
    u, leaders = finding.under, list_leaders(finding.rank, finding.models)
    if len(finding.models) == 1:
        return f"Whether the ranking is robust is open: {finding.models[0]} is the only model."
    if not finding.reversed.size:
        return "All models have the same scores, so no weights can change their order."
    n_first = u.n_draws - finding.n_changes
    around = " around the chosen weights" * finding.is_weighted
    share = f"all {u.n_draws:,}" if n_first == u.n_draws else f"{n_first:,} of {u.n_draws:,}"
    draws = f"{share} random weightings of the prompts{around}"
    verb, pronoun = ("is", "it leads") if len(leaders) == 1 else ("share first place", "one of them leads")
    if finding.n_changes > CENTRAL[0] * u.n_draws:
        place = " first" if len(leaders) == 1 else ""
        return f"{join_names(leaders)} {verb}{place}, but not robustly: {pronoun} in only {draws}."
    place = " robustly first" if len(leaders) == 1 else " robustly"
    return f"{join_names(leaders)} {verb}{place}: {pronoun} in {draws}."


def describe_verdict(finding: WeightRobustness, expected: Sequence[str]) -> list[VerdictLine]:
    """Return whether random weights, which imitate another sample of prompts, leave the first place open.

    Args:
        finding: the result.
        expected: models that the leaderboard ranks first.
    """
    n_draws, leaders = finding.under.n_draws, list_leaders(finding.rank, finding.models)
    is_shared = len(leaders) > 1 and not _are_identical(finding, leaders)
    is_open = finding.n_changes > CENTRAL[0] * n_draws or is_shared
    change = compare_leaders(leaders, expected)
    share = "all" if not finding.n_changes else f"{1 - finding.n_changes / n_draws:.1%} of"
    subject = f"{join_names(leaders)} leads" if len(leaders) == 1 else f"One of {join_names(leaders)} leads"
    text = f"{subject} in {share} {n_draws:,} random weightings, which imitate other samples of prompts"
    text += "; which one depends on the weights." if is_shared else "."
    changes: LeaderChange = "maybe" if is_open and change == "no" else change
    return [VerdictLine(topic="weights of prompts", text=text, leader_changes=changes)]


def _are_identical(finding: WeightRobustness, names: Sequence[str]) -> bool:
    """Return whether models have the same score on each prompt, so that no weights can separate them."""
    columns = [finding.models.index(name) for name in names]
    return bool(finding.under.is_identical[np.ix_(columns[1:], columns[:1])].all())


def _list_evidence(finding: WeightRobustness) -> Iterator[str]:
    u = finding.under
    if len(finding.models) > 1:
        yield _describe_leader(finding)
        yield _describe_pairs(finding)
    widest, ranging = int(np.argmax(u.high - u.low)), int(np.argmax(u.range_high - u.range_low))
    yield (
        f"Widest 95% interval of a weighted mean: {format_difference(u.low[widest])} to "
        f"{format_difference(u.high[widest])} "
        f"({finding.models[widest]}, mean {format_difference(u.mean[widest])})."
    )
    yield (
        f"Widest range of a weighted mean: {format_difference(u.range_high[ranging] - u.range_low[ranging])} "
        f"({finding.models[ranging]}). It covers about all {u.n_draws:,} draws; more draws widen it."
    )


def _describe_data(finding: WeightRobustness) -> str:
    """Describe the prompts and the models."""
    return f"Data: {finding.n_prompts:,} prompts and {len(finding.models)} models."


def _describe_leader(finding: WeightRobustness) -> str:
    """Describe the chance that another model leads, and that the second is ahead of the first."""
    u, error = finding.under, finding.metrics["leader_changes.stderr"]
    text = f"Another model leads with probability {finding.n_changes / u.n_draws:.3g} (± {error:.1g}"
    least, most = finding.leader_change_bounds()
    if not isinstance(least, Undefined) and not isinstance(most, Undefined):
        bounds = f"{least:.3g}" if f"{least:.3g}" == f"{most:.3g}" else f"{least:.3g} to {most:.3g}"
        text += f"; exact: {bounds}"
    first, second = finding.models[:2]
    if u.is_identical[1, 0]:
        return f"{text}). {second} and {first} have identical scores."
    return f"{text}). {second} is ahead of {first} with probability {u.beats[1, 0]:.3g}."


def _describe_pairs(finding: WeightRobustness) -> str:
    """Describe how many pairs of models are in the opposite order, and how often."""
    upsets = finding.reversed
    if not upsets.size:
        return "All pairs of models have identical scores."
    if upsets.size == 1:
        return f"The two models are in the opposite order in {upsets[0]:.2%} of the weightings."
    return (
        f"{int((upsets > CENTRAL[0]).sum()):,} of {upsets.size:,} pairs of models are in the opposite order in more "
        f"than {CENTRAL[0]:.1%} of the weightings (mean over pairs: {upsets.mean():.2%})."
    )


def list_model_warnings(finding: WeightRobustness) -> list[str]:
    """List warnings about chances beyond the draws, identical models and constant models."""
    models, u = finding.models, finding.under
    warnings = []
    if u.draws_differ_by > MAX_DEVIATION / np.sqrt(u.n_draws):
        warnings.append(
            f"Some weights are too small for the draws: shares of draws differ from exact probabilities by up to "
            f"{u.draws_differ_by:.2g}. Use `--method exact`, and ignore the distribution of places."
        )
    pairs = [f"{models[i]} = {models[j]}" for i, j in zip(*np.nonzero(np.triu(u.is_identical, 1)), strict=True)]
    if pairs:
        warnings.append(f"Identical on every prompt, so their order is undefined: {join_names(pairs)}.")
    constant = [name for name, is_so in zip(models, u.least == u.most, strict=True) if is_so]
    if constant:
        warnings.append(f"The same score on every prompt, so weights have no effect: {join_names(constant)}.")
    return warnings
