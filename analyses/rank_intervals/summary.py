"""The summary of rank intervals, and their warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyses.presentation.name_lists import join_names, list_leaders
from analyses.rank_intervals.method import SeparableRanks
from tracker.queries.findings.summary import Summary
from tracker.queries.ranking.interval_warnings import list_rank_interval_warnings
from tracker.statistics.grouping import Grouping
from tracker.statistics.rank_intervals import RankIntervals

MAX_GROUPS = 3
"""Groups that the summary names; the table has all."""


def summarize(finding: SeparableRanks) -> Summary:
    """The result, with its numbers."""
    ranks, k = finding.ranks, len(finding.models)
    error = f"standard errors clustered by {finding.cluster}" if ranks.is_clustered else "prompts taken as independent"
    width = ranks.rank_high - ranks.rank_low + 1
    sentences = [
        f"{ranks.n_separable_pairs:,} of {ranks.n_pairs:,} pairs of models can be told apart at {1 - ranks.level:.3g} "
        f"for all of them together (paired t, Holm; {error}).",
        _describe_lead(finding),
        *_describe_groups(ranks),
        f"All {k} intervals of ranks hold at once with probability {ranks.level:.0%}; the widest is "
        f"{int(width.max())} ranks.",
    ]
    return Summary.from_sentences(sentences)


def _describe_lead(finding: SeparableRanks) -> str:
    """Which models lead, and which may."""
    ranks, models, n_left_out = finding.ranks, finding.models, finding.n_left_out
    leaders = list_leaders(ranks.rank, models)
    may_lead = [models[column] for column in np.flatnonzero(ranks.rank_low == 1).tolist()]
    rivals = [name for name in may_lead if name not in leaders]
    lead = f"{join_names(leaders)} {'leads' if len(leaders) == 1 else 'share the lead'}"
    scope = f" of these {len(models)} (the {n_left_out} without a rank may do better)" if n_left_out else ""
    return f"{lead}; {join_names(rivals)} may lead too." if rivals else f"{lead}, and no other model{scope} may."


def _describe_groups(ranks: RankIntervals) -> list[str]:
    """Which models cannot be told apart."""
    if not ranks.groups:
        return ["Every two neighbours can be told apart."]
    names = "; ".join(describe_group(ranks, group) for group in ranks.groups[:MAX_GROUPS])
    n_more = len(ranks.groups) - MAX_GROUPS
    rest = f"; and {n_more} more group{'s' * (n_more > 1)}" if n_more > 0 else ""
    sentences = [f"Cannot be told apart: {names}{rest}."]
    if sum(map(len, ranks.groups)) > len({column for group in ranks.groups for column in group}):
        sentences.append("Groups overlap: each of two models may be close to a third while they are not close.")
    return sentences


def describe_group(ranks: RankIntervals, group: Sequence[int]) -> str:
    """A group by its ranks, such as ``ranks 3–7``."""
    first, last = ranks.rank[group[0]], ranks.rank[group[-1]]
    return f"ranks {first:g}–{last:g}" if first != last else f"the {len(group)} models that share rank {first:g}"


def collect_warnings(finding: SeparableRanks, groups: Grouping, dropped: Sequence[str]) -> list[str]:
    """What the reader of the numbers should know.

    Args:
        finding: the numbers.
        groups: clusters of the prompts.
        dropped: names of the models without a rank.
    """
    warnings = list_rank_interval_warnings(finding.ranks, finding.models, groups, finding.cluster)
    if not dropped:
        return warnings
    verb = "has" if len(dropped) == 1 else "have"
    return [
        f"Not ranked, since scores are missing: {join_names(dropped)} {verb} not been measured on every prompt.",
        *warnings,
    ]
