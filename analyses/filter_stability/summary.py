"""The summary of filter stability and its warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyses.filter_stability.method import FilterStability
from analyses.numerics.filtering.effects.stability import SubsetDecisions, summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import EncoderOverlap, EncoderResult
from tracker.name_lists import join_names
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.findings.summary import Summary


def summarize(finding: FilterStability) -> Summary:
    """The result in a paragraph, with its numbers."""
    sentences = [
        f"Filter {finding.filter_id}, made by {len(finding.filter_models)} models, removes "
        f"{finding.recorded.mean():.1%} of {len(finding.recorded):,} prompts.",
        *_describe_sizes(finding.decisions),
        *_describe_left_out(finding.decisions, finding.filter_models),
    ]
    if finding.no_overlap:
        sentences.append(f"The similar step cannot be compared between encoders: {finding.no_overlap}.")
    else:
        sentences += _describe_encoders(finding.encoders, finding.overlaps)
    return Summary.from_sentences([*sentences, "Nothing here is a test."])


def list_warnings(finding: FilterStability, recorded: PromptFilter, *, metric: str, n_new: int) -> list[str]:
    """What the reader of the numbers should know.

    Args:
        finding: the result.
        recorded: the filter.
        metric: of the scores.
        n_new: prompts with scores here that it did not judge.
    """
    warnings, n_decided = [], len(finding.recorded)
    if n_new:
        warnings.append(f"{n_new:,} prompts that filter {recorded.finding_id} never judged are left out.")
    if lost := len(recorded.prompt_ids) - n_decided:
        warnings.append(
            f"{lost:,} prompts that filter {recorded.finding_id} judged have no scores here, and are left out."
        )
    warnings += _warn_of_changes(finding, recorded, metric)
    if finding.no_answer_only:
        warnings.append(f"No prompt is called contaminated by any subset: {finding.no_answer_only}.")
    return warnings + _warn_of_encoders(finding, recorded.parameters["threshold"])


def _warn_of_changes(finding: FilterStability, recorded: PromptFilter, metric: str) -> list[str]:
    """Whether the filter, made anew by all of its models, is the recorded one."""
    if finding.n_otherwise:
        by_all = float(finding.decisions.by_all.mean())
        return [
            f"Made anew by all {len(recorded.models)} models, filter {recorded.finding_id} removes {by_all:.2%} and "
            f"not the {finding.recorded.mean():.2%} recorded and decides {finding.n_otherwise:,} prompts otherwise: it "
            f"was made of other {metric} scores, probabilities or runs without the question. What subsets remove "
            f"compares with {by_all:.2%}. Make it anew: suffrage analyze {recorded.made_by} {recorded.benchmark}"
        ]
    if recorded.stale:
        return [f"Filter {recorded.finding_id} was made of scores that are no longer the latest ({recorded.stale})."]
    return []


def _warn_of_encoders(finding: FilterStability, threshold: float | None) -> list[str]:
    """Whether any encoder gives what was recorded, and whether thresholds compare.

    Args:
        finding: the result.
        threshold: as given to the filter.
    """
    warnings = []
    flagged = finding.recorded_similar
    results = [encoder.similar.flags.flagged for encoder in finding.encoders if encoder.similar is not None]
    if finding.encoders and flagged.any() and not any(np.array_equal(flagged, result) for result in results):
        warnings.append(
            f"No encoder's vectors give the {int(flagged.sum()):,} similar prompts that the filter recorded: those it "
            "was made with are not stored any more."
        )
    if threshold is not None and len(finding.encoders) > 1:
        warnings.append(
            f"The filter's threshold, {threshold:g}, was given and is the same for every encoder, though distances of "
            "different encoders do not compare."
        )
    return warnings


def _describe_sizes(decided: SubsetDecisions) -> list[str]:
    """What smaller sets remove, and how they differ."""
    sizes, of_all = decided.sizes, int(decided.sizes.max())
    parts: list[str] = []
    changed: list[str] = []
    for size in sorted({*sizes.tolist()} - {of_all}, reverse=True):
        population, n = summarize_population(decided.share_removed[sizes == size]), int((sizes == size).sum())
        pattern = "Made by {} of them it would remove {} on average" if not parts else "by {} {}"
        sets = f"{f'all {n:,} such sets' if n > 1 else 'the only such set'}: " if not parts else f"{n:,} sets: "
        parts.append(
            f"{pattern.format(size, f'{population.mean:.1%}')} ({sets}standard deviation {100 * population.sd:.2f} "
            f"points, from {population.min:.1%} to {population.max:.1%})"
        )
        otherwise = f"{decided.share_changed[sizes == size].mean():.2%}"
        changed.append(f"{otherwise} if {size} of them decide" if not changed else f"{otherwise} if {size} do")
    if not parts:
        return []
    return [
        f"{'; '.join(parts)}.",
        "The fewer must agree, the more they flag, so that the share grows by construction; what is found is by how "
        f"much, and how far sets of one size differ. Prompts decided otherwise than by all {of_all}, on average: "
        f"{join_names(changed, len(changed))}.",
    ]


def _describe_left_out(decided: SubsetDecisions, models: Sequence[str]) -> list[str]:
    """Whose absence matters most and least."""
    without_one = np.flatnonzero(decided.sizes == len(models) - 1)
    if len(without_one) < 2:
        return []
    removed = decided.share_removed[without_one]
    if removed.min() == removed.max():
        return ["Whichever one is left out, as many are removed."]
    of = {place: next(j for j in range(len(models)) if j not in decided.subsets[place]) for place in without_one}
    most, least = (
        join_names([models[of[place]] for place in without_one[removed == end]])
        for end in (removed.max(), removed.min())
    )
    return [
        f"Leaving one out makes the largest difference for {most} ({removed.max():.1%} without) and the smallest "
        f"for {least} ({removed.min():.1%})."
    ]


def _describe_encoders(encoders: Sequence[EncoderResult], overlaps: Sequence[EncoderOverlap]) -> list[str]:
    """What two encoders share; of more than two, the nearest and the farthest."""
    defined = [overlap for overlap in overlaps if overlap.prompts is not None]
    undefined = [(encoder.encoder, encoder.reason.split(";")[0]) for encoder in encoders if encoder.reason]
    sentences = [f"With {encoder} the similar step flags nothing: {reason}." for encoder, reason in undefined]
    if not defined:
        return [*sentences, "So no two encoders can be compared."]
    by_overlap = sorted(defined, key=lambda overlap: overlap.prompts.coefficient if overlap.prompts else 0.0)
    extremes = by_overlap if len(by_overlap) < 3 else [by_overlap[0], by_overlap[-1]]
    if len(defined) > 2:
        sentences.append(f"Of {len(defined)} pairs of encoders, those that share least and most:")
    return [*sentences, *(_describe_pair(encoders, overlap) for overlap in extremes)]


def _describe_pair(encoders: Sequence[EncoderResult], overlap: EncoderOverlap) -> str:
    prompts, pairs = overlap.prompts, overlap.pairs
    assert prompts is not None
    names = f"{encoders[overlap.first].encoder} and {encoders[overlap.second].encoder}"
    pairs_sentence = ""
    if pairs is not None and not np.isnan(pairs.coefficient):
        pairs_sentence = (
            f" Of the pairs behind that, they share {pairs.coefficient:.1%} of the smaller set ({pairs.jaccard:.1%})."
        )
    return (
        f"With {names} the similar step flags {prompts.n_first:,} and {prompts.n_second:,} prompts, {prompts.n_both:,} "
        f"of them with both: {prompts.coefficient:.1%} of the smaller set (overlap coefficient), {prompts.jaccard:.1%} "
        f"of what either flags (Jaccard). Sets drawn at random share {prompts.expected_coefficient:.1%} of the smaller "
        f"one on average.{pairs_sentence}"
    )
