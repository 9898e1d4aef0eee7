"""Prompts with equal texts; one of each group is kept.

Source: Gupta et al. 2024, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from analyses.numerics.filtering.duplicates import find_duplicate_groups
from analyses.numerics.filtering.removal import remove_all_but_one
from analyses.numerics.filtering.step_flags import make_flags
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.filter_step import FilterStep, StepResult, flag_nothing


@dataclass(frozen=True, kw_only=True)
class DuplicateOptions:
    """What makes prompts equal."""

    duplicates: Annotated[
        Literal["full", "question"],
        "Texts that make prompts equal. full: question and options; question: the question alone.",
    ] = "full"


class DuplicateStep(FilterStep[DuplicateOptions]):
    """Needs the texts and options of the prompts."""

    name = "duplicate"
    position = 10
    options = DuplicateOptions

    def apply(self, data: FilterData, options: DuplicateOptions) -> StepResult:
        """Flag all prompts with equal texts, and remove all but one of each group."""
        if not any(data.texts):
            nothing = flag_nothing(data.scores.n_prompts)
            return StepResult(flags=nothing, skipped="no text of these prompts is stored")
        groups = find_duplicate_groups(data.texts, data.choices, by=options.duplicates)
        flags = make_flags(groups >= 0, remove_all_but_one(groups, seed=data.seed), groups)
        n_unknown = sum(text is None for text in data.texts)
        warning = f"{n_unknown:,} prompts have no text, so duplicates of them cannot be found."
        return StepResult(
            flags=flags,
            warnings=[warning] if n_unknown else [],
        )


STEP = DuplicateStep()
