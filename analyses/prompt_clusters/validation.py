"""Tables and options that prompt clusters cannot use."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.clustering.cluster_methods import ClusterOptions, Method
from analyses.numerics.clustering.directions import group_directions
from analyses.presentation.permutation_warnings import BINARY_ONLY, NULL_TEXTS
from analyses.presentation.validation import check_minimum, validate
from tracker.queries.score_validation import check_finite

METHODS = get_args(Method)
MAX_AGGLOMERATIVE = 20_000
"""Prompts whose distances, 8 bytes for each pair, fit into 1.6 GB."""


def validate_clustering(
    Q: NDArray[np.float64], options: ClusterOptions, *, is_weighted: bool, n_permutations: int, null: str, seed: int
) -> None:
    """Reject what cannot be clustered, or not with these options.

    Raises:
        SelectionError: why, and what to do about it.
    """
    n, k = Q.shape
    method = options.method
    is_binary = bool(((Q == 0) | (Q == 1)).all())
    validate(
        {
            f"No method {method!r}. Known: {', '.join(METHODS)}.": method not in METHODS,
            f"No null {null!r}. Known: columns, margins.": null not in NULL_TEXTS,
            **check_minimum(2, max_clusters=options.max_clusters, min_cluster_size=options.min_cluster_size),
            **check_minimum(1, n_restarts=options.n_restarts, n_permutations=n_permutations),
            **check_minimum(0, seed=seed),
            **check_finite(Q),
            f"Prompts are compared by the models that solve them; models here: {k}. Choose at least 2.": k < 2,
            f"Clusters need at least 3 prompts, here: {n}. Choose more tasks or a larger benchmark.": n < 3,
            BINARY_ONLY: null == "margins" and not is_binary,
            f"The method {method} does not support weights. Use `--method kmeans`, or leave out the weights.": (
                is_weighted and method != "kmeans"
            ),
            f"The method agglomerative compares all pairs of prompts, and {n:,} prompts are too many. Choose at most "
            f"{MAX_AGGLOMERATIVE:,}, or `--method kmeans`.": method == "agglomerative" and n > MAX_AGGLOMERATIVE,
        }
    )
    n_distinct, n_scored = group_directions(Q).n_distinct, int(Q.any(axis=1).sum())
    validate(
        {
            "Every score is 0, so no prompt has a direction. Choose another metric or other models.": n_distinct == 0,
            "All prompts with a score other than 0 have one row, up to a factor, so there is nothing to cluster. "
            "Choose another metric or other models.": n_distinct == 1,
            f"{n_scored:,} prompts have a score other than 0, too few for a cluster of {options.min_cluster_size:,}. "
            "Choose a smaller `--min-cluster-size` or more prompts.": (
                options.has_noise and n_scored < options.min_cluster_size
            ),
        }
    )
