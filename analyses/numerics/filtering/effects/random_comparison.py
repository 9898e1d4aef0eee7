"""A selection of prompts beside random selections of its size.

Source: Gupta et al. 2024, section 4.4, table 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.agreement import measure_agreement, measure_random_agreement
from analyses.numerics.filtering.effects.random_subsets import (
    SubsetStatistics,
    find_position,
    random_subset_statistics,
    subset_statistics,
)
from analyses.numerics.filtering.effects.spread import Spread, summarize_spread

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

STATISTICS = ("tau", "tau_without_filter_models", "pearson", "spearman", "agreement")
"""Of a selection, and of each random one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionComparison:
    """The ranking of models on a selection of prompts, and on random selections of its size.

    Attributes:
        kept: ``(n_prompts,)`` what is selected.
        values: by the names of `STATISTICS`; NaN where one is not defined.
        random: the same, each ``(n_subsets,)``.
        means: ``(n_models,)`` over what is selected.
        random_means: ``(n_subsets, n_models)``.
    """

    kept: Mask
    values: Mapping[str, float]
    random: Mapping[str, Floats]
    means: Floats
    random_means: Floats

    @property
    def share_removed(self) -> float:
        """Of the prompts."""
        return float((~self.kept).mean())  # as every finding about the filter counts it

    def spread(self, name: str) -> Spread:
        """A statistic over the random selections."""
        return summarize_spread(self.random[name])

    def position(self, name: str) -> float:
        """Where a statistic lies among those of the random selections; see `random_subsets.position`."""
        return find_position(self.values[name], self.random[name])


def compare_with_random(
    Q: Floats,
    kept: Mask,
    answers: NDArray[np.int32] | None,
    *,
    excluded: Mask,
    external_scores: Floats | None,
    n_subsets: int = 1000,
    seed: int,
) -> SelectionComparison:
    """Compare a selection with random ones, each without replacement.

    Args:
        Q: ``(n_prompts, n_models)`` finite scores, larger is better.
        kept: ``(n_prompts,)`` the selection.
        answers: ``(n_prompts, n_models)`` numbers of answers, -1 = none; None where agreement is undefined.
        excluded: ``(n_models,)`` the filter models, whom one of the statistics leaves out; it is not defined where
            there are none, nor where fewer than two others are left.
        external_scores: ``(n_models,)`` other scores of the models, larger is better, NaN = none; None where there
            are none.
        n_subsets: random selections.
        seed: two selections of one size are compared with the same random ones.
    """
    size = int(kept.sum())
    selected = subset_statistics(Q, kept[None], excluded=excluded, external_scores=external_scores)
    drawn_statistics = random_subset_statistics(
        Q, size, n_subsets=n_subsets, seed=seed, excluded=excluded, external_scores=external_scores
    )
    nowhere = np.full(n_subsets, np.nan)
    agreed, drawn = float("nan"), nowhere
    if answers is not None:
        agreed = measure_agreement(answers[kept]).mean_share
        drawn = measure_random_agreement(answers, size, n_draws=n_subsets, seed=seed).share
    values, random = _name_statistics(selected), _name_statistics(drawn_statistics)
    if not excluded.any():
        values["tau_without_filter_models"], random["tau_without_filter_models"] = nowhere[:1], nowhere
    return SelectionComparison(
        kept=kept,
        values={name: float(value[0]) for name, value in values.items()} | {"agreement": agreed},
        random={**random, "agreement": drawn},
        means=selected.means[0],
        random_means=drawn_statistics.means,
    )


def full_statistics(
    Q: Floats, answers: NDArray[np.int32] | None, *, external_scores: Floats | None
) -> Mapping[str, float]:
    """The statistics of all prompts that are no comparison with themselves.

    Args:
        Q, answers, external_scores: as for `compare_with_random`.
    """
    statistics = _name_statistics(subset_statistics(Q, np.ones((1, len(Q)), np.bool_), external_scores=external_scores))
    return {name: float(statistics[name][0]) for name in ("pearson", "spearman")} | {
        "agreement": float("nan") if answers is None else measure_agreement(answers).mean_share
    }


def _name_statistics(statistics: SubsetStatistics) -> dict[str, Floats]:
    return {
        "tau": statistics.tau,
        "tau_without_filter_models": statistics.tau_without_excluded,
        "pearson": statistics.pearson,
        "spearman": statistics.spearman,
    }
