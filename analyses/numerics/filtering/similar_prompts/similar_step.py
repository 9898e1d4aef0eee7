"""Prompts that mean nearly the same: a threshold for the distance, groups of those nearer, half of each removed.

The threshold is the first local maximum of the density of the distances to the nearest neighbours; groups are made of
all pairs strictly nearer. How far both depend on bandwidth and number of neighbours is computed beside them.
Source: Gupta et al. 2024, section 3.4, appendix A.1; what its authors' code does otherwise is an option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.removal import remove_half
from analyses.numerics.filtering.similar_prompts.density import Density, Threshold, density, threshold
from analyses.numerics.filtering.similar_prompts.neighbours import Neighbours, nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_groups import find_components, find_stars, is_lexically_similar
from analyses.numerics.filtering.step_flags import StepFlags, make_flags

Unimodal = Literal["keep", "half"]
Grouping = Literal["components", "stars"]
BANDWIDTHS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Factors of the path: around the default, from where maxima are many to where one is left."""
NUMBERS_OF_NEIGHBOURS = (10, 25, 50, 100)
MAX_PAIRS = 20_000_000
"""Pairs beyond which stars are not formed: each has to be held in memory."""


@dataclass(frozen=True, kw_only=True)
class SimilarStep:
    """The step, or why it was not taken.

    Attributes:
        step: flags every prompt of a group, removes half of each; flags nothing where there is a reason.
        reason: why nothing is flagged, and what to change; '' where the step was taken.
        threshold: distance below which two prompts are similar; None where none was found.
        chosen_by: ``first maximum``, ``half of the only maximum``, or ``given``.
        density: of the distances to the nearest neighbours.
        n_pairs: pairs strictly nearer than the threshold; 0 where there is none.
        largest_group: prompts in the largest group there would be.
    """

    step: StepFlags
    reason: str
    threshold: float | None
    chosen_by: str
    density: Density
    n_pairs: int
    largest_group: int


@dataclass(frozen=True, kw_only=True)
class SimilarPath:
    """Threshold and share removed as bandwidth and number of neighbours change, by connected components.

    Attributes:
        bandwidths: ``(b,)`` factors, ascending.
        n_neighbours: ``(k,)`` ascending.
        thresholds: ``(b, k)``; NaN where no maximum can be one.
        shares: ``(b, k)`` share of all prompts that would be removed; NaN without a threshold.
        largest: ``(b, k)`` share of all prompts in the largest group; NaN without a threshold.
        refused: ``(b, k)`` whether that is more than a group may hold.
        chosen: place among the bandwidths and numbers of neighbours of those by which the step was taken; None where it
            was taken by another density, by stars, or by a threshold that was given.
    """

    bandwidths: NDArray[np.float64]
    n_neighbours: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    shares: NDArray[np.float64]
    largest: NDArray[np.float64]
    refused: NDArray[np.bool_]
    chosen: tuple[int, int] | None


def find_similar(
    E: NDArray[np.float32],
    texts: Sequence[str],
    *,
    n_neighbours: int = 100,
    bandwidth: float = 0.15,
    unimodal: Unimodal = "keep",
    threshold: float | None = None,
    groups: Grouping = "components",
    protect_lexical: float = 0.8,
    largest_group: float = 0.05,
    seed: int,
    neighbours: Neighbours | None = None,
) -> SimilarStep:
    """Flag prompts that have another one nearer than the threshold, and remove half of each group.

    Args:
        E: ``(n_prompts, n_dimensions)`` at least 2 rows, finite, none of them zero.
        texts: ``(n_prompts,)`` questions, for the stars.
        n_neighbours: how many of each prompt's nearest enter the density.
        bandwidth: SD of the kernel as a factor of the SD of the distances.
        unimodal: what to do where the density has only one maximum: keep it, or half it as the authors' code does.
        threshold: a distance of one's own; None takes it from the density.
        groups: connected components, or the stars of the authors' code.
        protect_lexical: with stars, prompts whose questions are more alike than this ratio are not taken as similar:
            they differ in little on purpose. 1 protects none.
        largest_group: largest share of all prompts that a group may hold.
        seed: of which half goes.
        neighbours: at least that many of each, where they are known already.
    """
    near = neighbours if neighbours is not None else nearest_neighbours(E, n_neighbours)
    distances = near.distances[:, :n_neighbours]
    if groups == "stars":
        distances = _beyond_the_lexically_near(near, texts, n_neighbours, protect_lexical)
    found = density(distances[np.isfinite(distances)], bandwidth)
    told = _threshold(found, unimodal)
    chosen_by = "given" if threshold is not None else "first maximum"
    if threshold is None and told.is_unimodal and unimodal == "half":
        chosen_by = "half of the only maximum"
    value = told.value if threshold is None else threshold
    nothing = make_flags(np.zeros(len(E), dtype=np.bool_))
    if value is None:
        return SimilarStep(
            step=nothing,
            reason=told.reason,
            threshold=None,
            chosen_by=chosen_by,
            density=found,
            n_pairs=0,
            largest_group=0,
        )
    together = find_components(E, near, (value,))
    n_pairs, numbers = int(together.n_pairs[0]), together.groups[0]
    reason = ""
    if groups == "stars" and n_pairs > MAX_PAIRS:
        reason = f"{n_pairs:,} pairs are nearer than {value:.4f}, too many for stars; choose a smaller threshold"
    elif groups == "stars":
        numbers = find_stars(E, near, value, texts=texts, protect=protect_lexical)
    largest = _largest(numbers)
    if not reason and largest > largest_group * len(E):
        reason = (
            f"below the threshold {value:.4f} one group would hold {largest:,} of {len(E):,} prompts, more than the "
            f"share {largest_group:g} that a group may hold; choose another bandwidth or a smaller threshold, as the "
            "picture of the density suggests, or allow a larger group"
        )
    return SimilarStep(
        step=nothing if reason else make_flags(numbers >= 0, remove_half(numbers, seed=seed), numbers),
        reason=reason,
        threshold=value,
        chosen_by=chosen_by,
        density=found,
        n_pairs=n_pairs,
        largest_group=largest,
    )


def trace_similar_path(
    E: NDArray[np.float32],
    neighbours: Neighbours,
    *,
    n_neighbours: int,
    bandwidth: float,
    unimodal: Unimodal = "keep",
    largest_group: float = 0.05,
    is_step: bool = True,
) -> SimilarPath:
    """How threshold and share removed change around what was chosen, by connected components.

    Args:
        E: as for `find_similar`.
        neighbours: at least ``n_neighbours`` of each prompt.
        n_neighbours: as chosen; larger numbers are not tried.
        bandwidth: as chosen.
        unimodal: as chosen.
        largest_group: as chosen.
        is_step: whether the step was taken so: by components, at the threshold that the density gives.
    """
    most = min(n_neighbours, neighbours.distances.shape[1])
    numbers = sorted({k for k in NUMBERS_OF_NEIGHBOURS if k < most} | {most})
    factors = sorted({*BANDWIDTHS, bandwidth})
    thresholds = np.full((len(factors), len(numbers)), np.nan)
    for j, k in enumerate(numbers):
        distances = np.ascontiguousarray(neighbours.distances[:, :k]).ravel()
        for i, factor in enumerate(factors):
            value = _threshold(density(distances, factor), unimodal).value
            thresholds[i, j] = np.nan if value is None else value
    there = np.unique(thresholds[np.isfinite(thresholds)])
    shares, largest = np.full(thresholds.shape, np.nan), np.full(thresholds.shape, np.nan)
    groups_of_each = find_components(E, neighbours, there.tolist()).groups if there.size else ()
    for value, groups in zip(there, groups_of_each, strict=True):
        sizes = np.bincount(groups[groups >= 0])
        shares[thresholds == value] = (sizes // 2).sum() / len(E)
        largest[thresholds == value] = sizes.max(initial=0) / len(E)
    return SimilarPath(
        bandwidths=np.array(factors),
        n_neighbours=np.array(numbers, dtype=np.int64),
        thresholds=thresholds,
        shares=shares,
        largest=largest,
        refused=largest > largest_group,
        chosen=(factors.index(bandwidth), numbers.index(most)) if is_step else None,
    )


def _threshold(found: Density, unimodal: Unimodal) -> Threshold:
    return threshold(found, unimodal=unimodal)


def _largest(groups: NDArray[np.int32]) -> int:
    return int(np.bincount(groups[groups >= 0]).max(initial=0))


def _beyond_the_lexically_near(
    near: Neighbours, texts: Sequence[str], n_neighbours: int, protect: float
) -> NDArray[np.float64]:
    """Distances from the first neighbour on whose question is not nearly the same text; NaN before it."""
    distances = near.distances[:, :n_neighbours].copy()
    for i, row in enumerate(near.indices[:, :n_neighbours].tolist()):
        first = next(
            (place for place, j in enumerate(row) if not is_lexically_similar(texts[i], texts[j], protect)), len(row)
        )
        distances[i, :first] = np.nan
    return distances
