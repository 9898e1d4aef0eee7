"""What all permutation tests say in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from tracker.queries.ranking.weighted_scores import WeightedScores
from tracker.queries.weights import TASK_EQUAL, PromptWeights
from tracker.statistics.resampling import ALPHA

NULL_TEXTS = {
    "columns": "every model's scores shuffled",
    "margins": "every model's and every prompt's number right kept",
}
"""What tables drawn under each null are."""
BINARY_ONLY = "The null `margins` exists for scores of 0 and 1 only; these are continuous. Use `columns`."

WEIGHTS_FROM_SCORES = "the weights were made of scores, and drawn tables would have given other weights"


def explain_untested(weights: PromptWeights | None, voters: WeightedScores) -> str:
    """Why a test whose weights stay in place while scores are drawn has no p-value; empty where it has one."""
    return WEIGHTS_FROM_SCORES if weights is not None and weights.are_made_of_scores and voters.is_weighted else ""


def list_weight_warnings(weights: PromptWeights | None, voters: WeightedScores) -> list[str]:
    """A note on what weights do to p-values."""
    if weights is None or weights.scheme == TASK_EQUAL or not voters.is_weighted:
        return []
    if explain_untested(weights, voters):
        return [
            f"No p-value is given: {weights.name} was made of scores, and drawn tables would have given other weights, "
            "so that tables of pure chance look unlikely. For a test choose weights made without looking at scores, "
            "or none."
        ]
    return [f"The p-values hold only if {weights.name} was chosen without looking at these scores."]


def list_few_permutations_warnings(n_permutations: int) -> list[str]:
    """A note where so few draws cannot give a small p-value."""
    if n_permutations + 1 >= 1 / ALPHA:
        return []
    return [f"{n_permutations} permutations cannot give a p-value of {ALPHA} or less; 19 are the fewest."]


def list_constant_model_warnings(models: Sequence[str]) -> list[str]:
    """A note where models have the same score on every prompt, which no draw can move."""
    if not models:
        return []
    return [f"The same score on every prompt: {', '.join(models[:5])}. Consider leaving such models out."]
