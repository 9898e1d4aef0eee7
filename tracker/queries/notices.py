"""Notices about choices that a query made for the user: a default metric, or an earlier, more complete run.

They are collected in the session, so that every command reports the choices of all its queries once.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

_NOTICES = "suffrage.notices"
_METRICS = "suffrage.default_metrics"


def add_notice(session: Session, text: str) -> None:
    """Add a notice; equal ones count once."""
    session.info.setdefault(_NOTICES, {})[text] = None


def list_notices(session: Session) -> tuple[str, ...]:
    """Return the notices of a session, in the order in which they were added."""
    return tuple(session.info.get(_NOTICES, ()))


def set_default_metric(session: Session, benchmark_id: int, name: str) -> None:
    """Remember the metric that is used for a benchmark whose selection names none."""
    session.info.setdefault(_METRICS, {})[benchmark_id] = name


def get_default_metric(session: Session, benchmark_id: int) -> str | None:
    """Return the metric that was used for a benchmark; None if the selection named one, or there is only one."""
    name: str | None = session.info.get(_METRICS, {}).get(benchmark_id)
    return name
