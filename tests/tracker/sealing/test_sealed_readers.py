"""Readers beside a process that seals again and again: each result is whole."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from sealed_stores import seal_benchmark, write_results

from tracker.api.store import Store
from tracker.database import connect

SECONDS = 3.0
N_READERS = 3


@pytest.mark.parametrize("seconds", [SECONDS, pytest.param(60.0, marks=pytest.mark.soak)])
def test_readers_get_all_scores_or_load_them(store: sa.Engine, tmp_path: Path, seconds: float) -> None:
    url = store.url.render_as_string(hide_password=False)
    api = Store(store)
    api.ingest(write_results(tmp_path / "one.csv", seed=1), benchmark="one", metric="accuracy")
    expected = api.performance_matrix("one").Q
    statement = "SELECT count(*), sum(value), (SELECT count(*) FROM answer) FROM score"
    totals = list(api.sql(statement))
    end, problems, n_reads, n_seals = time.monotonic() + seconds, [], [0] * N_READERS, 0

    def read(place: int) -> None:
        reader = Store(connect(url))
        while time.monotonic() < end and not problems:
            try:
                np.testing.assert_array_equal(reader.performance_matrix("one").Q, expected)
                assert list(reader.sql(statement)) == totals
            except BaseException as error:  # noqa: BLE001 - reported by the main thread
                problems.append(error)
            n_reads[place] += 1
        reader.close()

    threads = [threading.Thread(target=read, args=(place,)) for place in range(N_READERS)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end and not problems:
        seal_benchmark(store, "one", tmp_path / "sealed")
        n_seals += 1
    for thread in threads:
        thread.join()
    assert problems == []
    assert min(n_reads) > 0
    assert n_seals > 0
