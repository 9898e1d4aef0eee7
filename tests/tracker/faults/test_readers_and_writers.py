"""Many writers and readers at once: no reader sees a part of an import, a copy or an upgrade."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from forked_process import WAIT, ForkedProcess, fork
from operations import OPERATIONS, Place
from store_state import read_state

from tracker.connections.schema_versions import current_version, known_versions, upgrade
from tracker.copying.store_copy import copy_store
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.errors import DatabaseError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums

N_WRITERS, N_READERS = 16, 8
SECONDS = float(os.environ.get("SUFFRAGE_TEST_SOAK_SECONDS", "600"))
N_PROMPTS = 200
COUNT = "SELECT (SELECT count(*) FROM model), (SELECT count(*) FROM prompt), (SELECT count(*) FROM score)"
N_SCORES = """
SELECT run.id, run.n_scores, count(score.prompt_id) FROM run LEFT JOIN score ON score.run_id = run.id
GROUP BY run.id, run.n_scores
"""


def import_scores(engine: sa.Engine, folder: Path, name: str, chance: random.Random) -> None:
    """Import a file of a new and of a known model."""
    path = folder / f"{name}.csv"
    rows = [f"t{i % 3},q{i},{chance.randrange(2)},{chance.randrange(2)}" for i in range(N_PROMPTS)]
    path.write_text("\n".join([f"task,prompt_id,{name},shared-{chance.randrange(4)}", *rows]) + "\n")
    while True:  # a busy machine may give one of the writers no turn within the time that it waits
        try:
            ingest_file(engine, path, ReadOptions(benchmark="b", metric="accuracy"))
            break
        except DatabaseError as error:
            if "another program has been writing" not in str(error):
                raise
    path.unlink()


def write_until(deadline: float, url: str, folder: Path, name: str) -> None:
    """Import files until a moment; print their number."""
    engine, chance, n = connect(url), random.Random(name), 0
    while time.monotonic() < deadline:
        import_scores(engine, folder, f"{name}-{n}", chance)
        n += 1
    engine.dispose()
    print(f"imports {n}")


def read_until(deadline: float, url: str) -> None:
    """Read whole snapshots until a moment; print their number and every contradiction within one."""
    engine, n, sizes = connect(url), 0, [0]
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    while time.monotonic() < deadline:
        with transaction(engine, write=False) as session:
            wrong = [row for row in session.execute(sa.text(N_SCORES)) if row[1] != row[2]]
            wrong += [("checksum", key) for key in verify_checksums(session)]
            sizes.append(session.scalar(sa.text("SELECT count(*) FROM run")) or 0)
        if wrong or sizes[-1] < sizes[-2]:
            print(f"torn {wrong} {sizes[-2:]}")
        n += 1
    engine.dispose()
    print(f"snapshots {n}")


def finish(processes: list[ForkedProcess], noun: str) -> int:
    """Wait for processes that must succeed; return the sum of the numbers that they print."""
    total = 0
    for process in processes:
        output = process.wait(SECONDS + WAIT)
        assert process.returncode == 0, output
        assert "torn" not in output, output
        total += sum(int(line.split()[1]) for line in output.splitlines() if line.startswith(noun))
    return total


@pytest.mark.soak
def test_readers_never_see_a_part_of_an_import(store_url: str, tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path}/first.db")  # the processes forked from this one then need no imports
    import_scores(engine, tmp_path, "first", random.Random(0))
    engine.dispose()
    deadline = time.monotonic() + SECONDS
    writers = [
        fork(lambda i=i: write_until(deadline, store_url, tmp_path, f"m{i}"), tmp_path / f"writer{i}.txt")  # type: ignore[misc]
        for i in range(N_WRITERS)
    ]
    readers = [fork(lambda: read_until(deadline, store_url), tmp_path / f"reader{i}.txt") for i in range(N_READERS)]
    n_imports, n_snapshots = finish(writers, "imports"), finish(readers, "snapshots")
    assert min(n_imports, n_snapshots) > 0
    assert read_state(store_url).faults == []
    engine = connect(store_url)
    with engine.connect() as connection:
        n_scores = connection.scalar(sa.text("SELECT count(*) FROM score"))
        n_prompts = connection.scalar(sa.text("SELECT count(*) FROM prompt"))
    engine.dispose()
    assert n_scores == 2 * N_PROMPTS * n_imports
    assert n_prompts == N_PROMPTS
    print(f"{n_imports} imports, {n_snapshots} snapshots in {SECONDS:.0f} s on {engine.dialect.name}")


@contextmanager
def reading(look: Callable[[], str], folder: Path) -> Iterator[list[str]]:
    """What a process sees again and again while the block runs, and after it, each once in this order."""
    over, output = folder / "over", folder / "seen.txt"

    def work() -> None:
        is_last, before = False, ""
        while not is_last:
            is_last = over.exists()
            if (now := look()) != before:
                print(now)
                before = now

    process, seen = fork(work, output), []
    while not output.read_text():
        assert process.poll() is None
        time.sleep(0.005)
    try:
        yield seen
    finally:
        over.touch()
        seen += process.wait().splitlines()
    assert process.returncode == 0, seen


def look_at(url: str) -> str:
    """The version of a store and its numbers of rows in three tables; - for none."""
    engine = create_unchecked_engine(url)
    try:
        version = current_version(engine)
        if version is None:
            return "-"
        with engine.connect() as connection:
            counts = connection.execute(sa.text(COUNT)).one()
            return " ".join([version, *map(str, counts)])
    except DatabaseError as error:
        return f"error {error}"
    finally:
        engine.dispose()


def test_readers_see_all_of_a_copy_or_nothing(tmp_path: Path, store_url: str) -> None:
    place = Place(folder=tmp_path, url=store_url, source=f"sqlite:///{tmp_path}/source.db")
    OPERATIONS["copy"].prepare(place)
    expected = look_at(place.source)
    empty = look_at(store_url)
    with reading(lambda: f"{look_at(store_url)} of {look_at(place.source)}", tmp_path) as seen:
        source, target = create_unchecked_engine(place.source), create_unchecked_engine(store_url)
        copy_store(source, target)
        source.dispose()
        target.dispose()
    assert seen == [f"{empty} of {expected}", f"{expected} of {expected}"]
    assert read_state(store_url).faults == []


def test_readers_see_a_store_before_its_upgrade_or_after(tmp_path: Path) -> None:
    place = Place(folder=tmp_path, url=f"sqlite:///{tmp_path}/old.db")
    OPERATIONS["upgrade"].prepare(place)
    before = look_at(place.url)
    with reading(lambda: look_at(place.url), tmp_path) as seen:
        engine = create_unchecked_engine(place.url)
        upgrade(engine)
        engine.dispose()
    assert seen == [before, before.replace("0009", known_versions()[-1])]
