"""Prompts and options that weight robustness cannot use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import check_minimum, check_pairs, validate
from tracker.queries.score_validation import check_finite

MAX_BYTES = 1 << 29
"""Bytes of weighted means that sampling may hold."""


def validate_weighting(Q: NDArray[np.float64], *, n_draws: int, method: str, seed: int) -> None:
    """Reject prompts that cannot be weighed at random, or not with these options.

    Raises:
        SelectionError: the scores or an option cannot be used.
    """
    most = MAX_BYTES // (8 * Q.shape[1])
    validate(
        {
            **check_minimum(1, n_draws=n_draws),
            **check_minimum(0, seed=seed),
            f"No method {method!r}. Known: exact, sampling.": method not in ("exact", "sampling"),
            f"At most {most:,} draws of {Q.shape[1]} models fit in memory. Use fewer draws, or `--method exact`.": (
                method == "sampling" and n_draws > most
            ),
            **check_finite(Q),
            **check_pairs(Q.shape[1]),
        }
    )
