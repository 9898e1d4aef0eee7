"""Tables and options that prompt clusters cannot use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.directions import group_directions
from analyses.presentation.permutation_warnings import (
    BINARY_ONLY,
    NULL_TEXTS,
)
from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite


def validate_clustering(
    Q: NDArray[np.float64], *, max_clusters: int, n_restarts: int, n_permutations: int, null: str, seed: int
) -> None:
    """Reject what cannot be clustered, or not with these options.

    Raises:
        SelectionError: why, and what to do about it.
    """
    n, k = Q.shape
    is_binary = bool(((Q == 0) | (Q == 1)).all())
    validate(
        {
            f"No null {null!r}. Known: columns, margins.": null not in NULL_TEXTS,
            **check_minimum(2, max_clusters=max_clusters),
            **check_minimum(1, n_restarts=n_restarts, n_permutations=n_permutations),
            **check_minimum(0, seed=seed),
            **check_finite(Q),
            f"Prompts are compared by the models that solve them; models here: {k}. Choose at least 2.": k < 2,
            f"Clusters need at least 3 prompts, here: {n}. Choose more tasks or a larger benchmark.": n < 3,
            BINARY_ONLY: null == "margins" and not is_binary,
        }
    )
    n_distinct = group_directions(Q).n_distinct
    validate(
        {
            "Every score is 0, so no prompt has a direction. Choose another metric or other models.": n_distinct == 0,
            "All prompts with a score other than 0 have one row, up to a factor, so there is nothing to cluster. "
            "Choose another metric or other models.": n_distinct == 1,
        }
    )
