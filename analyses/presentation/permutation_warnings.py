"""Texts and warnings that all permutation tests share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracker.name_lists import join_names
from tracker.queries.ranking.weighted_scores import WeightedScores
from tracker.queries.weights import TASK_EQUAL, PromptWeights
from tracker.statistics.resampling import ALPHA

NULL_TEXTS = {
    "columns": "every model's scores shuffled",
    "margins": "every model's and every prompt's number right kept",
}
"""Description of tables drawn under each null."""
BINARY_ONLY = "The null `margins` needs scores of 0 and 1; these are continuous. Use `columns`."

WEIGHTS_FROM_SCORES = "the weights are computed from scores, and permuted tables would have other weights"


def explain_untested(weights: PromptWeights | None, voters: WeightedScores) -> str:
    """Return why a test has no p-value if weights stay in place while scores are permuted; '' if it has one."""
    return WEIGHTS_FROM_SCORES if weights is not None and weights.are_made_of_scores and voters.is_weighted else ""


def list_weight_warnings(weights: PromptWeights | None, voters: WeightedScores) -> list[str]:
    """Warn about the effect of weights on p-values."""
    if weights is None or weights.scheme == TASK_EQUAL or not voters.is_weighted:
        return []
    if explain_untested(weights, voters):
        return [
            f"There is no p-value: the weights {weights.name} are computed from scores, and permuted tables would have "
            "other weights. For a test, use weights that do not depend on scores, or none."
        ]
    return [f"The p-values are valid only if the weights {weights.name} do not depend on these scores."]


def list_few_permutations_warnings(n_permutations: int) -> list[str]:
    """Warn if so few permutations cannot give a small p-value."""
    fewest = math.ceil(2 / ALPHA) - 1
    if n_permutations >= fewest:
        return []
    return [f"{n_permutations} permutations cannot give a two-sided p-value of {ALPHA} or less. Use at least {fewest}."]


def list_constant_model_warnings(models: Sequence[str]) -> list[str]:
    """Warn about models with the same score on every prompt, which no permutation changes."""
    if not models:
        return []
    return [f"The same score on every prompt: {join_names(models)}. Consider leaving such models out."]
