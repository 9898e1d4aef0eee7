"""The summary of trials, and its warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from analyses.trials.method import MEASURES, Trials
from tracker.name_lists import join_names
from tracker.number_format import format_difference
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import Undefined
from tracker.statistics.ranking import TIE_TOLERANCE

MAX_NAMES = 2


def summarize(finding: Trials) -> Summary:
    """Summarize whether further trials pay, and who leads by the mean, pass@k and pass^k."""
    return Summary(_headline(finding), tuple(_list_evidence(finding)))


def _headline(finding: Trials) -> str:
    means = np.array([item.mean.mean for item in finding.models])
    n_first = int((np.abs(means - means[0]) <= TIE_TOLERANCE * np.abs(means).max()).sum())
    leaders = [item.model for item in finding.models[:n_first]]
    lead = f"{join_names(leaders, MAX_NAMES)} {'leads' if n_first == 1 else 'lead'} by the mean"
    if not finding.repeated:
        return f"No prompt has several trials, so the variance of a response is unknown; {lead}."
    return f"{_describe_sufficient(finding)}; {lead}{_other_leaders(finding, leaders)}."


def _describe_sufficient(finding: Trials) -> str:
    """How many trials suffice, for all models or from the fewest to the most."""
    known = [item.sufficient for item in finding.repeated if not math.isnan(item.sufficient)]
    numbers = [math.ceil(number) for number in known if math.isfinite(number)]
    n_open = len(known) - len(numbers)
    if not numbers:
        return "Each further trial lowers standard errors: prompts do not differ"
    least, most = min(numbers), max(numbers)
    number = f"{most}" if least == most else f"{least} to {most}"
    text = f"{number} trial{'s' * (most != 1)} per prompt {'suffice' if most != 1 else 'suffices'}"
    text += ", depending on the model" if least != most else ""
    if not n_open:
        return text
    models = f"{len(numbers)} of {len(known)} models"
    return f"{text} for {models}; for the others each further trial lowers the standard error"


def _other_leaders(finding: Trials, expected: Sequence[str]) -> str:
    """Who leads by pass@k and pass^k for the largest k that all models have, if it is no leader by the mean."""
    k = finding.shared_k
    cases = []
    for measure in MEASURES:
        leaders = finding.leaders(measure, k)
        if leaders and not set(leaders) & set(expected):
            cases.append(f"{join_names(leaders, MAX_NAMES)} by {measure.replace('k', str(k))}")
    return ", " + ", ".join(cases) if cases else ""


def _list_evidence(finding: Trials) -> Iterator[str]:
    metrics, repeated = finding.metrics, finding.repeated
    if not repeated:
        yield f"{len(finding.models):,} models have one trial of each of {finding.n_prompts:,} prompts."
        return
    fewest, most = min(item.fewest for item in repeated), max(item.most for item in repeated)
    trials = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    yield f"{len(repeated):,} of {len(finding.models):,} models have {trials} trials per prompt."
    share = metrics["trial_share"]
    if not isinstance(share, Undefined):
        yield (
            f"Trials of one prompt cause {share:.0%} of the variance of a score, prompts the rest (median over models)."
        )
    typical = repeated[len(repeated) // 2]
    variance = typical.variance
    if not math.isnan(variance.floor):
        errors = (
            variance.in_units(variance.stderr),
            variance.stderr_with(1),
            variance.floor,
            variance.stderr_with(4),
            variance.stderr_with(1, 4 * variance.n),
        )
        now, with_one, floor, with_four, with_prompts = map(format_difference, errors)
        yield (
            f"Standard error of {typical.model}: {now} now, {with_one} with one trial, {floor} with infinitely many; 4 "
            f"trials {with_four}, one trial of 4 times as many prompts {with_prompts}."
        )
    yield from _list_rates(finding)


def _list_rates(finding: Trials) -> Iterator[str]:
    k = finding.shared_k
    for measure in MEASURES if k else ():
        leaders = finding.leaders(measure, k)
        best = next(rate for rate in finding.rates if (rate.model, rate.measure, rate.k) == (leaders[0], measure, k))
        names, verb = join_names(leaders, MAX_NAMES), "leads" if len(leaders) == 1 else "lead"
        text = f"{measure.replace('k', str(k))}: {names} {verb} with {best.estimate.mean:.4f}"
        if len(leaders) == 1:
            ends = f"{best.estimate.low:.4f} to {best.estimate.high:.4f}"
            text += f" ({finding.level:.0%} interval {ends}, {best.n:,} prompts)"
        yield f"{text}."


def collect_warnings(finding: Trials, trials: TrialScores) -> list[str]:
    """List warnings about scores that do not pass or fail, and models whose trials differ in number.

    Args:
        finding: the result.
        trials: the scores.
    """
    warnings = []
    if finding.repeated and not finding.rates:
        scores = "lie outside 0 to 1" if not trials.is_unit else "are better if lower"
        warnings.append(f"pass@k and pass^k are undefined: scores {scores}, so no trial passes.")
    elif finding.rates and bool(((trials.squares > 0) & (trials.passed == 0)).any()):
        warnings.append("Some scores lie between 0 and 1; a trial passes only with 1.")
    table = trials.scores
    if finding.repeated and table.missing == "bounds" and not table.is_complete:
        warnings.append(
            "Intervals of means and pass rates unite those with the scores of missing prompts at both bounds; "
            "`within_low` to `between_high` in the table `models` are the range of the variances."
        )
    if finding.repeated and table.linearized is not None:
        warnings.append("Imputed scores have no trials: variances and pass rates use the measured prompts.")
    uneven = [item.model for item in finding.repeated if item.fewest < item.most]
    if uneven:
        warnings.append(
            f"The number of trials differs between prompts for {join_names(uneven, MAX_NAMES)}; pass@k uses the "
            "prompts with at least k trials."
        )
    return warnings
