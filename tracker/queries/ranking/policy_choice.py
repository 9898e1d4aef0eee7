"""Choose the policy for missing scores before data are loaded, so that it can be recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.queries.ranking.missing import without_bounds
from tracker.queries.resolution import find_benchmark, find_metric, select_tasks
from tracker.queries.selection import POLICIES, Policy, Selection, Unit

NEED_BOUNDS: frozenset[Policy] = frozenset({"bounds", "worst"})
"""Policies that need the bounds of the metric."""


def choose_policy(
    session: Session,
    selection: Selection,
    *,
    default: Policy,
    supported: Sequence[Policy] = POLICIES,
    units: Sequence[Unit] = ("prompt",),
    subject: str = "leaderboard",
    treats_tasks: bool = False,
) -> Selection:
    """Return a selection with an explicit policy for missing scores.

    The default ``bounds`` becomes ``common`` under a metric without bounds. Unless ``treats_tasks``, published scores
    of whole tasks have no policy: each analysis of tasks documents its treatment of their gaps.

    Args:
        session: the store.
        selection: the user's choices.
        default: policy if the user names none.
        supported: policies that make sense.
        units: units of the scores, the preferred one first.
        subject: name of the command or analysis, for errors.
        treats_tasks: whether the policy also applies to scores of whole tasks.

    Raises:
        NotFoundError: a benchmark, metric or task does not exist.
        SelectionError: the policy is unknown, is not supported, or needs bounds that the metric does not have; the
            least coverage is out of range; or the benchmark has no scores.
    """
    check_policy(selection, supported, subject)
    benchmark = find_benchmark(session, selection.benchmark)
    select_tasks(session, benchmark, selection)  # a wrong task is reported before a wrong metric
    metric, unit = find_metric(session, benchmark, selection, units)
    if unit == "task" and not treats_tasks:
        if selection.missing is not None:
            raise SelectionError(
                f"{benchmark.label} has scores of whole tasks only, and {subject} has its own treatment of their gaps. "
                "Leave --missing out."
            )
        return selection
    is_bounded = metric.worst is not None and metric.best is not None
    if selection.missing in NEED_BOUNDS and not is_bounded:
        raise without_bounds(metric.name)
    preferred = selection.preferred
    if preferred not in supported or (preferred in NEED_BOUNDS and not is_bounded):
        preferred = None
    chosen = selection.missing or preferred or default
    return replace(selection, missing="common" if chosen in NEED_BOUNDS and not is_bounded else chosen, preferred=None)


def check_policy(selection: Selection, supported: Sequence[Policy], subject: str) -> None:
    """Check the names and ranges of a selection's choices about missing scores.

    Raises:
        SelectionError: the policy is unknown or not supported, or the least coverage is out of range.
    """
    if selection.missing is not None and selection.missing not in POLICIES:
        raise SelectionError(f"No missing-score policy {selection.missing!r}. Known: {', '.join(POLICIES)}.")
    if selection.missing is not None and selection.missing not in supported:
        raise SelectionError(
            f"{subject} does not support --missing {selection.missing}. Choose one of: {', '.join(supported)}."
        )
    share = selection.least_coverage
    if not 0 <= share <= 1:
        raise SelectionError(
            f"min_coverage is {share:g}; it must be from 0 to 1, such as 0.95 for 95 % of the prompts."
        )
