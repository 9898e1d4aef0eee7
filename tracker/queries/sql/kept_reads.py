"""Arrays that a server keeps between requests, so that no selection reads the same rows of the store again.

Keeping is switched on for an engine. Commands do not switch it on: each reads what it needs once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

T = TypeVar("T")

OPTION = "suffrage_kept_reads"
"""Execution option of an engine: keeps what its sessions read."""
MAX_CELLS = 4_000_000
"""Maximum size of a kept matrix; larger ones are read for each selection."""


class KeptReads(Protocol):
    """Keeps values of one state of the store."""

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of a key, computed once."""


def keep_reads(engine: sa.Engine, kept: KeptReads) -> sa.Engine:
    """Return the engine whose sessions keep what they read.

    Args:
        engine: the store.
        kept: keeps the values; it drops them when the store changes.
    """
    return engine.execution_options(**{OPTION: kept})


def find_kept(session: Session) -> KeptReads | None:
    """Return what keeps the reads of a session; None if each read goes to the store."""
    kept: KeptReads | None = session.get_bind().get_execution_options().get(OPTION)
    return kept


def read_once(session: Session, key: Hashable, read: Callable[[], T]) -> T:
    """Return what a function reads: as it was kept, or from the store."""
    kept = find_kept(session)
    return read() if kept is None else kept.get(key, read)
