"""Check the sealed files that hold rows of a store."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from tracker.copying.store_faults import StoreFault
from tracker.copying.store_files import UNREADABLE
from tracker.errors import DatabaseError, SuffrageError, first_line
from tracker.recording.sealing.sealed_files import FILES, MANIFEST, verify_files, verify_manifest
from tracker.recording.sealing.storage import is_local, open_folder

SEALED = "sealed"
FOLDERS = "SELECT DISTINCT address, digest FROM sealed_run WHERE NOT rows_in_store ORDER BY address, digest"
COUNTS = "SELECT count(*), count(CASE WHEN NOT rows_in_store THEN 1 END) FROM sealed_run"


def find_sealed_faults(connection: sa.Connection) -> Iterator[StoreFault]:
    """Yield the sealed files that are missing, or not as they were written; of an address, the manifest is read alone.

    Args:
        connection: an open transaction.
    """
    try:
        with connection.begin_nested():
            folders = connection.execute(sa.text(FOLDERS)).all()
    except UNREADABLE as error:
        yield StoreFault(about=SEALED, sentence=f"the sealed runs cannot be read: {first_line(error)}")
        return
    for address, digest in folders:
        try:
            with open_folder(address, (MANIFEST, *FILES) if is_local(address) else (MANIFEST,)) as folder:
                (verify_files if is_local(address) else verify_manifest)(folder, digest, address)
        except DatabaseError as error:
            yield StoreFault(about=SEALED, sentence=str(error).split(". ", 1)[0])
        except SuffrageError as error:  # such as a package that is not installed
            yield StoreFault(about=SEALED, sentence=f"{address} cannot be read: {str(error).splitlines()[0]}")


def count_sealed_runs(connection: sa.Connection) -> tuple[int, int]:
    """Return the number of sealed runs, and of those whose rows are in the files only; none if they cannot be read."""
    try:
        with connection.begin_nested():
            n_runs, n_moved = connection.execute(sa.text(COUNTS)).one()
    except UNREADABLE:
        return 0, 0
    return n_runs, n_moved
