"""Several queries that see the store at one moment."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores

from tracker.errors import DatabaseError
from tracker.queries.sql.arrow import read_arrow, snapshot

COUNT = "SELECT count(*) AS n FROM score"


def test_what_is_committed_later_is_not_seen(store: sa.Engine) -> None:
    add_scores(store, np.ones((3, 2)))
    with snapshot(store) as reading:
        add_scores(store, np.ones((3, 2)), label="again")
        seen = [reading.table(COUNT)["n"].to_pylist() for _ in range(2)]
        with reading.reader("SELECT prompt_id FROM score WHERE trial = ?", (0,)) as rows:
            assert rows.read_all().num_rows == 6
    assert seen == [[6], [6]]
    assert read_arrow(store, COUNT)["n"].to_pylist() == [12]


def test_a_query_that_the_engine_rejects_is_reported(store: sa.Engine) -> None:
    with pytest.raises(DatabaseError, match="nowhere"), snapshot(store) as reading:
        reading.table("SELECT 1 FROM nowhere")


@pytest.mark.parametrize("kind", ["AdbcDatabase", "AdbcConnection"])
def test_an_error_before_there_is_a_connection_is_the_error_that_is_raised(
    sqlite_store: sa.Engine, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    import adbc_driver_manager

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(adbc_driver_manager, kind, fail)
    with pytest.raises(MemoryError):
        read_arrow(sqlite_store, COUNT)
