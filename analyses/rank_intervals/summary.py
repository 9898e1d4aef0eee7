"""The summary of rank intervals, and their warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.presentation.name_lists import list_leaders
from analyses.rank_intervals.method import SeparableRanks
from tracker.name_lists import join_names
from tracker.queries.clusters import NONE
from tracker.queries.findings.summary import MAX_HEADLINE_WORDS, Summary
from tracker.queries.ranking.interval_warnings import list_rank_interval_warnings
from tracker.queries.ranking.leaderboard_result import describe_task_spans
from tracker.statistics.grouping import Grouping
from tracker.statistics.rank_intervals import RankIntervals

MAX_GROUPS = 3
"""Groups that the summary names; the table has all."""


def summarize(finding: SeparableRanks) -> Summary:
    """Summarize which models may be first, and which pairs differ significantly."""
    ranks, k = finding.ranks, len(finding.models)
    widest = int((ranks.rank_high - ranks.rank_low + 1).max())
    headline, spans = _headline(finding), _describe_task_spans(finding)
    further = "" if spans in headline else f" The first model has {spans}."
    return Summary(
        headline=headline,
        evidence=(
            f"{ranks.n_separable_pairs:,} of {ranks.n_pairs:,} pairs of models differ significantly (paired t-tests, "
            f"Holm's correction, family-wise level {1 - ranks.level:.3g}).",
            _describe_groups(ranks),
            f"All {k} rank intervals hold together with probability {ranks.level:.0%}; the widest spans "
            f"{widest} rank{'s' * (widest != 1)}.{further}",
            _describe_errors(finding),
            *filter(None, [finding.one_per_family.describe() if finding.one_per_family else ""]),
        ),
        caveats=tuple(_list_caveats(finding)),
    )


def _headline(finding: SeparableRanks) -> str:
    """Which model is first, which others may be, and the ranks on these and on other tasks if that is short."""
    lead, spans = _describe_lead(finding), _describe_task_spans(finding)
    whole = f"{lead.removesuffix('.')} ({spans})."
    return whole if spans and len(whole.split()) <= MAX_HEADLINE_WORDS else lead


def _describe_task_spans(finding: SeparableRanks) -> str:
    """The rank intervals of the leader on these tasks and on other tasks; '' if they are not known."""
    leaders, (fixed, random) = list_leaders(finding.ranks.rank, finding.models), finding.task_spans
    return describe_task_spans(fixed[leaders[0]], random[leaders[0]]) if fixed and len(leaders) == 1 else ""


def _describe_lead(finding: SeparableRanks) -> str:
    """Which model is first, and which others may be."""
    ranks, models = finding.ranks, finding.models
    leaders = list_leaders(ranks.rank, models)
    may_lead = [models[column] for column in np.flatnonzero(ranks.rank_low == 1).tolist()]
    rivals = [name for name in may_lead if name not in leaders]
    lead = f"{join_names(leaders)} {'is' if len(leaders) == 1 else 'are'} first"
    if rivals:
        return f"{lead}, but {join_names(rivals)} may be first too: the difference is not significant."
    if len(leaders) == len(models) > 1:
        return f"{join_names(leaders)} share the first place: no model is ahead of another."
    return f"{lead} with {ranks.level:.0%} confidence: no other of the {len(models)} models may be first."


def _describe_groups(ranks: RankIntervals) -> str:
    """Which models do not differ significantly."""
    if not ranks.groups:
        return "All neighbours in the ranking differ significantly."
    groups = [describe_group(ranks, group) for group in ranks.groups]
    return f"No significant difference within: {join_names(groups, MAX_GROUPS, separator='; ')}."


def _describe_errors(finding: SeparableRanks) -> str:
    """How standard errors are computed."""
    if not finding.ranks.is_clustered:
        return "Standard errors are computed as if prompts were independent."
    by = "" if finding.cluster == NONE else f"clustered by {finding.cluster}"
    if finding.is_stratified:
        by = f"{by} within tasks" if by else "stratified by task"
    return f"Standard errors are {by}."


def _list_caveats(finding: SeparableRanks) -> Iterator[str]:
    groups = finding.ranks.groups
    if finding.n_excluded:
        noun = "model is" if finding.n_excluded == 1 else "models are"
        yield f"{finding.n_excluded:,} {noun} listed apart, without a rank, because too many scores are missing."
    if sum(map(len, groups)) > len({column for group in groups for column in group}):
        yield "Groups overlap: two models can differ significantly although neither differs from a third."


def describe_group(ranks: RankIntervals, group: Sequence[int]) -> str:
    """A group by its ranks, such as ``ranks 3–7``."""
    first, last = ranks.rank[group[0]], ranks.rank[group[-1]]
    return f"ranks {first:g}–{last:g}" if first != last else f"the {len(group)} models that share rank {first:g}"


def collect_warnings(finding: SeparableRanks, groups: Grouping) -> list[str]:
    """List the warnings of the intervals.

    Args:
        finding: the result.
        groups: clusters of the prompts.
    """
    return list_rank_interval_warnings(finding.ranks, finding.models, groups, finding.cluster)
