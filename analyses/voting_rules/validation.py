"""Checks of the options of voting-rules."""

from __future__ import annotations

from analyses.numerics.elections.voting.rules import VOTING_RULES
from analyses.presentation.validation import ValidationErrors, check_time_limit


def check_options(*, rule: str, time_limit: float) -> ValidationErrors:
    """Reasons why these options are invalid, each with what to do."""
    return {
        f"No rule {rule!r}. Known: {', '.join(VOTING_RULES)}.": rule not in VOTING_RULES,
        **check_time_limit(time_limit),
    }
