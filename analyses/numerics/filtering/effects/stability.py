"""How much a filter hangs on which models make it.

A subset of the filter models decides anew which prompts are easy and which contaminated; what the other steps remove
stays removed. Every subset of a size is looked at, so that nothing about them is estimated.
Source: Gupta et al. 2024, section 5.1 and table 6, which samples ten of the subsets of 4 and of 5 of 7 models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.removal import draw_retained
from tracker.statistics.parallel.blocks import map_blocks, split_blocks

SUBSETS_AT_A_TIME = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsetDecisions:
    """What filters by subsets of the models decide, one entry for each subset.

    Attributes:
        subsets: columns of each, ascending; sizes in the order of the option, then lexicographic.
        n_prompts: with scores from each subset.
        n_easy: int64, prompts on which all models of the subset are right and sure.
        n_retained: int64, those of them that stay at random.
        n_contaminated: int64, prompts on which they are right and sure without the question.
        n_removed: int64, by any step.
        n_changed: int64, prompts that one of the two keeps and the other removes: this filter, and that by all models.
        by_all: ``(n_prompts,)`` whether the filter by all models removes the prompt.
    """

    subsets: tuple[tuple[int, ...], ...]
    n_prompts: int
    n_easy: NDArray[np.int64]
    n_retained: NDArray[np.int64]
    n_contaminated: NDArray[np.int64]
    n_removed: NDArray[np.int64]
    n_changed: NDArray[np.int64]
    by_all: NDArray[np.bool_]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of models in each subset."""
        return np.array([len(subset) for subset in self.subsets], dtype=np.int64)

    @property
    def share_removed(self) -> NDArray[np.float64]:
        """Share of all prompts that each removes."""
        return self.n_removed / self.n_prompts

    @property
    def share_changed(self) -> NDArray[np.float64]:
        """Share of all prompts that each decides otherwise than the filter by all models."""
        return self.n_changed / self.n_prompts

    @property
    def shares(self) -> Mapping[str, NDArray[np.float64]]:
        """Shares of all prompts for every subset, by what is counted."""
        return {
            "removed": self.share_removed,
            "changed": self.share_changed,
            "easy": self.n_easy / self.n_prompts,
            "contaminated": self.n_contaminated / self.n_prompts,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class PopulationSummary:
    """Numbers of all subsets of one size.

    Attributes:
        mean, min, max: their mean, the smallest and the largest.
        sd: root of the mean squared distance from their mean. They are all there are, not a sample of more: the
            divisor is their number.
    """

    mean: float
    sd: float
    min: float
    max: float


def count_subsets(n_models: int, sizes: Sequence[int]) -> int:
    """How many subsets of these sizes there are."""
    return sum(comb(n_models, size) for size in sizes)


def decide_by_subset(
    sure: NDArray[np.bool_],
    sure_blind: NDArray[np.bool_] | None,
    otherwise: NDArray[np.bool_],
    *,
    sizes: Sequence[int],
    retain: float,
    seed: int,
) -> SubsetDecisions:
    """Filter by every subset of the models of some sizes.

    Fewer models can only agree on more prompts: what a set of models flags, each of its subsets does too. What is
    retained of the easy ones is drawn with the same numbers for all.

    Args:
        sure: ``(n_prompts, n_models)``, at least one of each: whether each model is right and sure.
        sure_blind: ``(n_prompts, n_models)`` the same without the question; None where that step was not taken.
        otherwise: ``(n_prompts,)`` whether a step that uses no model removes the prompt.
        sizes: each between 1 and ``n_models``.
        retain: share of the easy prompts that stays, in [0, 1].
        seed: of what stays, any non-negative integer.
    """
    n_prompts, n_models = sure.shape
    of_model = np.ascontiguousarray(sure.T)
    blind_of_model = None if sure_blind is None else np.ascontiguousarray(sure_blind.T)
    nothing = np.zeros(n_prompts, dtype=np.bool_)

    def filtered(subset: tuple[int, ...]) -> tuple[NDArray[np.bool_], tuple[int, int, int]]:
        columns = list(subset)
        easy = np.logical_and.reduce(of_model[columns], axis=0)
        stays = draw_retained(easy, retain, seed=seed)
        leaked = nothing if blind_of_model is None else np.logical_and.reduce(blind_of_model[columns], axis=0)
        return otherwise | (easy & ~stays) | leaked, (int(easy.sum()), int(stays.sum()), int(leaked.sum()))

    by_all, _ = filtered(tuple(range(n_models)))
    subsets = tuple(subset for size in sizes for subset in combinations(range(n_models), size))
    blocks = split_blocks(len(subsets), SUBSETS_AT_A_TIME)

    def task(block: int) -> list[tuple[int, ...]]:
        rows: list[tuple[int, ...]] = []
        for place in blocks[block]:
            removed, counts = filtered(subsets[place])
            rows.append((*counts, int(removed.sum()), int((removed != by_all).sum())))
        return rows

    rows = [row for part in map_blocks(task, len(blocks)) for row in part]
    n_easy, n_retained, n_contaminated, n_removed, n_changed = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return SubsetDecisions(
        subsets=subsets,
        n_prompts=n_prompts,
        n_easy=n_easy,
        n_retained=n_retained,
        n_contaminated=n_contaminated,
        n_removed=n_removed,
        n_changed=n_changed,
        by_all=by_all,
    )


def summarize_population(values: NDArray[np.float64]) -> PopulationSummary:
    """Mean, standard deviation and ends.

    Args:
        values: ``(n,)``, at least one, of every subset of a size.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:  # summing would make them differ by a rounding
        return PopulationSummary(mean=low, sd=0.0, min=low, max=low)
    return PopulationSummary(mean=float(values.mean()), sd=float(values.std(ddof=0)), min=low, max=high)
