"""Which filters, sizes and vectors filter stability cannot use, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.stability import count_subsets
from analyses.presentation.validation import ValidationErrors
from tracker.name_lists import join_names
from tracker.queries.embeddings import Embeddings
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix

MAX_SUBSETS = 5_000
"""Subsets that are looked at: some ten seconds on fourteen thousand prompts."""


def check_filter(chosen: PromptFilter, scores: PerformanceMatrix, options: Sequence[str]) -> ValidationErrors:
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


def check_sizes(sizes: Sequence[int], models: Sequence[str]) -> ValidationErrors:
    """Which sizes of subsets make no sense."""
    k = len(models)
    outside = [size for size in sizes if not 1 <= size <= k]
    n = count_subsets(k, sorted(set(sizes) - set(outside)))
    fewer = next(size for size in range(k - 1, k + 1) if size >= 1)
    return {
        f"The filter was made by one model, {models[0]}, of which there is no smaller subset.": k == 1,
        f"sizes has {outside[0] if outside else 0}; subsets of {k} filter models have from 1 to {k}.": bool(outside),
        f"There are {n:,} subsets of these sizes of {k} filter models; at most {MAX_SUBSETS:,} are looked at. Choose "
        f"fewer --sizes, such as --sizes {fewer}.": n > MAX_SUBSETS,
    }


def check_rows(chosen: PromptFilter, is_decided: NDArray[np.bool_]) -> ValidationErrors:
    """None of the prompts were judged."""
    return {
        f"None of the {len(is_decided):,} prompts with scores here were judged by filter {chosen.finding_id}. Choose "
        "the tasks and runs that it was made of.": not is_decided.any()
    }


def find_vector_problem(stored: Embeddings, prompt_ids: NDArray[np.int64]) -> str:
    """Why the similar step cannot be taken with an encoder's vectors; '' where it can."""
    has_vector = np.isin(prompt_ids, stored.prompt_ids)
    if not has_vector.all():
        return f"{int((~has_vector).sum()):,} of {len(prompt_ids):,} prompts have no vector by it"
    E = stored.align(prompt_ids)
    n_broken = int((~(np.isfinite(E).all(axis=1) & E.any(axis=1))).sum())
    if n_broken:
        return f"{n_broken:,} of its vectors are zero or not finite"
    return "there is only one prompt" if len(E) < 2 else ""
