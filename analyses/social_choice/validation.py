"""Checks of the options of social-choice."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from analyses.presentation.validation import ValidationErrors, check_minimum, check_time_limit
from analyses.social_choice.summary import count_noun

CHOICES = {
    "system": ("both", "cardinal", "ordinal"),
    "columns": ("standardised", "raw"),
    "win_rate": ("pairwise", "per-task"),
    "method": ("exact", "paper"),
}
"""What the options of a few words may be."""


def check_options(
    models: Sequence[str], *, top: float, top_models: Sequence[str], time_limit: float, seed: int
) -> ValidationErrors:
    """Reasons why the leading models or the search options are invalid, each with what to do."""
    n_models, distinct = len(models), set(top_models)
    unknown = [name for name in top_models if name not in set(models)]
    is_bad_top = not isfinite(top) or top <= 0 or (top >= 1 and top != int(top))
    return {
        f"top is {top:g}; it must be a share between 0 and 1, or a number of models, such as 10.": is_bad_top,
        f"top is {top:g}; at least 2 and at most {n_models - 1} of the {n_models} models can lead.": top == 1
        or n_models <= top,
        f"{unknown[0] if unknown else ''!r} is not among the models here. Choose --top-models from: "
        f"{', '.join(models[:5])}{' …' if n_models > 5 else ''}.": bool(unknown),
        f"{count_noun(len(distinct), 'model')} named as leading; at least 2 and at most {n_models - 1} of the "
        f"{n_models} can lead.": (len(top_models) > 0 and not 2 <= len(distinct) < n_models),
        **check_time_limit(time_limit),
        **check_minimum(0, seed=seed),
    }


def check_choices(**chosen: str) -> ValidationErrors:
    """Options of a few words with an unknown value."""
    return {
        f"No {name.replace('_', ' ')} {value!r}. Known: {', '.join(CHOICES[name])}.": value not in CHOICES[name]
        for name, value in chosen.items()
    }
