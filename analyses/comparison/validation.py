"""Models and options that cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analyses.presentation.validation import ValidationErrors, check_minimum
from tracker.name_lists import join_names


def find_problems(
    models: Sequence[str], chosen: tuple[str, str], *, n_resamples: int, level: float, seed: int, margin: float | None
) -> ValidationErrors:
    """Why these two cannot be compared, and what to do about it.

    Args:
        models: names of columns.
        chosen: what the two are called; '' where they were not named.
        n_resamples, level, seed, margin: as the user set them.
    """
    return {
        "A comparison needs two models. Name them with --model-a and --model-b. "
        f"Known: {join_names(models, max_items=10)}.": ("" in chosen and len(models) != 2),
        f"Both models are {chosen[0]}. Name two models, or two runs such as run:7 and run:9.": bool(chosen[0])
        and chosen[0] == chosen[1],
        **check_minimum(1, n_resamples=n_resamples),
        **check_minimum(0, seed=seed),
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
        **_check_margin(level, margin),
    }


def _check_margin(level: float, margin: float | None) -> ValidationErrors:
    if margin is None:
        return {}
    return {
        f"margin is {margin:g}; it must be a positive number, such as 0.01.": not 0 < margin < math.inf,
        f"level is {level:g}; with a margin it must be above 0.5, such as 0.95.": 0 < level <= 0.5,
    }


def find_unshared(names: tuple[str, str], n_shared: int, n_only: tuple[int, int]) -> ValidationErrors:
    """Check that the two models share a prompt."""
    counts = ", ".join(f"{name} {n:,}" for name, n in zip(names, n_only, strict=True))
    return {
        f"{names[0]} and {names[1]} have no prompt in common (measured: {counts}), so there is nothing to compare. "
        "Choose other runs or tasks.": n_shared == 0
    }
