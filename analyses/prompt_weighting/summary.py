"""What other weights of the prompts do to the ranking, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.weighting.cluster_reweighting import BY_CLUSTER, MEDOIDS, Clustered
from analyses.numerics.weighting.reweighting import Reweighting
from analyses.presentation.validation import ValidationErrors, check_finite, check_minimum

FEW = 30
"""With fewer representatives than this, the summary says that no ranking can rest on them."""


def summary(schemes: Mapping[str, Reweighting], by_seed: Sequence[Clustered]) -> str:
    """What was found, with its numbers; the first seed's clustering is the one that is told of."""
    labels, n_clusters = by_seed[0].clustering.labels, by_seed[0].clustering.n_clusters
    n_models, n_zero = schemes[MEDOIDS].means.size, int((labels < 0).sum())
    whole = {name: scheme for name, scheme in schemes.items() if name != MEDOIDS}
    most = max(scheme.largest_rank_change for scheme in whole.values())
    moved = f"move a model by up to {_places(most)}" if most else "change no rank"
    told = "; ".join(
        f"{name} {_places(scheme.largest_rank_change)}, means by up to {scheme.largest_shift:.3g}, effective "
        f"number {scheme.n_effective:,.0f}"
        for name, scheme in whole.items()
    )
    leaders = [name for name, scheme in whole.items() if scheme.leader_changes]
    outside = f", beside {n_zero:,} prompts that no model got right" if n_zero else ""
    clusters = f"{n_clusters} cluster{'s' * (n_clusters != 1)}"
    said = [
        f"On {labels.size:,} prompts and {n_models} models, other weights {moved} ({told}).",
        f"Another model leads under {', '.join(leaders)}." if leaders else "None of them changes the leader.",
        _representatives(schemes[MEDOIDS]),
        f"The weights come from {clusters}{outside}.",
    ]
    if len(by_seed) > 1:
        said.append(_seeds(by_seed))
    said.append("This is no test: it shows what other weights would do, not which weights are right.")
    return " ".join(said)


def _representatives(alone: Reweighting) -> str:
    n = f"{alone.n_weighted} representative{'s' * (alone.n_weighted != 1)}"
    said = f"The {n} alone move a model by up to {_places(alone.largest_rank_change)}"
    if alone.leader_changes:
        said += " and change the leader"
    return f"{said}{', but no ranking can rest on so few' if alone.n_weighted < FEW else ''}."


def _seeds(by_seed: Sequence[Clustered]) -> str:
    changes = {name: [one.schemes[name].largest_rank_change for one in by_seed] for name in BY_CLUSTER}
    ranges = ", ".join(f"{name} {_range(found)}" for name, found in changes.items())
    numbers = _range([one.clustering.n_clusters for one in by_seed])
    return f"With {len(by_seed)} seeds, the clusters number {numbers} and the largest changes of rank are: {ranges}."


def _range(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _places(n: float) -> str:
    return f"{n:g} place{'s' * (n != 1)}"


def problems(
    Q: NDArray[np.float64], *, max_clusters: int, n_restarts: int, n_seeds: int, seed: int
) -> ValidationErrors:
    """Why there is no ranking to change, or nothing to cluster by, and what to do about it."""
    return {
        **check_minimum(2, max_clusters=max_clusters),
        **check_minimum(1, n_restarts=n_restarts, n_seeds=n_seeds),
        **check_minimum(0, seed=seed),
        **check_finite(Q),
        f"A ranking needs 2 models or more, here: {Q.shape[1]}. Choose more models.": Q.shape[1] < 2,
        "Every score is 0, so prompts have no direction to be clustered by. Choose another metric or other models.": (
            not Q.any()
        ),
    }
