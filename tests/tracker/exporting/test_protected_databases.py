"""No output replaces the store, another database, or a file to which SQLite would apply an old log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tracker.errors import OutputError
from tracker.exporting.output_paths import check_output_path, unfinished_file, write_file


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite file."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE some (x)")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("ending", ["-wal", "-journal", "-shm"])
def test_a_log_of_a_database_is_no_output(database: Path, ending: str) -> None:
    with pytest.raises(OutputError, match=r"that SQLite keeps beside store\.db"):
        write_file(database.with_name(f"store.db{ending}"), b"x", force=True)


def test_a_database_is_replaced_by_a_database_only(database: Path) -> None:
    before = database.read_bytes()
    with pytest.raises(OutputError, match="is a SQLite database, perhaps a store, and is not replaced"):
        write_file(database, b"x", force=True)
    assert database.read_bytes() == before
    with unfinished_file(database, force=True, is_database=True) as unfinished:
        unfinished.write_bytes(b"new")
    assert database.read_bytes() == b"new"


def test_the_store_is_not_replaced_even_through_a_link(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(database)
    for path in (database, link):
        with pytest.raises(OutputError, match="is the store itself"):
            check_output_path(path, force=True, is_database=True, store=database)


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_a_log_of_a_killed_program_is_not_applied_to_a_new_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "backup.db"
    log = tmp_path / f"backup.db{ending}"
    log.touch()
    check_output_path(path, force=True, is_database=True)
    log.write_bytes(b"changes")
    with pytest.raises(OutputError, match=f"{log.name} holds changes"):
        check_output_path(path, force=True, is_database=True)


def test_a_link_to_itself_becomes_a_file(tmp_path: Path) -> None:
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    write_file(loop, b"x", force=True)
    assert loop.read_bytes() == b"x"
