"""Check the rows of a store, a backup or an archive: references, content and scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.copying.store_files import UNREADABLE
from tracker.database import find_file_damage, find_stray_rows
from tracker.errors import first_line
from tracker.ingest.write.checksums import verify_checksums
from tracker.integrity.free_list import find_free_list_faults
from tracker.integrity.sealed_rows import IGNORED
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


@dataclass(frozen=True, kw_only=True)
class LargeTableResults:
    """The results of checks of large tables; see `find_store_faults`.

    Attributes:
        referring: the tables whose rows refer to existing rows.
        content: by table, the content that differs from its checksum; other tables have to be read.
        scores: the runs whose scores differ from their checksums; None if they have to be read.
        file: the damage of the file; None if it has to be checked.
    """

    referring: Collection[str]
    content: Mapping[str, list[ContentFault]]
    scores: list[int] | None
    file: list[str] | None


def find_store_faults(connection: sa.Connection, large: LargeTableResults | None = None) -> Iterator[StoreFault]:
    """Yield what is wrong with the rows of a store of this version; nothing if it is sound.

    Of sealed runs, the rows in the store are compared.

    Args:
        connection: a transaction that sees one state of the store.
        large: checks of large tables that are done already.
    """
    checks: tuple[tuple[str, Callable[[sa.Connection, LargeTableResults | None], Iterable[StoreFault]]], ...] = (
        ("references", _find_stray_rows),
        ("content", _find_changed_content),
        ("scores", _find_changed_scores),
    )
    for about, find in checks:
        is_ignored = connection.get_execution_options().get(IGNORED, False)
        connection.execution_options(**{IGNORED: True})
        try:
            with connection.begin_nested():  # PostgreSQL reads no further after an error
                faults = list(find(connection, large))
        except UNREADABLE as error:
            faults = [StoreFault(about=about, sentence=f"the store cannot be read: {first_line(error)}")]
        finally:
            connection.execution_options(**{IGNORED: is_ignored})
        yield from faults


def _find_stray_rows(connection: sa.Connection, large: LargeTableResults | None) -> Iterator[StoreFault]:
    damage = large.file if large else None
    with _open_session(connection) as session:
        damage = find_file_damage(session) if damage is None else damage
        damage = [*damage, *find_free_list_faults(connection)]
        sentences = [*damage, *find_stray_rows(session, large.referring if large else ())]
    for sentence in sentences:
        yield StoreFault(about="references", sentence=sentence)


def _find_changed_content(connection: sa.Connection, large: LargeTableResults | None) -> Iterator[StoreFault]:
    for fault in find_content_faults(connection, large.content if large else {}):
        yield StoreFault(about="content", sentence=str(fault), content=fault)


def _find_changed_scores(connection: sa.Connection, large: LargeTableResults | None) -> Iterator[StoreFault]:
    runs = large.scores if large else None
    if runs is None:
        with _open_session(connection) as session:
            runs = verify_checksums(session)
    for run in runs:
        fault = ContentFault(table=SCORES, key=run, reason="changed")
        sentence = f"the scores of run {run} do not match their checksum"
        yield StoreFault(about="scores", sentence=sentence, content=fault)


def _open_session(connection: sa.Connection) -> Session:
    """Return a session in the transaction of a connection, which goes on when the session is closed."""
    return Session(bind=connection, join_transaction_mode="rollback_only")
