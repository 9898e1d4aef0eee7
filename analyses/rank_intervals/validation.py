"""Checks of the scores and options of rank intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import ValidationErrors, check_minimum, check_pairs
from tracker.queries.score_validation import check_finite


def find_problems(
    Q: NDArray[np.float64], n_excluded: int, *, n_resamples: int, level: float, seed: int
) -> ValidationErrors:
    """List the reasons why these ranks have no intervals, with the fix.

    Args:
        Q: of the ranked models.
        n_excluded: models with too few scores.
        n_resamples, level, seed: as the user set them.
    """
    advice = f" {n_excluded} lack too many scores; choose other --tasks or --runs." if n_excluded else ""
    return {
        **check_minimum(0, n_resamples=n_resamples, seed=seed),
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
        **check_finite(Q),
        **check_pairs(Q.shape[1]),
        f"Ranks need 2 models with enough scores, here: {Q.shape[1]}.{advice or ' Choose more models.'}": Q.shape[1]
        < 2,
    }
