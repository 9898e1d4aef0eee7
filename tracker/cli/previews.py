"""Previews of changes: the change itself, rolled back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session


class _RollBackPreviewError(Exception):
    """Rolls back the transaction of a preview."""


@contextmanager
def preview(engine: Engine) -> Iterator[Session]:
    """Open a session for an exclusive change, and undo the change at the end."""
    from tracker.database import transaction

    with suppress(_RollBackPreviewError), transaction(engine, exclusive=True) as session:
        yield session
        raise _RollBackPreviewError
