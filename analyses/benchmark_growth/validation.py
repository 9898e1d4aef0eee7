"""Tables and options that benchmark growth cannot use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite


def validate_growth(
    Q: NDArray[np.float64],
    vectors: NDArray[np.float64] | None,
    *,
    n_orders: int,
    n_permutations: int,
    within: float,
    seed: int,
) -> None:
    """Reject benchmarks that cannot grow, or not with these options.

    Raises:
        SelectionError: the scores, vectors or an option cannot be used.
    """
    damaged = 0 if vectors is None else int((~np.isfinite(vectors)).any(axis=1).sum())
    validate(
        {
            **check_finite(Q),
            f"Benchmark growth needs at least 2 prompts, here: {len(Q)}. Select more tasks.": len(Q) < 2,
            f"{damaged:,} vectors have values that are not finite. Run `suffrage embed` again.": damaged > 0,
            **check_minimum(1, n_orders=n_orders, n_permutations=n_permutations),
            f"within is {within}; it must be at least 0 and less than 1.": not 0 <= within < 1,
            **check_minimum(0, seed=seed),
        }
    )
