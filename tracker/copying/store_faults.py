"""Check the rows of a store, a backup or an archive: references, content and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.copying.store_files import UNREADABLE
from tracker.database import find_stray_rows
from tracker.errors import first_line
from tracker.ingest.write.checksums import verify_checksums
from tracker.integrity.verification import ContentFault, find_content_faults

SCORES = "score"


@dataclass(frozen=True, kw_only=True)
class StoreFault:
    """A fault of a store.

    Attributes:
        about: ``schema``, ``search``, ``references``, ``content`` or ``scores``.
        sentence: the fault, without a full stop.
        content: the rows that differ from their checksum; None if the fault is about something else.
    """

    about: str
    sentence: str
    content: ContentFault | None = None

    def __str__(self) -> str:
        return self.sentence


def find_store_faults(connection: sa.Connection) -> Iterator[StoreFault]:
    """Yield what is wrong with the rows of a store of this version; nothing if it is sound.

    Args:
        connection: a transaction that sees one state of the store.
    """
    checks: tuple[tuple[str, Callable[[sa.Connection], Iterable[StoreFault]]], ...] = (
        ("references", _find_stray_rows),
        ("content", _find_changed_content),
        ("scores", _find_changed_scores),
    )
    for about, find in checks:
        try:
            with connection.begin_nested():  # PostgreSQL reads no further after an error
                faults = list(find(connection))
        except UNREADABLE as error:
            faults = [StoreFault(about=about, sentence=f"the store cannot be read: {first_line(error)}")]
        yield from faults


def _find_stray_rows(connection: sa.Connection) -> Iterator[StoreFault]:
    with _open_session(connection) as session:
        for sentence in find_stray_rows(session):
            yield StoreFault(about="references", sentence=sentence)


def _find_changed_content(connection: sa.Connection) -> Iterator[StoreFault]:
    for fault in find_content_faults(connection):
        yield StoreFault(about="content", sentence=str(fault), content=fault)


def _find_changed_scores(connection: sa.Connection) -> Iterator[StoreFault]:
    with _open_session(connection) as session:
        for run in verify_checksums(session):
            fault = ContentFault(table=SCORES, key=run, reason="changed")
            sentence = f"the scores of run {run} do not match their checksum"
            yield StoreFault(about="scores", sentence=sentence, content=fault)


def _open_session(connection: sa.Connection) -> Session:
    """Return a session in the transaction of a connection, which goes on when the session is closed."""
    return Session(bind=connection, join_transaction_mode="rollback_only")
