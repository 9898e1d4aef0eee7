"""Runs whose harness reports other scores than those computed from its rows."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import split_keys
from tracker.name_lists import join_names
from tracker.queries.sql import tables

MAX_NAMES = 2
DIFFERENCE = re.compile(
    r"the file reports (?:(?P<name>.+?) as (?P<reported>\S+), but its scores give (?P<recomputed>\S+?)(?=;|$)"
    r"|(?P<n_reported>[\d,]+) (?P<counted>.+?), but holds (?P<n_held>[\d,]+))"
)
"""A difference as the import describes it."""


@dataclass(frozen=True, kw_only=True)
class ReportedValue:
    """A number that a file reports and that its rows do not give.

    Attributes:
        name: of the number, such as ``acc of arithmetic``.
        reported, recomputed: both numbers, with as many digits as it takes to distinguish them.
    """

    name: str
    reported: str
    recomputed: str


def parse_differences(text: str) -> list[ReportedValue]:
    """Return the numbers in the description of an unverified run; empty if it has another form."""
    return [
        ReportedValue(
            name=match["name"] or match["counted"],
            reported=match["reported"] or match["n_reported"],
            recomputed=match["recomputed"] or match["n_held"],
        )
        for match in DIFFERENCE.finditer(text)
    ]


def load_unverified(session: Session, run_ids: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return model and reported differences of the unverified runs among some, by key."""
    run, model = tables.run.c, tables.model.c
    query = sa.select(run.id, model.name, run.unverified).join(tables.model, model.id == run.model_id)
    by_run: dict[int, tuple[str, str]] = {}
    for part in split_keys(sorted(set(run_ids))):
        chosen = query.where(run.unverified.is_not(None), run.id.in_(part))
        by_run |= {key: (name, text) for key, name, text in session.execute(chosen.order_by(run.id))}
    return by_run


def list_unverified_warnings(session: Session, run_ids: Collection[int]) -> tuple[str, ...]:
    """Return a warning that names the unverified runs among some, or none."""
    unverified = load_unverified(session, run_ids)
    texts = [f"{name} (run {key}): {text}" for key, (name, text) in unverified.items()]
    return (f"Unverified runs: {join_names(texts, MAX_NAMES, separator='; ')}.",) if texts else ()
