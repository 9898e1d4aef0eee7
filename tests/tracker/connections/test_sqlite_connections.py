"""What one process reads with a second copy of SQLite does not take its locks away."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from tracker import schema
from tracker.connections import sqlite_connections
from tracker.database import connect, transaction
from tracker.errors import DatabaseError
from tracker.queries.sql.arrow import read_arrow, snapshot

COUNT = "SELECT count(*) AS n FROM model"
OTHER_PROCESS = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(c.execute(sys.argv[2]).fetchone()[0])"


@pytest.fixture
def path(tmp_path: Path, sqlite_template: Path) -> Path:
    return shutil.copy(sqlite_template, tmp_path / "store.db")


@pytest.fixture
def engine(path: Path) -> sa.Engine:
    return connect(f"sqlite:///{path}")


def add_model(engine: sa.Engine, name: str) -> None:
    with transaction(engine) as session:
        session.add(schema.Model(name=name))


def count_elsewhere(path: Path) -> int:
    """The number of models that another process sees, which then closes the file."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, path, COUNT], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def open_descriptors(path: Path) -> int:
    folder = Path("/proc/self/fd")
    return sum(os.readlink(link).startswith(str(path)) for link in folder.iterdir() if link.is_symlink())


def test_nothing_written_after_a_read_is_lost_when_another_process_closes_the_file(
    engine: sa.Engine, path: Path
) -> None:
    add_model(engine, "first")
    with transaction(engine, write=False) as session:
        assert read_arrow(session, COUNT)["n"].to_pylist() == [1]
        assert count_elsewhere(path) == 1  # whose last connection would delete the log of a file that no one has locked
    assert path.with_name("store.db-wal").exists()
    add_model(engine, "second")
    assert count_elsewhere(path) == 2
    assert read_arrow(engine, COUNT)["n"].to_pylist() == [2]


def test_a_snapshot_is_released_so_that_the_log_can_be_emptied(engine: sa.Engine, path: Path) -> None:
    add_model(engine, "first")
    with snapshot(engine) as reading:
        assert reading.table(COUNT)["n"].to_pylist() == [1]
    add_model(engine, "second")
    with engine.connect() as connection:
        connection.rollback()
        busy, in_log, moved = connection.connection.dbapi_connection.execute(
            "PRAGMA wal_checkpoint(TRUNCATE)"
        ).fetchone()
    assert (busy, in_log, moved) == (0, 0, 0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_all_files_are_closed_with_the_engine(engine: sa.Engine, path: Path) -> None:
    for name in ("a", "b", "c"):
        add_model(engine, name)
        with transaction(engine, write=False) as session:
            read_arrow(session, COUNT)
    assert open_descriptors(path)
    engine.dispose()
    assert open_descriptors(path) == 0
    assert not path.with_name("store.db-wal").exists()
    assert read_arrow(engine, COUNT)["n"].to_pylist() == [3]
    add_model(engine, "d")
    assert read_arrow(engine, COUNT)["n"].to_pylist() == [4] == [count_elsewhere(path)]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_all_files_are_closed_when_an_engine_is_forgotten(path: Path) -> None:
    gc.freeze()  # only what comes after it is looked through below
    engine = connect(f"sqlite:///{path}")
    add_model(engine, "a")
    with transaction(engine, write=False) as session:
        read_arrow(session, COUNT)
    del engine, session
    gc.collect()
    assert open_descriptors(path) == 0


def test_a_writer_that_has_waited_for_long_tries_as_often_as_a_new_one(
    engine: sa.Engine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1000:
            holder.execute("COMMIT")

    monkeypatch.setattr(time, "sleep", sleep)
    add_model(engine, "m")
    holder.close()
    assert len(pauses) == 1000
    assert max(pauses[-100:]) <= sqlite_connections.POLL_SECONDS[1]
    assert count_elsewhere(path) == 1


def test_waiting_for_a_writer_ends(engine: sa.Engine, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.01)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="another program has been writing"):
        add_model(engine, "m")
    holder.close()
    add_model(engine, "m")
    assert count_elsewhere(path) == 1
