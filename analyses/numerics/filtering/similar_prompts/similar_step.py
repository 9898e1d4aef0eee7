"""Prompts that mean nearly the same: a threshold for the distance, groups of those nearer, half of each removed.

The threshold is the first local maximum of the density of the distances to the nearest neighbours; all pairs
strictly nearer form groups. How far both depend on bandwidth and number of neighbours is computed beside them.
Source: Gupta et al. 2024, section 3.4, appendix A.1; what its authors' code does otherwise is an option.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.removal import remove_half
from analyses.numerics.filtering.similar_prompts.density import Density, estimate_density, find_threshold
from analyses.numerics.filtering.similar_prompts.neighbours import Neighbours, find_nearest_neighbours
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
class SimilarSettings:
    """How similar prompts are found, each setting with its help.

    Attributes:
        n_neighbours: how many of each prompt's nearest enter the density.
        bandwidth: SD of the kernel as a factor of the SD of the distances.
        unimodal: what to do where the density has only one maximum: keep it, or half it as the authors' code does.
        threshold: a distance to use instead of one from the density; None takes it from the density.
        groups: connected components, or the stars of the authors' code.
        protect_lexical: with stars, prompts whose questions have a larger ratio than this are not taken as similar:
            they differ in little on purpose. 1 protects none.
        largest_group: largest share of all prompts that a group may hold.
    """

    n_neighbours: Annotated[int, "Number of nearest neighbours of each prompt in the density of distances."] = 100
    bandwidth: Annotated[float, "Bandwidth of the density, as a factor of the standard deviation of the distances."] = (
        0.15
    )
    unimodal: Annotated[
        Unimodal,
        (
            "Threshold if the density has a single maximum. keep: the maximum; half: half of it, as "
            "in the authors' code."
        ),
    ] = "keep"
    threshold: Annotated[
        float | None, "Cosine distance below which prompts are similar. By default the first maximum of the density."
    ] = None
    groups: Annotated[
        Grouping, ("Groups of similar prompts. components: connected prompts; stars: as in the authors' code.")
    ] = "components"
    protect_lexical: Annotated[
        float, "With stars: prompts with a larger text similarity than this ratio are not grouped."
    ] = 0.8
    largest_group: Annotated[
        float, "Largest share of all prompts in a group; the step is skipped if a group is larger."
    ] = 0.05


@dataclass(frozen=True, kw_only=True)
class SimilarStep:
    """The step, or why it was not taken.

    Attributes:
        flags: every prompt of a group, half of each removed; none where there is a reason.
        reason: why nothing is flagged, and what to change; '' where the step was taken.
        threshold: distance below which two prompts are similar; None where none was found.
        chosen_by: ``first maximum``, ``half of the only maximum``, or ``given``.
        density: of the distances to the nearest neighbours.
        n_pairs: pairs strictly nearer than the threshold; 0 where there is none.
        largest_group: prompts in the largest group there would be.
    """

    flags: StepFlags
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
        is_too_large: ``(b, k)`` whether that is more than a group may hold.
        chosen: place among the bandwidths and numbers of neighbours of those by which the step was taken; None where it
            was taken by another density, by stars, or by a threshold that was given.
    """

    bandwidths: NDArray[np.float64]
    n_neighbours: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    shares: NDArray[np.float64]
    largest: NDArray[np.float64]
    is_too_large: NDArray[np.bool_]
    chosen: tuple[int, int] | None


def find_similar(
    E: NDArray[np.float32],
    texts: Sequence[str],
    settings: SimilarSettings,
    *,
    seed: int,
    neighbours: Neighbours | None = None,
) -> SimilarStep:
    """Flag prompts that have another one nearer than the threshold, and remove half of each group.

    Args:
        E: ``(n_prompts, n_dimensions)`` at least 2 rows, finite, none of them zero.
        texts: ``(n_prompts,)`` questions, for the stars.
        settings: how they are found.
        seed: of which half goes.
        neighbours: at least ``n_neighbours`` of each, where they are known already.
    """
    near = neighbours if neighbours is not None else find_nearest_neighbours(E, settings.n_neighbours)
    distances = near.distances[:, : settings.n_neighbours]
    if settings.groups == "stars":
        distances = _mask_lexically_similar(near, texts, settings)
    curve = estimate_density(distances[np.isfinite(distances)], settings.bandwidth)
    value, chosen_by, reason = _choose_threshold(curve, settings)
    n_pairs, groups = 0, np.full(len(E), -1, dtype=np.int32)
    if value is not None:
        n_pairs, groups, reason = _group_prompts(E, near, value, texts, settings)
    removed = remove_half(groups, seed=seed)
    nothing = make_flags(np.zeros(len(E), dtype=np.bool_))
    return SimilarStep(
        flags=nothing if reason else make_flags(groups >= 0, removed, groups),
        reason=reason,
        threshold=value,
        chosen_by=chosen_by,
        density=curve,
        n_pairs=n_pairs,
        largest_group=_largest_size(groups),
    )


def _choose_threshold(curve: Density, settings: SimilarSettings) -> tuple[float | None, str, str]:
    """The threshold, how it was chosen, and why there is none."""
    if settings.threshold is not None:
        return settings.threshold, "given", ""
    maximum = find_threshold(curve, unimodal=settings.unimodal)
    is_half = maximum.is_unimodal and settings.unimodal == "half"
    chosen_by = "half of the only maximum" if is_half else "first maximum"
    return maximum.value, chosen_by, "" if maximum.value is not None else maximum.reason


def _group_prompts(
    E: NDArray[np.float32], near: Neighbours, value: float, texts: Sequence[str], settings: SimilarSettings
) -> tuple[int, NDArray[np.int32], str]:
    """Pairs nearer than the threshold, the groups they make, and why these cannot be used; '' where they can."""
    components = find_components(E, near, (value,))
    n_pairs, groups = int(components.n_pairs[0]), components.groups[0]
    if settings.groups == "stars":
        if n_pairs > MAX_PAIRS:
            reason = f"{n_pairs:,} pairs are nearer than {value:.4f}, too many for stars; choose a smaller threshold"
            return n_pairs, groups, reason
        groups = find_stars(E, near, value, texts=texts, protect=settings.protect_lexical)
    largest = _largest_size(groups)
    if largest <= settings.largest_group * len(E):
        return n_pairs, groups, ""
    reason = (
        f"below {value:.4f} one group would hold {largest:,} of {len(E):,} prompts, more than the share "
        f"{settings.largest_group:g}; choose another bandwidth, lower the threshold or allow a larger group"
    )
    return n_pairs, groups, reason


def trace_similar_path(E: NDArray[np.float32], neighbours: Neighbours, settings: SimilarSettings) -> SimilarPath:
    """How threshold and share removed change around what was chosen, by connected components.

    Args:
        E: as for `find_similar`.
        neighbours: at least ``n_neighbours`` of each prompt.
        settings: as chosen; larger numbers of neighbours are not tried.
    """
    most = min(settings.n_neighbours, neighbours.distances.shape[1])
    numbers = sorted({k for k in NUMBERS_OF_NEIGHBOURS if k < most} | {most})
    factors = sorted({*BANDWIDTHS, settings.bandwidth})
    thresholds = np.full((len(factors), len(numbers)), np.nan)
    for j, k in enumerate(numbers):
        distances = np.ascontiguousarray(neighbours.distances[:, :k]).ravel()
        for i, factor in enumerate(factors):
            value = find_threshold(estimate_density(distances, factor), unimodal=settings.unimodal).value
            thresholds[i, j] = np.nan if value is None else value
    known = np.unique(thresholds[np.isfinite(thresholds)])
    shares, largest = np.full(thresholds.shape, np.nan), np.full(thresholds.shape, np.nan)
    groups_of_each = find_components(E, neighbours, known.tolist()).groups if known.size else ()
    for value, groups in zip(known, groups_of_each, strict=True):
        sizes = np.bincount(groups[groups >= 0])
        shares[thresholds == value] = (sizes // 2).sum() / len(E)
        largest[thresholds == value] = sizes.max(initial=0) / len(E)
    is_step = settings.threshold is None and settings.groups == "components"
    return SimilarPath(
        bandwidths=np.array(factors),
        n_neighbours=np.array(numbers, dtype=np.int64),
        thresholds=thresholds,
        shares=shares,
        largest=largest,
        is_too_large=largest > settings.largest_group,
        chosen=(factors.index(settings.bandwidth), numbers.index(most)) if is_step else None,
    )


def _largest_size(groups: NDArray[np.int32]) -> int:
    return int(np.bincount(groups[groups >= 0]).max(initial=0))


def _mask_lexically_similar(near: Neighbours, texts: Sequence[str], settings: SimilarSettings) -> NDArray[np.float64]:
    """Distances from the first neighbour on whose question is not nearly the same text; NaN before it."""
    distances = near.distances[:, : settings.n_neighbours].copy()
    for i, row in enumerate(near.indices[:, : settings.n_neighbours].tolist()):
        places = (
            place
            for place, j in enumerate(row)
            if not is_lexically_similar(texts[i], texts[j], settings.protect_lexical)
        )
        distances[i, : next(places, len(row))] = np.nan
    return distances
