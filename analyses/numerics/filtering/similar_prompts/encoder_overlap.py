"""How far two encoders call the same prompts similar.

Source: Gupta et al. 2024, section 5.2 and appendix A.5, tables 7 and 8, which give "percentage overlap" undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.similar_prompts.neighbours import Neighbours, find_nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_groups import iterate_nearer
from analyses.numerics.filtering.similar_prompts.similar_step import (
    MAX_PAIRS,
    SimilarSettings,
    SimilarStep,
    find_similar,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """Two sets among the same things.

    Attributes:
        n: things there are.
        n_first, n_second: in each set.
        n_both: in both.
    """

    n: int
    n_first: int
    n_second: int
    n_both: int

    @property
    def coefficient(self) -> float:
        """Share of the smaller set that is in the other too; NaN where it is empty. It is 1 if one holds the other."""
        smaller = min(self.n_first, self.n_second)
        return self.n_both / smaller if smaller else np.nan

    @property
    def jaccard(self) -> float:
        """Share of what is in either set that is in both; NaN where both are empty."""
        either = self.n_first + self.n_second - self.n_both
        return self.n_both / either if either else np.nan

    @property
    def expected(self) -> float:
        """How many would be in both on average if each set were drawn at random, with its size."""
        return self.n_first * self.n_second / self.n if self.n else 0.0

    @property
    def expected_coefficient(self) -> float:
        """The coefficient on average if each set were drawn at random: the share of all that the larger one holds."""
        return max(self.n_first, self.n_second) / self.n if min(self.n_first, self.n_second) else np.nan


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderResult:
    """The similar step with one encoder's vectors.

    Attributes:
        encoder: what made the vectors.
        similar: the step; None where it could not be taken.
        reason: why it flags nothing; '' where it flags something.
        pairs: sorted int64 ``i * n + j`` with ``i < j`` for each pair nearer than the threshold; None where there is
            none, or there are more than `MAX_PAIRS`.
    """

    encoder: str
    similar: SimilarStep | None
    reason: str
    pairs: NDArray[np.int64] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderOverlap:
    """What two encoders call similar.

    Attributes:
        first, second: places of the encoders.
        prompts: those flagged; None where either flags none.
        pairs: of prompts nearer than the threshold, whatever groups they form; None where either's are not listed.
        reason: why there is no overlap; '' where there is.
    """

    first: int
    second: int
    prompts: Overlap | None
    pairs: Overlap | None
    reason: str


def find_similar_by_encoder(
    encoder: str, E: NDArray[np.float32], texts: Sequence[str], settings: SimilarSettings, *, seed: int
) -> EncoderResult:
    """The step with an encoder's vectors, as `find_similar` takes it, and the pairs behind it."""
    near = find_nearest_neighbours(E, settings.n_neighbours)
    similar = find_similar(E, texts, settings, seed=seed, neighbours=near)
    reason = similar.reason
    if not reason and not similar.flags.flagged.any():
        reason = f"no two prompts are called similar below {similar.threshold:.4g}"
    is_listed = not reason and similar.threshold is not None and similar.n_pairs <= MAX_PAIRS
    pairs = _pairs(E, near, similar.threshold) if is_listed and similar.threshold is not None else None
    return EncoderResult(encoder=encoder, similar=similar, reason=reason, pairs=pairs)


def compare_encoders(steps: Sequence[EncoderResult]) -> tuple[EncoderOverlap, ...]:
    """Of every two encoders, in the order of the steps."""
    return tuple(_overlap(steps, i, j) for i, j in combinations(range(len(steps)), 2))


def _overlap(steps: Sequence[EncoderResult], i: int, j: int) -> EncoderOverlap:
    first, second = steps[i], steps[j]
    without = [result.encoder for result in (first, second) if result.reason]
    reason = f"the similar step flags nothing with {' and '.join(without)}" if without else ""
    prompts = pairs = None
    if first.similar and second.similar and not without:
        prompts = measure_overlap(first.similar.flags.flagged, second.similar.flags.flagged)
        n = prompts.n
        if first.pairs is not None and second.pairs is not None:
            both = np.intersect1d(first.pairs, second.pairs, assume_unique=True)
            pairs = Overlap(n=n * (n - 1) // 2, n_first=len(first.pairs), n_second=len(second.pairs), n_both=len(both))
    return EncoderOverlap(first=i, second=j, prompts=prompts, pairs=pairs, reason=reason)


def _pairs(E: NDArray[np.float32], near: Neighbours, threshold: float) -> NDArray[np.int64]:
    """Pairs strictly nearer, as numbers, ascending."""
    n, codes = len(E), [np.empty(0, dtype=np.int64)]
    for i, near_prompts in enumerate(iterate_nearer(E, near, threshold)):
        codes.append(i * n + np.sort(near_prompts[near_prompts > i]).astype(np.int64))
    return np.concatenate(codes)


def measure_overlap(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Overlap:
    """Of two sets of prompts.

    Args:
        first, second: ``(n,)`` whether each prompt is in the set.
    """
    return Overlap(
        n=len(first), n_first=int(first.sum()), n_second=int(second.sum()), n_both=int((first & second).sum())
    )
