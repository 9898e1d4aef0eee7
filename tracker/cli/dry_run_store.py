"""The store of commands with --dry-run, which must not create one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine


@contextmanager
def open_store(database: str | None, *, dry_run: bool) -> Iterator[Engine]:
    """An engine on the store; for a dry run without a store, on an empty one that is then deleted.

    Args:
        database: URL or path of the store.
        dry_run: whether nothing may be stored.

    Raises:
        DatabaseError: the store cannot be used.
    """
    from tracker.database import connect, create_unchecked_engine, current_version

    if not dry_run or current_version(create_unchecked_engine(database)) is not None:
        yield connect(database)
        return
    with TemporaryDirectory() as folder:
        engine = connect(f"sqlite:///{folder}/store.db")
        try:
            yield engine
        finally:
            engine.dispose()
