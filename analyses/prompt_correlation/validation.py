"""Tables and options that prompt correlation cannot use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.similarity.lattices import MAX_COLUMNS
from analyses.numerics.similarity.similarities import BY_NAME, CHOICES, SIMILARITIES, select_similarities
from analyses.presentation.permutation_warnings import BINARY_ONLY, NULL_TEXTS
from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite

NOTHING_VARIES = (
    "Every model has the same score on every prompt, so there is nothing to compare. Choose another metric or other "
    "models."
)


def is_binary_table(Q: NDArray[np.float64]) -> bool:
    """Whether every score is 0 or 1."""
    return bool((np.isnan(Q) | (Q == 0) | (Q == 1)).all())


def find_constant_columns(Q: NDArray[np.float64]) -> NDArray[np.bool_]:
    """``(n_models,)``: whether a model has the same score everywhere."""
    return np.asarray(np.nanmax(Q, axis=0) == np.nanmin(Q, axis=0))


def validate_test(
    Q: NDArray[np.float64], *, is_binary: bool, n_permutations: int, null: str, similarities: tuple[str, ...], seed: int
) -> None:
    """Reject a table that cannot be tested, or not with these options.

    Raises:
        SelectionError: why, and what to do about it.
    """
    n, k = Q.shape
    unknown = ", ".join(repr(name) for name in similarities if name not in CHOICES)
    is_too_wide = bool(similarities) and not unknown and k <= MAX_COLUMNS and not select_similarities(similarities, k)
    limit = max((BY_NAME[name].max_columns for name in similarities if name in BY_NAME), default=0)
    continuous = {similarity.choice for similarity in SIMILARITIES if not similarity.is_binary_only}
    validate(
        {
            f"No similarity {unknown or 'chosen'}. Known: {', '.join(CHOICES)}.": bool(unknown) or not similarities,
            f"No null {null!r}. Known: columns, margins.": null not in NULL_TEXTS,
            **check_minimum(1, n_permutations=n_permutations),
            **check_minimum(0, seed=seed),
            **check_finite(Q),
            f"Prompts are compared by the models that get them right; models here: {k}. Choose at least 2.": k < 2,
            f"Pairs of prompts can be compared from 3 prompts on, here: {n}. Choose more tasks or a larger "
            "benchmark.": n < 3,
            f"{k} models are more than the {MAX_COLUMNS} that can be compared exactly at once. Choose fewer.": is_binary
            and k > MAX_COLUMNS,
            f"The cosine is counted exactly for up to {limit} models, here: {k}. Choose fewer, or another "
            "similarity.": is_binary and is_too_wide,
            BINARY_ONLY: not is_binary and null == "margins",
            "Continuous scores have the cosine only. Choose `cosine`, or a metric of 0 and 1.": not is_binary
            and not continuous.intersection(similarities),
        }
    )
    validate({NOTHING_VARIES: bool(find_constant_columns(Q).all())})
