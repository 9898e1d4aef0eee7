"""Writers beside each other: none waits for another in a circle, and the checksums hold all their changes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from full_stores import list_faults, make_full_store

from tracker import schema
from tracker.copying.store_copy import copy_store
from tracker.database import connect, transaction


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_exclusive_writers_writers_and_a_restore_keep_the_checksums(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue(f"{engine}_url")
    backup, errors = connect(make_full_store(tmp_path / "full.db")), []

    def write(name: str, *, exclusive: bool) -> None:
        try:
            store = connect(url)
            for place in range(10):
                with transaction(store, exclusive=exclusive) as session:
                    benchmark = schema.Benchmark(name=f"{name} {place}")
                    session.add(benchmark)
                    session.flush()
                    session.add_all(schema.Task(benchmark_id=benchmark.id, name=str(n)) for n in range(3))
            store.dispose()
        except Exception as error:  # noqa: BLE001 -- a thread has nobody to raise to
            errors.append(error)

    writers = [threading.Thread(target=write, args=(f"w{n}",), kwargs={"exclusive": n < 2}) for n in range(4)]
    for writer in writers:
        writer.start()
    store = connect(url)
    for _ in range(3):
        copy_store(backup, store, replace=True)
    for writer in writers:
        writer.join()
    store.dispose()
    backup.dispose()
    assert errors == []
    assert list_faults(url) == []
