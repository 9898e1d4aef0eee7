"""What all permutation tests say in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from analyses.numerics.resampling import ALPHA

KEPT = {
    "columns": "every model's scores shuffled",
    "margins": "every model's and every prompt's number right kept",
}
"""What tables drawn under each null are."""
BINARY_ONLY = "The null `margins` exists for scores of 0 and 1 only; these are continuous. Use `columns`."


def few_draws(n_permutations: int) -> list[str]:
    """A note where so few draws cannot give a small p-value."""
    if n_permutations + 1 >= 1 / ALPHA:
        return []
    return [f"{n_permutations} permutations cannot give a p-value of {ALPHA} or less; 19 are the fewest."]


def constant(models: Sequence[str]) -> list[str]:
    """A note where models have the same score on every prompt, which no draw can move."""
    if not models:
        return []
    return [f"The same score on every prompt: {', '.join(models[:5])}. Consider leaving such models out."]
