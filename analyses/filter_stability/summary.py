"""The summary of filter stability and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.filter_stability.method import FilterStability
from analyses.numerics.filtering.effects.stability import SubsetDecisions, summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import EncoderOverlap, EncoderResult
from tracker.name_lists import join_names
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.findings.summary import Summary


def summarize(finding: FilterStability) -> Summary:
    """Summarize how the filter changes with fewer models and with other encoders."""
    return Summary(_headline(finding), tuple(_list_evidence(finding)), tuple(_list_caveats(finding)))


def _headline(finding: FilterStability) -> str:
    decided, n_models = finding.decisions, len(finding.filter_models)
    removed = f"Filter {finding.filter_id} removes {finding.recorded.mean():.1%} of {len(finding.recorded):,} prompts"
    sizes = _smaller_sizes(decided)
    if not sizes:
        return f"{removed}; no smaller set of its {n_models} models is compared."
    population = summarize_population(decided.share_removed[decided.sizes == sizes[0]])
    changed = decided.share_changed[decided.sizes == sizes[0]].mean()
    shares = _format_range(population.min, population.max)
    return (
        f"{removed}; with {sizes[0]} of its {n_models} models it removes {shares} "
        f"and changes {changed:.1%} of the decisions on average."
    )


def _smaller_sizes(decided: SubsetDecisions) -> list[int]:
    """Return the sizes of subsets below that of all models, the largest first."""
    return sorted({*decided.sizes.tolist()} - {int(decided.sizes.max())}, reverse=True)


def _format_range(low: float, high: float) -> str:
    return f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}"


def _list_evidence(finding: FilterStability) -> Iterator[str]:
    yield from _describe_sizes(finding.decisions)
    yield from _describe_left_out(finding.decisions, finding.filter_models)
    if not finding.no_overlap:
        yield from _describe_encoders(finding.encoders, finding.overlaps)


def _describe_sizes(decided: SubsetDecisions) -> Iterator[str]:
    """Describe what smaller subsets remove, and how many decisions they change."""
    sizes = _smaller_sizes(decided)
    if not sizes:
        return
    removed, changed = [], []
    for size in sizes:
        population = summarize_population(decided.share_removed[decided.sizes == size])
        subset = f"{size} model{'s' * (size != 1)}"
        removed.append(f"{subset} {population.mean:.1%} ± {population.sd:.1%}")
        changed.append(f"{subset} {decided.share_changed[decided.sizes == size].mean():.2%}")
    yield f"Share removed (mean ± standard deviation over subsets): {join_names(removed)}."
    yield f"Decisions that differ from those of all {decided.sizes.max()} models: {join_names(changed)}."


def _describe_left_out(decided: SubsetDecisions, models: Sequence[str]) -> Iterator[str]:
    """Describe which models matter most and least to the filter."""
    without_one = np.flatnonzero(decided.sizes == len(models) - 1)
    if len(without_one) < 2:
        return
    removed = decided.share_removed[without_one]
    if removed.min() == removed.max():
        yield f"Without any one of the models, the filter removes {removed[0]:.1%}."
        return
    of = {place: next(j for j in range(len(models)) if j not in decided.subsets[place]) for place in without_one}
    most, least = (
        join_names([models[of[place]] for place in without_one[removed == end]])
        for end in (removed.max(), removed.min())
    )
    yield f"Most removed without {most} ({removed.max():.1%}), least without {least} ({removed.min():.1%})."


def _describe_encoders(encoders: Sequence[EncoderResult], overlaps: Sequence[EncoderOverlap]) -> Iterator[str]:
    """Describe the overlap of two encoders; of more, that of the pairs with the smallest and the largest."""
    defined = [overlap for overlap in overlaps if overlap.prompts is not None]
    by_overlap = sorted(defined, key=lambda overlap: overlap.prompts.coefficient if overlap.prompts else 0.0)
    extremes = by_overlap if len(by_overlap) < 3 else [by_overlap[0], by_overlap[-1]]
    for overlap in extremes:
        yield _describe_pair(encoders, overlap)


def _describe_pair(encoders: Sequence[EncoderResult], overlap: EncoderOverlap) -> str:
    prompts, pairs = overlap.prompts, overlap.pairs
    assert prompts is not None
    names = f"{encoders[overlap.first].encoder} and {encoders[overlap.second].encoder}"
    pairs_sentence = ""
    if pairs is not None and not np.isnan(pairs.coefficient):
        pairs_sentence = f" Overlap of the pairs of similar prompts: {pairs.coefficient:.1%}."
    return (
        f"Similar prompts by {names}: {prompts.n_first:,} and {prompts.n_second:,}, {prompts.n_both:,} by both "
        f"(overlap {prompts.coefficient:.1%}, by chance {prompts.expected_coefficient:.1%}).{pairs_sentence}"
    )


def _list_caveats(finding: FilterStability) -> Iterator[str]:
    if _smaller_sizes(finding.decisions):
        yield "Fewer models agree more often, so smaller subsets remove more prompts by construction."
    if finding.no_overlap:
        yield f"Encoders are not compared: {finding.no_overlap}."
    elif failed := [encoder for encoder in finding.encoders if encoder.reason]:
        yield " ".join(
            f"With {encoder.encoder}, no prompt is similar: {encoder.reason.split(';')[0]}." for encoder in failed
        )


def list_warnings(finding: FilterStability, recorded: PromptFilter, *, metric: str, n_new: int) -> list[str]:
    """List warnings about changed data, left out prompts and encoders, the most important first.

    Args:
        finding: the result.
        recorded: the filter.
        metric: of the scores.
        n_new: prompts with scores here without a decision.
    """
    n_decided = len(finding.recorded)
    warnings = _warn_of_changes(finding, recorded, metric)
    if finding.not_contaminated:
        warnings.append(f"No subset flags contaminated prompts: {finding.not_contaminated}.")
    if n_new:
        warnings.append(f"{n_new:,} prompts without a decision of filter {recorded.finding_id} are left out.")
    if lost := len(recorded.prompt_ids) - n_decided:
        warnings.append(f"{lost:,} prompts of filter {recorded.finding_id} have no scores here and are left out.")
    return warnings + _warn_of_encoders(finding, recorded.parameters["threshold"])


def _warn_of_changes(finding: FilterStability, recorded: PromptFilter, metric: str) -> list[str]:
    """Warn if the filter, recomputed with all of its models, differs from the recorded one."""
    if finding.n_otherwise:
        by_all = float(finding.decisions.by_all.mean())
        return [
            f"Recomputed with all {len(recorded.models)} models, filter {recorded.finding_id} removes {by_all:.2%} "
            f"instead of {finding.recorded.mean():.2%} and changes {finding.n_otherwise:,} decisions: its {metric} "
            f"scores, probabilities or answer-only runs changed. "
            f"Make it again: suffrage analyze {recorded.made_by} {recorded.benchmark}"
        ]
    if recorded.stale:
        return [f"Filter {recorded.finding_id} uses scores that are no longer the latest ({recorded.stale})."]
    return []


def _warn_of_encoders(finding: FilterStability, threshold: float | None) -> list[str]:
    """Warn if no encoder gives the recorded prompts, or if thresholds are not comparable.

    Args:
        finding: the result.
        threshold: the option of the filter.
    """
    warnings = []
    flagged = finding.recorded_similar
    results = [encoder.similar.flags.flagged for encoder in finding.encoders if encoder.similar is not None]
    if finding.encoders and flagged.any() and not any(np.array_equal(flagged, result) for result in results):
        warnings.append(
            f"No encoder's vectors give the {int(flagged.sum()):,} similar prompts of the filter: its vectors are no "
            "longer stored."
        )
    if threshold is not None and len(finding.encoders) > 1:
        warnings.append(f"All encoders use the threshold {threshold:g}, but their distances are not comparable.")
    return warnings
