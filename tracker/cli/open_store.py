"""The store of commands that write: created with the first data, and by no dry run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Engine


@contextmanager
def open_store(database: str | None, *, dry_run: bool) -> Iterator[Engine]:
    """An engine on the store; for a dry run without a store, on an empty one that is then deleted.

    A store that does not exist yet is not created here: `ingest_file` does so once a file is parsed.

    Args:
        database: URL or path of the store.
        dry_run: whether nothing may be stored.

    Raises:
        DatabaseError: the store cannot be used.
    """
    from tracker.connections.schema_versions import check_not_foreign, current_version
    from tracker.database import connect, create_unchecked_engine, ensure_current
    from tracker.private_files.temporary import temporary_folder

    engine = create_unchecked_engine(database)
    if current_version(engine) is not None:
        ensure_current(engine)
        yield engine
        return
    check_not_foreign(engine)
    if not dry_run:
        yield engine
        return
    with temporary_folder() as folder:
        engine = connect(f"sqlite:///{folder}/store.db")
        try:
            yield engine
        finally:
            engine.dispose()
