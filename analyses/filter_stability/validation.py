"""Checks of filters, sizes and vectors of filter stability."""

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
"""Largest number of subsets: some ten seconds on fourteen thousand prompts."""


def check_filter(chosen: PromptFilter, scores: PerformanceMatrix, options: Sequence[str]) -> ValidationErrors:
    """Check that the filter can be recomputed from these scores."""
    missing = [model for model in chosen.models if model not in scores.models]
    metric = chosen.selection.get("metric", scores.metric)
    return {
        f"Filter {chosen.finding_id} is from {chosen.made_by} and has no filter models. Use one of smart-filtering: "
        "--filter ID.": not chosen.models or any(name not in chosen.parameters for name in options),
        "These are scores of answer-only runs; filter stability needs full runs. Leave out `--condition`.": (
            scores.condition != "full"
        ),
        f"Filter {chosen.finding_id} uses {metric}, but these are scores of {scores.metric}. Use --metric {metric}.": (
            metric != scores.metric
        ),
        f"Filter models without scores here: {join_names(missing)}. Leave out --models and --runs, or make filter "
        f"{chosen.finding_id} again: suffrage analyze {chosen.made_by} {chosen.benchmark}": bool(missing),
    }


def check_sizes(sizes: Sequence[int], models: Sequence[str]) -> ValidationErrors:
    """Check the sizes of the subsets."""
    k = len(models)
    outside = [size for size in sizes if not 1 <= size <= k]
    n = count_subsets(k, sorted(set(sizes) - set(outside)))
    fewer = next(size for size in range(k - 1, k + 1) if size >= 1)
    return {
        f"The filter has only one model ({models[0]}), so it has no smaller subset.": k == 1,
        f"sizes has {outside[0] if outside else 0}; subsets of {k} filter models have from 1 to {k} models.": bool(
            outside
        ),
        f"There are {n:,} subsets of these sizes of {k} filter models; at most {MAX_SUBSETS:,} are supported. Use "
        f"fewer sizes, such as --sizes {fewer}.": n > MAX_SUBSETS,
    }


def check_rows(chosen: PromptFilter, is_decided: NDArray[np.bool_]) -> ValidationErrors:
    """Check that the filter has a decision on some prompt."""
    return {
        f"Filter {chosen.finding_id} has no decision on the {len(is_decided):,} prompts with scores here. Select its "
        "tasks and runs.": not is_decided.any()
    }


def find_vector_problem(stored: Embeddings, prompt_ids: NDArray[np.int64]) -> str:
    """Return why the step `similar` cannot use an encoder's vectors; '' if it can."""
    has_vector = np.isin(prompt_ids, stored.prompt_ids)
    if not has_vector.all():
        return f"{int((~has_vector).sum()):,} of {len(prompt_ids):,} prompts have no vector by it"
    E = stored.align(prompt_ids)
    n_broken = int((~(np.isfinite(E).all(axis=1) & E.any(axis=1))).sum())
    if n_broken:
        return f"{n_broken:,} of its vectors are zero or not finite"
    return "there is only one prompt" if len(E) < 2 else ""
