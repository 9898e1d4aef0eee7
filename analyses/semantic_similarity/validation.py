"""Prompts and options that semantic similarity cannot use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.validation import check_minimum, validate
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.score_validation import check_finite

NULL_TEXTS = {
    "strata": "random pairings within strata of difficulty and length",
    "rows": "random pairings of vectors and scores",
    "columns": "tables with every model's scores shuffled",
}


NO_LINE = (
    "Every prompt is equally similar to all others, in meaning or in performance, so no line can be fitted. Select "
    "other models, tasks or vectors."
)


def validate_table(
    scores: PerformanceMatrix, E: NDArray[Any], *, similarity: str, null: str, n_permutations: int, seed: int
) -> None:
    """Reject prompts that have no lines, or not with these options.

    Raises:
        SelectionError: the scores, vectors or an option cannot be used.
    """
    Q = scores.Q
    n_scored = int(Q.any(axis=1).sum()) if similarity == "cosine" else len(Q)
    zero, broken = int((~E.any(axis=1)).sum()), int((~np.isfinite(E).all(axis=1)).sum())
    validate(
        {
            f"No similarity {similarity!r}. Known: cosine, hamming.": similarity not in ("cosine", "hamming"),
            f"No null {null!r}. Known: strata, rows, columns.": null not in NULL_TEXTS,
            **check_minimum(1, n_permutations=n_permutations),
            **check_minimum(0, seed=seed),
            **check_finite(Q),
            "The Hamming similarity needs scores of 0 and 1. Use `cosine`.": similarity == "hamming"
            and not scores.is_binary,
            f"{broken:,} prompts have a vector that is not finite. Run `suffrage embed` again.": broken > 0,
            f"{zero:,} prompts have a vector of zeros, which has no cosine. Embed texts that are not empty, or select "
            "tasks without them.": zero > 0,
            f"A line needs at least 4 prompts that some model got right; here: {n_scored}. Select more tasks or a "
            "larger benchmark.": n_scored < 4,
        }
    )
