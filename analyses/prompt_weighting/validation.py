"""Tables and options that prompt weighting cannot use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite


def validate_weighting(Q: NDArray[np.float64], *, max_clusters: int, n_restarts: int, n_seeds: int, seed: int) -> None:
    """Reject tables without a ranking to change or anything to cluster by, and options out of range.

    Raises:
        SelectionError: the scores or an option cannot be used.
    """
    validate(
        {
            **check_minimum(2, max_clusters=max_clusters),
            **check_minimum(1, n_restarts=n_restarts, n_seeds=n_seeds),
            **check_minimum(0, seed=seed),
            **check_finite(Q),
            f"A ranking needs at least 2 models, here: {Q.shape[1]}. Select more models.": Q.shape[1] < 2,
            "Every score is 0, so prompts cannot be clustered by direction. Select another metric or other models.": (
                not Q.any()
            ),
        }
    )
