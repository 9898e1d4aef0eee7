"""Which ranks can be told apart, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.presentation.name_lists import first_ranked, join_names
from analyses.presentation.validation import ValidationErrors, check_minimum
from tracker.queries.ranking.interval_warnings import clustering_warnings
from tracker.queries.score_validation import check_finite, check_squarable
from tracker.statistics.grouping import Grouping
from tracker.statistics.rank_intervals import RankIntervals

SAID_GROUPS = 3
"""Groups that the summary names; the table has all."""


def problems(Q: NDArray[np.float64], n_left_out: int, *, n_resamples: int, level: float, seed: int) -> ValidationErrors:
    """Why these ranks cannot be told apart, and what to do about it.

    Args:
        Q: of the models that were measured on every prompt.
        n_left_out: models that were not.
        n_resamples, level, seed: as asked for.
    """
    left_out = f" {n_left_out} lack scores; choose --tasks or --runs that are complete." if n_left_out else ""
    return {
        **check_minimum(0, n_resamples=n_resamples, seed=seed),
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
        **check_finite(Q),
        **check_squarable(Q),
        f"Ranks need 2 models that were measured on every prompt, here: {Q.shape[1]}."
        f"{left_out or ' Choose more models.'}": Q.shape[1] < 2,
    }


def summary(found: RankIntervals, models: Sequence[str], by: str, n_left_out: int = 0) -> str:
    """What was found, with its numbers."""
    k, level = len(models), found.level
    error = f"standard errors clustered by {by}" if found.is_clustered else "prompts taken as independent"
    said = [
        f"{found.n_separable_pairs:,} of {found.n_pairs:,} pairs of models can be told apart at {1 - level:.3g} for "
        f"all of them together (paired t, Holm; {error})."
    ]
    leaders = first_ranked(found.rank, models)
    may_lead = [models[column] for column in np.flatnonzero(found.rank_low == 1).tolist()]
    others = [name for name in may_lead if name not in leaders]
    lead = f"{join_names(leaders)} {'leads' if len(leaders) == 1 else 'share the lead'}"
    of = f" of these {k} (the {n_left_out} without a rank may do better)" if n_left_out else ""
    said.append(f"{lead}; {join_names(others)} may lead too." if others else f"{lead}, and no other model{of} may.")
    if found.groups:
        shown = "; ".join(group_in_words(found, group) for group in found.groups[:SAID_GROUPS])
        more = len(found.groups) - SAID_GROUPS
        rest = f"; and {more} more group{'s' * (more > 1)}" if more > 0 else ""
        said.append(f"Cannot be told apart: {shown}{rest}.")
        if sum(map(len, found.groups)) > len({column for group in found.groups for column in group}):
            said.append("Groups overlap: each of two models may be close to a third while they are not close.")
    else:
        said.append("Every two neighbours can be told apart.")
    width = found.rank_high - found.rank_low + 1
    said.append(
        f"All {k} intervals of ranks hold at once with probability {level:.0%}; the widest is {int(width.max())} ranks."
    )
    return " ".join(said)


def group_in_words(found: RankIntervals, group: Sequence[int]) -> str:
    """A group by its ranks, such as ``ranks 3–7``."""
    first, last = found.rank[group[0]], found.rank[group[-1]]
    return f"ranks {first:g}–{last:g}" if first != last else f"the {len(group)} models that share rank {first:g}"


def warnings(
    found: RankIntervals, models: Sequence[str], groups: Grouping, by: str, *, left_out: Sequence[str]
) -> list[str]:
    """What the reader of the numbers should know."""
    said = []
    if left_out:
        verb = "has" if len(left_out) == 1 else "have"
        said.append(
            f"Not ranked, since scores are missing: {join_names(left_out)} {verb} not been measured on every prompt."
        )
    said += clustering_warnings(groups, by)
    if found.is_clustered and found.correction == "CR2":
        said.append("Intervals of single means are CR1, as on the leaderboard, and too narrow for such clusters.")
    flat = (found.pairs.stderr if not found.is_clustered else found.pairs.stderr_clustered) == 0
    i, j = np.nonzero(np.triu(flat, 1))
    same = int((found.pairs.difference[i, j] == 0).sum())
    if same:
        named = [f"{models[a]} = {models[b]}" for a, b in zip(i.tolist(), j.tolist(), strict=True)]
        said.append(f"{same} pairs of models do not differ, or not beyond rounding: {join_names(named)}.")
    if len(i) > same:
        units = "clusters" if found.is_clustered else "prompts"
        said.append(
            f"{len(i) - same} pairs differ by the same amount on all {units}; their p-value is that of flipped signs, "
            f"2 / 2^({units})."
        )
    return said
