"""Options of the analysis of trials that are out of range."""

from __future__ import annotations

from collections.abc import Sequence

from analyses.presentation.validation import ValidationErrors


def find_problems(*, k: Sequence[int], tolerance: float, level: float) -> ValidationErrors:
    """Return why the options are invalid.

    Args:
        k, tolerance, level: as the user set them.
    """
    return {
        f"k is {', '.join(map(str, k))}; each number must be at least 1.": any(number < 1 for number in k),
        f"tolerance is {tolerance:g}; it must be positive and at most 1, such as 0.05.": not 0 < tolerance <= 1,
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
    }
