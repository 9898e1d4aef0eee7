"""The summary of a filter and its warnings."""

from __future__ import annotations

from collections.abc import Sequence

from analyses.presentation.correlation_warnings import warn_of_few_models, warn_of_narrow_draws
from analyses.presentation.filter_effects import describe_effects
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.method import SmartFiltering
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary


def summarize(finding: SmartFiltering) -> Summary:
    """The result in a paragraph, with its numbers."""
    n, stays = len(finding.kept), int(finding.kept.sum())
    sentences = [f"{stays:,} of {n:,} prompts stay; {(n - stays) / n:.1%} could be left out."]
    for name, result in finding.results.items():
        if name in finding.skipped or not result.label:
            continue
        flagged, removed = int(result.flags.flagged.sum()), int(result.flags.removed.sum())
        gone = "all" if removed == flagged else f"{removed:,}" if removed else "none"
        counts = f"{flagged:,} ({flagged / n:.1%}), {gone} removed" if flagged else "none"
        sentences.append(f"{result.label}: {counts}.")
    sentences += [f"The step {name} was not taken: {reason}." for name, reason in finding.skipped.items()]
    effects = describe_effects(finding.effects, agreement_of=finding.agreement_of, against=finding.against)
    return Summary.from_sentences([*sentences, *effects])


def list_warnings(finding: SmartFiltering, data: FilterData) -> list[str]:
    """What the reader of the numbers should know of how they came about."""
    warnings = [
        *_warn_of_makers(data),
        *_warn_of_probabilities(data.kind),
        *_warn_of_gaps(finding.models, data),
    ]
    for result in finding.results.values():
        warnings += result.warnings
    error = finding.effects.error
    if error.reason:
        warnings.append(f"No error of the subset: {error.reason}.")
    for n_models in {change.n_models for change in finding.effects.changes.values()}:  # the same for every correlation
        warnings += [*warn_of_few_models(n_models), *warn_of_narrow_draws(n_models)]
    return warnings


def _warn_of_makers(data: FilterData) -> list[str]:
    names = data.filter_models
    makers = data.models.organizations(names)
    warnings = [f"The models that filter: {join_names(names, max_items=len(names))}."]
    if unknown := [name for name, maker in zip(names, makers, strict=True) if not maker]:
        warnings.append(
            f"Of {len(unknown)} of them the organization is not known; several may be of one. Say who made them: "
            "suffrage models import FILE."
        )
    known = [maker for maker in makers if maker]
    if repeated := sorted({maker for maker in known if known.count(maker) > 1}):
        warnings.append(
            f"Several are of one organization: {join_names(repeated)}; they may have been trained on the same data."
        )
    return warnings


def _warn_of_probabilities(kind: str) -> list[str]:
    if not kind:
        return [
            "Right and wrong alone decided, whatever the models' confidence: more prompts are called easy than by the "
            "paper's rule, and a suspect label is merely a prompt that all of them got wrong, as hard ones are."
        ]
    if kind == "likelihoods":
        return [
            "The probabilities are those of the options' texts by their likelihoods. The paper's are of the option "
            "letters; the same threshold does not mean the same."
        ]
    return []


def _warn_of_gaps(ranked: Sequence[str], data: FilterData) -> list[str]:
    warnings = []
    gaps = [name for name in data.scores.models if name not in set(ranked)]
    if gaps:
        warnings.append(f"Not ranked, since scores are missing: {join_names(gaps)}.")
    if lacking := [name for name in data.filter_models if name in gaps]:
        warnings.append(f"A prompt that {join_names(lacking)} was not asked is never called easy.")
    if data.n_unscored:
        warnings.append(f"{data.n_unscored:,} prompts without any score were not judged.")
    return warnings
