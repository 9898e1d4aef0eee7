"""How stable a filter is, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.stability import SubsetDecisions, n_subsets, summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import EncoderOverlap, EncoderResult
from analyses.presentation.name_lists import join_names
from analyses.presentation.validation import ValidationErrors
from tracker.queries.embeddings import Embeddings
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix

MAX_SUBSETS = 5_000
"""Subsets that are looked at: some ten seconds on fourteen thousand prompts."""
TOO_MANY_PAIRS = "one encoder calls too many pairs similar to list them"


def filter_problems(chosen: PromptFilter, scores: PerformanceMatrix, options: Sequence[str]) -> ValidationErrors:
    """Why this filter cannot be made anew."""
    missing = [model for model in chosen.models if model not in scores.models]
    metric = chosen.selection.get("metric", scores.metric)
    return {
        f"Filter {chosen.finding_id} was made by {chosen.made_by}, not by the answers of filter models. Choose "
        "one of smart-filtering with --filter.": not chosen.models
        or any(name not in chosen.parameters for name in options),
        "The scores are of runs without the question; a filter is made of full ones and looks at those beside them. "
        "Leave --condition out.": scores.condition != "full",
        f"Filter {chosen.finding_id} was made of {metric}, these are scores of {scores.metric}. Choose --metric "
        f"{metric}.": metric != scores.metric,
        f"Filter {chosen.finding_id} was made by {len(chosen.models)} models, of which {join_names(missing)} "
        f"{'has' if len(missing) == 1 else 'have'} no scores here. Leave out --models and --runs, or make the filter "
        f"anew: suffrage analyze {chosen.made_by} {chosen.benchmark}": bool(missing),
    }


def size_problems(sizes: Sequence[int], models: Sequence[str]) -> ValidationErrors:
    """Which sizes of subsets make no sense."""
    k = len(models)
    outside = [size for size in sizes if not 1 <= size <= k]
    n = n_subsets(k, sorted(set(sizes) - set(outside)))
    fewer = next(size for size in range(k - 1, k + 1) if size >= 1)
    return {
        f"The filter was made by one model, {models[0]}, of which there is no smaller subset.": k == 1,
        f"sizes has {outside[0] if outside else 0}; subsets of {k} filter models have from 1 to {k}.": bool(outside),
        f"There are {n:,} subsets of these sizes of {k} filter models; at most {MAX_SUBSETS:,} are looked at. Choose "
        f"fewer --sizes, such as --sizes {fewer}.": n > MAX_SUBSETS,
    }


def row_problems(chosen: PromptFilter, judged: NDArray[np.bool_]) -> ValidationErrors:
    """None of the prompts were judged."""
    return {
        f"None of the {len(judged):,} prompts with scores here were judged by filter {chosen.finding_id}. Choose the "
        "tasks and runs that it was made of.": not judged.any()
    }


def unusable(stored: Embeddings, prompt_ids: NDArray[np.int64]) -> str:
    """Why the similar step cannot be taken with an encoder's vectors; '' where it can."""
    has_one = np.isin(prompt_ids, stored.prompt_ids)
    if not has_one.all():
        return f"{int((~has_one).sum()):,} of {len(prompt_ids):,} prompts have no vector by it"
    E = stored.align(prompt_ids)
    n_broken = int((~(np.isfinite(E).all(axis=1) & E.any(axis=1))).sum())
    if n_broken:
        return f"{n_broken:,} of its vectors are zero or not finite"
    return "there is only one prompt" if len(E) < 2 else ""


def alone(steps: Sequence[EncoderResult], *, is_left_out: bool, benchmark: str) -> str:
    """Why there are no two encoders to compare; '' where there are."""
    if is_left_out:
        return "the filter left the similar step out"
    if len(steps) >= 2:
        return ""
    there = f"the prompts have vectors by one encoder only, {steps[0].encoder}" if steps else "no vectors are stored"
    return f"{there}; make others: suffrage embed {benchmark}"


def warnings(
    *,
    chosen: PromptFilter,
    n_judged: int,
    n_new: int,
    metric: str,
    n_otherwise: int,
    by_all: float,
    recorded: float,
    blind: str,
    steps: Sequence[EncoderResult],
    flagged: NDArray[np.bool_],
    threshold: float | None,
) -> list[str]:
    """What the reader of the numbers should know.

    Args:
        chosen: the filter.
        n_judged: prompts with scores here that it judged.
        n_new: those that it did not.
        metric: of the scores.
        n_otherwise: prompts decided otherwise when it is made anew by all of its models.
        by_all, recorded: share removed then, and as recorded, of the prompts judged.
        blind: why no prompt can be called contaminated.
        steps: of all encoders.
        flagged: ``(n_judged,)`` what the filter recorded as similar.
        threshold: as given to the filter.
    """
    said = []
    if n_new:
        said.append(f"{n_new:,} prompts that filter {chosen.finding_id} never judged are left out.")
    if lost := len(chosen.prompt_ids) - n_judged:
        said.append(f"{lost:,} prompts that filter {chosen.finding_id} judged have no scores here, and are left out.")
    if n_otherwise:
        said.append(
            f"Made anew by all {len(chosen.models)} models, filter {chosen.finding_id} removes {by_all:.2%} and not "
            f"the {recorded:.2%} recorded and decides {n_otherwise:,} prompts otherwise: it was made of other {metric} "
            f"scores, probabilities or runs without the question. What subsets remove compares with {by_all:.2%}. "
            f"Make it anew: suffrage analyze {chosen.made_by} {chosen.benchmark}"
        )
    elif chosen.stale:
        said.append(f"Filter {chosen.finding_id} was made of scores that are no longer the latest ({chosen.stale}).")
    if blind:
        said.append(f"No prompt is called contaminated by any subset: {blind}.")
    taken = [step.found.step.flagged for step in steps if step.found is not None]
    if steps and flagged.any() and not any(np.array_equal(flagged, one) for one in taken):
        said.append(
            f"No encoder's vectors give the {int(flagged.sum()):,} similar prompts that the filter recorded: those it "
            "was made with are not stored any more."
        )
    if threshold is not None and len(steps) > 1:
        said.append(
            f"The filter's threshold, {threshold:g}, was given and is the same for every encoder, though distances of "
            "different encoders do not compare."
        )
    return said


def summary(
    decided: SubsetDecisions,
    recorded: NDArray[np.bool_],
    *,
    filter_id: int,
    filter_models: Sequence[str],
    encoders: Sequence[EncoderResult],
    shared: Sequence[EncoderOverlap],
    alone: str,
) -> str:
    """What was found, with its numbers."""
    said = [
        f"Filter {filter_id}, made by {len(filter_models)} models, removes {recorded.mean():.1%} of {len(recorded):,} "
        "prompts.",
        *_by_size(decided),
        *_left_out(decided, filter_models),
    ]
    if alone:
        said.append(f"The similar step cannot be compared between encoders: {alone}.")
    else:
        said += _encoders(encoders, shared)
    return " ".join([*said, "Nothing here is a test."])


def _by_size(decided: SubsetDecisions) -> list[str]:
    """What smaller sets remove, and how they differ."""
    sizes, of_all = decided.sizes, int(decided.sizes.max())
    parts: list[str] = []
    changed: list[str] = []
    for size in sorted({*sizes.tolist()} - {of_all}, reverse=True):
        told, n = summarize_population(decided.share_removed[sizes == size]), int((sizes == size).sum())
        words = "Made by {} of them it would remove {} on average" if not parts else "by {} {}"
        which = f"{f'all {n:,} such sets' if n > 1 else 'the only such set'}: " if not parts else f"{n:,} sets: "
        parts.append(
            f"{words.format(size, f'{told.mean:.1%}')} ({which}standard deviation {100 * told.sd:.2f} points, from "
            f"{told.min:.1%} to {told.max:.1%})"
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


def _left_out(decided: SubsetDecisions, models: Sequence[str]) -> list[str]:
    """Whose absence matters most and least."""
    one_fewer = np.flatnonzero(decided.sizes == len(models) - 1)
    if len(one_fewer) < 2:
        return []
    removed = decided.share_removed[one_fewer]
    if removed.min() == removed.max():
        return ["Whichever one is left out, as many are removed."]
    of = {place: next(j for j in range(len(models)) if j not in decided.subsets[place]) for place in one_fewer}
    most, least = (
        join_names([models[of[place]] for place in one_fewer[removed == end]]) for end in (removed.max(), removed.min())
    )
    return [
        f"Leaving one out makes the largest difference for {most} ({removed.max():.1%} without) and the smallest "
        f"for {least} ({removed.min():.1%})."
    ]


def _encoders(encoders: Sequence[EncoderResult], shared: Sequence[EncoderOverlap]) -> list[str]:
    """What two encoders share; of more than two, the nearest and the farthest."""
    there = [one for one in shared if one.prompts is not None]
    because = [(encoder.encoder, encoder.reason.split(";")[0]) for encoder in encoders if encoder.reason]
    said = [f"With {encoder} the similar step flags nothing: {reason}." for encoder, reason in because]
    if not there:
        return [*said, "So no two encoders can be compared."]
    by_overlap = sorted(there, key=lambda one: one.prompts.coefficient if one.prompts else 0.0)
    which = by_overlap if len(by_overlap) < 3 else [by_overlap[0], by_overlap[-1]]
    if len(there) > 2:
        said.append(f"Of {len(there)} pairs of encoders, those that share least and most:")
    return [*said, *(_of_two(encoders, one) for one in which)]


def _of_two(encoders: Sequence[EncoderResult], shared: EncoderOverlap) -> str:
    found, pairs = shared.prompts, shared.pairs
    assert found is not None
    names = f"{encoders[shared.first].encoder} and {encoders[shared.second].encoder}"
    of_pairs = ""
    if pairs is not None and not np.isnan(pairs.coefficient):
        of_pairs = (
            f" Of the pairs behind that, they share {pairs.coefficient:.1%} of the smaller set ({pairs.jaccard:.1%})."
        )
    return (
        f"With {names} the similar step flags {found.n_first:,} and {found.n_second:,} prompts, {found.n_both:,} of "
        f"them with both: {found.coefficient:.1%} of the smaller set (overlap coefficient), {found.jaccard:.1%} of "
        f"what either flags (Jaccard). Sets drawn at random share {found.expected_coefficient:.1%} of the smaller one "
        f"on average.{of_pairs}"
    )
