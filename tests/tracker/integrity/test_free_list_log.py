"""Free pages that wait in the write-ahead log are checked, and a log that is started anew is noticed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from plain_pages import Form
from test_free_list import find_faults, read_word

from tracker.database import create_unchecked_engine
from tracker.integrity.file_pages import FilePages, UnexpectedPageError
from tracker.integrity.free_list import read_free_list
from tracker.integrity.page_trees import find_uses
from tracker.integrity.verification import snapshot

pytestmark = pytest.mark.tampers

LONGEST_LOG = 5_000_000
"""Bytes from which the log is emptied: on a busy machine, a writer that never waits outruns those who read it."""


def test_a_list_in_the_log(tmp_path: Path) -> None:
    path, sound = tmp_path / "log.db", Form(page_size=512)
    sound.make(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        for statement in (
            "INSERT INTO ended VALUES (zeroblob(90000))",
            "DELETE FROM plain WHERE id % 2 = 0",
            "CREATE TABLE later AS SELECT * FROM keyed",
            "DELETE FROM ended",
            "DROP TABLE later",
        ):
            writer.execute(statement)
            assert find_faults(path) == []
        reader = create_unchecked_engine(f"sqlite:///{path}")
        with snapshot(reader) as connection:
            rows = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE rootpage > 0").scalars()
            pages, trees = FilePages(path), dict.fromkeys([1, *rows], "")
            free, used = read_free_list(pages).pages, find_uses(pages, trees).owners
            assert len(free) == connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
            assert len(free) + np.count_nonzero(used) == pages.number
        reader.dispose()


def test_a_damaged_page_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    Form().make(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("DELETE FROM plain")
        content = bytearray(Path(f"{path}-wal").read_bytes())
        first = [at for at in range(32, len(content), 24 + 4096) if read_word(content, at) == 1][-1]
        content[first + 24 + 39] += 1
        with Path(f"{path}-wal").open("rb+") as file:
            file.write(content)
        assert any("states" in fault for fault in find_faults(path))


def test_a_file_that_others_write_has_no_fault(tmp_path: Path) -> None:
    path, log = tmp_path / "busy.db", tmp_path / "busy.db-wal"
    Form(page_size=512).make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    stopped = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as writer:
            while not stopped.is_set():
                is_long = log.exists() and log.stat().st_size > LONGEST_LOG
                for statement in (
                    "INSERT INTO ended VALUES (zeroblob(40000))",
                    "DELETE FROM ended WHERE rowid % 2",
                    f"PRAGMA wal_checkpoint({'TRUNCATE' if is_long else 'PASSIVE'})",  # the former waits for readers
                ):
                    writer.execute(statement)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert [find_faults(path) for _ in range(40)] == [[]] * 40
    finally:
        stopped.set()
        thread.join()


def test_a_log_that_is_started_anew_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    Form().make(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("DELETE FROM plain WHERE id = 0")
        pages = FilePages(path)
        pages.check_unchanged()
        writer.execute("PRAGMA wal_checkpoint(RESTART)")
        writer.execute("DELETE FROM plain")
        with pytest.raises(UnexpectedPageError, match="anew"):
            pages.check_unchanged()
