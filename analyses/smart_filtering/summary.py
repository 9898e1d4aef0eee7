"""The summary of a filter and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.presentation.correlation_warnings import warn_of_few_models, warn_of_narrow_draws
from analyses.presentation.filter_effects import describe_effects
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.method import REPORTED_ONLY, SmartFiltering
from tracker.name_lists import join_names
from tracker.queries.findings.summary import MAX_EVIDENCE, Summary


def summarize(finding: SmartFiltering) -> Summary:
    """Summarize how many prompts the benchmark can do without, and what removing them does to the ranking."""
    effects = describe_effects(finding.effects, agreement_of=finding.agreement_of, against=finding.against)
    rules = [
        f"Filter models: {join_names(finding.filter_models)}.",
        *(result.rule for name, result in finding.results.items() if result.rule and name not in finding.skipped),
    ]
    evidence = [_describe_steps(finding), " ".join(rules), *effects]
    return Summary(
        _headline(finding),
        tuple(item for item in evidence if item)[:MAX_EVIDENCE],
        tuple(_list_caveats(finding)),
    )


def _headline(finding: SmartFiltering) -> str:
    n, n_removed, ranking = len(finding.kept), int((~finding.kept).sum()), finding.effects.ranking
    if not n_removed:
        return f"The filter finds no prompt to remove among {n:,}."
    if n_removed == n:
        return f"The filter removes all {n:,} prompts, so no ranking is left."
    removed = f"The filter removes {n_removed:,} of {n:,} prompts ({n_removed / n:.1%})"
    if np.isnan(ranking.tau):
        return f"{removed}; there is no ranking to compare."
    n_models, n_moved = len(finding.models), int((ranking.rank_before != ranking.rank_after).sum())
    moved = f"then {n_moved} of {n_models} models change{'s' * (n_moved == 1)}" if n_moved else "no model changes"
    return f"{removed}; {moved} rank."


def _describe_steps(finding: SmartFiltering) -> str:
    """Describe how many prompts each step flags and removes."""
    counts = [
        _count(name, int(result.flags.flagged.sum()), int(result.flags.removed.sum()))
        for name, result in finding.results.items()
        if name not in finding.skipped and (result.rule or result.flags.flagged.any())
    ]
    return f"Flagged: {', '.join(counts)}." if counts else "No step flags a prompt."


def _count(name: str, n_flagged: int, n_removed: int) -> str:
    removed = "" if not n_flagged else " (reported only)" if name in REPORTED_ONLY else f" ({n_removed:,} removed)"
    return f"{name} {n_flagged:,}{removed}"


def _list_caveats(finding: SmartFiltering) -> Iterator[str]:
    if finding.skipped:
        yield " ".join(_describe_skipped(name, reason) for name, reason in finding.skipped.items())


def _describe_skipped(step: str, reason: str) -> str:
    """Describe why a step is skipped; the fix after a semicolon is a second sentence."""
    problem, _, fix = reason.partition("; ")
    return f"Step `{step}` is skipped: {problem}.{f' {fix[0].upper()}{fix[1:]}.' if fix else ''}"


def list_warnings(finding: SmartFiltering, data: FilterData) -> list[str]:
    """List warnings about the evidence, the filter models and the effects, the most important first."""
    warnings = [*_warn_of_probabilities(data.kind), *_warn_of_gaps(finding.models, data)]
    for result in finding.results.values():
        warnings += result.warnings
    warnings += _warn_of_makers(data)
    error = finding.effects.error
    if error.reason:
        warnings.append(f"The subset error is undefined: {error.reason}.")
    for n_models in {change.n_models for change in finding.effects.changes.values()}:  # the same for every correlation
        warnings += [*warn_of_few_models(n_models), *warn_of_narrow_draws(n_models)]
    return warnings


def _warn_of_makers(data: FilterData) -> list[str]:
    makers = data.models.organizations(data.filter_models)
    warnings = []
    known = [maker for maker in makers if maker]
    if repeated := sorted({maker for maker in known if known.count(maker) > 1}):
        warnings.append(
            f"Several filter models are of one organization ({join_names(repeated)}). They may share training data."
        )
    if n_unknown := len(makers) - len(known):
        warnings.append(
            f"The organization of {n_unknown} filter models is unknown. Import it with `suffrage models import FILE`."
        )
    return warnings


def _warn_of_probabilities(kind: str) -> list[str]:
    if not kind:
        return [
            "Without confidence, more prompts are easy than by the paper's rule. Suspect labels include all prompts "
            "that are merely hard."
        ]
    if kind == "likelihoods":
        return [
            "The probabilities come from likelihoods of the options' texts, the paper's from option letters. "
            "Thresholds differ."
        ]
    return []


def _warn_of_gaps(ranked: Sequence[str], data: FilterData) -> list[str]:
    warnings = []
    gaps = [name for name in data.scores.models if name not in set(ranked)]
    if gaps:
        warnings.append(f"Not ranked, because scores are missing: {join_names(gaps)}.")
    if lacking := [name for name in data.filter_models if name in gaps]:
        warnings.append(f"Prompts without a score of {join_names(lacking)} are never easy.")
    if data.n_unscored:
        warnings.append(f"{data.n_unscored:,} prompts without any score have no decision.")
    return warnings
