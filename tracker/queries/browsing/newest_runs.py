"""The newest runs, each with the run before it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.catalogue.listing import RunRow, list_runs
from tracker.queries.sql import tables


def list_newest_runs(session: Session, limit: int) -> list[tuple[RunRow, int | None]]:
    """Return the complete runs that were ingested last, the latest first.

    Args:
        session: the store.
        limit: maximum number of runs.

    Returns:
        Each run with the key of the complete run of the same model, benchmark, condition and variant that was ingested
        before it; None without one.
    """
    kept = tables.run.c
    keys = session.scalars(sa.select(kept.id).where(kept.status == "complete").order_by(kept.id.desc()).limit(limit))
    earlier = tables.run.alias()
    same = [earlier.c[name] == kept[name] for name in ("model_id", "benchmark_id", "condition", "variant")]
    before = (
        sa.select(kept.id, sa.func.max(earlier.c.id))
        .outerjoin(earlier, sa.and_(*same, earlier.c.status == "complete", earlier.c.id < kept.id))
        .where(kept.id.in_(list(keys)))
        .group_by(kept.id)
    )
    since = {row[0]: row[1] for row in session.execute(before)}
    return [(run, since[run.id]) for run in list_runs(session, keys=list(since))]
