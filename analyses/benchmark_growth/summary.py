"""What a growing benchmark shows, in plain words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.growth.trajectories import Trajectories, Trajectory
from analyses.presentation.validation import ValidationErrors, check_finite, check_minimum
from tracker.recording.finding import Metric, Undefined


def settling(informative: Trajectory, random: Trajectories, permuted: Trajectories | None, within: float) -> list[str]:
    """From which size on the ranking stays near the final one, informative prompts first and otherwise."""
    n, n_models = len(informative.distances), informative.means.shape[1]
    if n_models == 1:
        return [f"On {n:,} prompts and one model there is no ranking to follow."]
    size = informative.settled_at(within)
    said = [
        f"On {n:,} prompts and {n_models} models, the ranking stays within a Kendall distance of "
        f"{within:g} of the final one from {size:,} prompts on when the most informative come "
        f"first, and from {random.settled_by(0.5):,.0f} on in random order (median of "
        f"{random.settled.size:,} orders; 97.5% of them from {random.settled_by(0.975):,.0f} on)."
    ]
    if size > random.settled_by(0.975):
        said.append("Prompts chosen for being informative in this sense settle the ranking later than random ones.")
    if permuted:
        said.append(
            f"With every model's scores shuffled, the same method needs {permuted.settled_by(0.5):,.0f} "
            f"(median of {permuted.settled.size:,} tables)."
        )
    said.append(
        "At full size the distance is 0 by construction, and these sizes are about agreement with this benchmark's "
        "own ranking; the first of them also depends on the prompt to start with."
    )
    return said


def beginning(metrics: Mapping[str, Metric], early: int, n_zero: int) -> list[str]:
    """The mean of the first prompts beside that of all.

    Args:
        metrics: of the finding.
        early: how many the first are.
        n_zero: rows of zeros.
    """
    name = f"mean_at_{early}"
    if isinstance(metrics[name], Undefined):
        return []
    said = [
        f"The first {early} informative prompts give a mean of {metrics[name]:.3f}, {early} random ones "
        f"{metrics[f'{name}.random_mean']:.3f}, all {metrics['mean_final']:.3f}."
    ]
    if isinstance(metrics[f"{name}.permuted_mean"], Undefined):
        return [
            *said,
            "Shuffling rows of scores against the vectors gives random orders: they are the control here.",
        ]
    said.append(
        f"That this differs from the mean of all is not by itself a sign of difficult prompts: on shuffled tables, "
        "where no prompt is harder than another but by chance, the method begins at "
        f"{metrics[f'{name}.permuted_mean']:.3f}."
    )
    if n_zero:
        said.append(
            f"{n_zero:,} prompts have no score but 0; by definition they are at distance 1 from all others, "
            "and so come early."
        )
    return said


def problems(
    Q: NDArray[np.float64],
    vectors: NDArray[np.float64] | None,
    *,
    n_orders: int,
    n_permutations: int,
    within: float,
    seed: int,
) -> ValidationErrors:
    """Why a benchmark cannot grow, or not with these options, and what to do about it."""
    damaged = 0 if vectors is None else int((~np.isfinite(vectors)).any(axis=1).sum())
    return {
        **check_finite(Q),
        f"A benchmark can grow from 2 prompts on, here: {len(Q)}. Choose more tasks or a larger benchmark.": len(Q) < 2,
        f"{damaged:,} vectors hold values that are not finite. Make them anew, or choose another encoder.": damaged > 0,
        **check_minimum(1, n_orders=n_orders, n_permutations=n_permutations),
        f"within is {within}; it must be at least 0 and less than 1.": not 0 <= within < 1,
        **check_minimum(0, seed=seed),
    }


def warnings(first: int, n_zero: int, n_distinct: int, encoder: str | None) -> list[str]:
    """What the reader of the numbers should know of the order behind them.

    Args:
        first: key of the first prompt.
        n_zero: rows of zeros among scores or vectors.
        n_distinct: different directions of the others.
        encoder: of the vectors that decide on the order; None where the scores do.
    """
    said = [f"The first prompt is {first}; --start chooses another."]
    if encoder is not None:
        said.append(f"Prompts come in the order of their vectors by {encoder}.")
    if encoder is not None and n_zero:
        said.append(f"{n_zero:,} vectors are all zeros; they are at distance 1 from every prompt.")
    if n_distinct + bool(n_zero) == 1:
        said.append("All prompts have the same direction, so they come in the order of their keys.")
    return said
