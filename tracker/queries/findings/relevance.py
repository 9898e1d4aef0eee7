"""The order in which findings matter to a reader of a benchmark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from tracker.queries.findings.finding_records import FindingRow

F = TypeVar("F", bound=FindingRow)


def sort_by_relevance(rows: Sequence[F], leaders: Collection[str]) -> list[F]:
    """Return findings such that those that matter most come first.

    Current ones come before stale ones, and those before failed ones. Of each analysis, the latest comes before the
    earlier ones. Among equals, those that put another model first precede those that put the same model first, which
    precede those that rank no model; later ones precede earlier ones.

    Args:
        rows: findings, the latest first.
        leaders: models that the leaderboard ranks first.
    """
    seen: set[str] = set()
    keys: dict[int, tuple[int, bool, bool, bool, int]] = {}
    for row in sorted(rows, key=lambda row: -row.id):
        tier = 2 if row.status == "failed" else 1 if row.stale else 0
        is_repeated = tier == 0 and row.name in seen
        if tier == 0:
            seen.add(row.name)
        keys[row.id] = (tier, is_repeated, not names_another_leader(row, leaders), not row.leader, -row.id)
    return sorted(rows, key=lambda row: keys[row.id])


def names_another_leader(row: FindingRow, leaders: Collection[str]) -> bool:
    """Return whether a finding ranks another model first than the leaderboard does."""
    return bool(row.leader and leaders) and set(row.leader.split(", ")) != set(leaders)
